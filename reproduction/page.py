"""Pages: a template filled with the stored rows, and the figures that are drawn from them."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Formatter
from typing import Any

from reproduction import figures, store
from reproduction.experiment import ROOT, Experiment, Row
from safecf.atomic import replace_file

MACROS = ("head", "section", "warned", "figure")  # of common.j2
Pattern = str | Sequence[str]
FACTORS = {"ms": 1e3, "us": 1e6, "MB": 1e-6, "GB": 1e-9, "G": 1e-9, "T": 1e-12}
FACTORS |= {"MiB": 2**-20, "GiB": 2**-30}
SPEC = re.compile(rf"({'|'.join(sorted(FACTORS, key=len, reverse=True))})?(.*)")


class Units(Formatter):
    """`str.format` with units before the format, and "short" for three digits.

    >>> Units().format("{seconds:msshort} ms, {size[peak]:GiB.1f} GiB", **row)
    '15.2 ms, 4.3 GiB'
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """Format one value."""
        unit, spec = SPEC.fullmatch(format_spec).groups()  # type: ignore[union-attr]
        value = value * FACTORS[unit] if unit else value
        if spec == "short":
            spec = ",.0f" if abs(value) >= 100 else "#.3g"
        return format(value, spec)

    def known(self, pattern: str, row: Row) -> bool:
        """Whether all names in a pattern, such as "size[peak]", stand for something finite."""
        try:
            names = [name for _, name, _, _ in self.parse(pattern) if name]
            values = [self.get_field(name, (), row)[0] for name in names]
        except (KeyError, TypeError):
            return False
        numbers = [each for each in values if isinstance(each, float)]
        return None not in values and all(map(math.isfinite, numbers))


def render(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Write NAME.md and its figures from the stored parts; return the files."""
    import jinja2  # noqa: PLC0415 - measuring works without it

    parts = store.read(folder, name)
    if not parts:
        raise FileNotFoundError(f"there is no {folder / name}.json; leave out --render to make it")
    tables = {
        f"{part}.{table}" if part else table: rows
        for part, each in parts.items()
        for table, rows in each["tables"].items()
    }
    files = [
        file
        for suffix, draw in experiment.figures.items()
        for file in figures.save(partial(draw, tables), folder / f"{name}{suffix}")
    ]
    first = next(iter(parts.values()))
    default = experiment.options().data
    data = first.get("options", {}).get("data", default)
    known = {
        "tables": tables,
        "title": experiment.title + ("" if data == default else f": {data}"),
        "all_numbers": f"All numbers: [{name}.csv]({name}.csv)." if "numbers" in tables else "",
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(
            [ROOT / each / "pages" for each in (experiment.package, "reproduction")]
        ),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.globals.update({each.__name__: each for each in (table, pivot, fill)})
    environment.globals.update(experiment=experiment, name=name, parts=parts)
    environment.globals.update(drawn=[file.name for file in files], packages=store.PACKAGES)
    common = environment.get_template("common.j2").module
    environment.globals.update({each: getattr(common, each) for each in MACROS})
    template = environment.get_template(f"{experiment.name}.md.j2")
    text = template.render({**first, **tables, **known})
    blocks = [block.strip("\n") for block in text.split("\n\n") if block.strip()]
    file = folder / f"{name}.md"
    replace_file(file, ("\n\n".join(blocks) + "\n").encode())
    return [file, *files]


def heading(metric: str, tail: float = 1.0) -> str:
    """Return the heading of a column.

    >>> heading("recall@20", 0.3)
    'R@20, worst-off 30 %'
    """
    name = metric.replace("recall", "R").replace("ndcg", "nDCG")
    return name + ("" if tail == 1 else f", worst-off {100 * tail:g} %")


def fill(pattern: Pattern, row: Row) -> str:
    """Fill in a pattern; it is empty where a number is missing or not finite.

    Several patterns are joined. `heading` is that of the row's metric and tail.

    >>> fill(["{value:.2f}", " ± {std:.2f}"], {"value": 0.5, "std": None})
    '0.50'
    """
    if "metric" in row:
        row = {"heading": heading(row["metric"], row.get("tail", 1.0)), **row}
    patterns = [pattern] if isinstance(pattern, str) else pattern
    units = Units()
    return "".join(units.vformat(each, (), row) for each in patterns if units.known(each, row))


def table(rows: Sequence[Row], columns: Mapping[str, Pattern] | Sequence[tuple[str, Any]]) -> str:
    """Return a Markdown table: a line for each row, and a pattern for each column, by its heading.

    >>> print(table([{"model": "iALS", "value": 0.34501}], {"": "{model}", "R@20": "{value:.4f}"}))
    |  | R@20 |
    | --- | --- |
    | iALS | 0.3450 |
    """
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    return _table([title for title, _ in pairs], ([fill(p, row) for _, p in pairs] for row in rows))


def pivot(
    rows: Sequence[Row],
    line: Pattern | list[Pattern],
    column: Pattern,
    cell: Pattern,
    titles: Sequence[str] = (),
    key: Pattern = "",
) -> str:
    """Return a Markdown table: lines and columns in the order in which the rows have them.

    `line` may be a list, with a pattern for each of the first columns; `titles` are their headings.
    Rows with another `key` are on another line.

    >>> rows = [{"model": "iALS", "metric": "recall@20", "tail": 1.0, "value": 0.34501}]
    >>> print(pivot(rows, "{model}", "{heading}", "{value:.4f}"))
    |  | R@20 |
    | --- | --- |
    | iALS | 0.3450 |
    """
    patterns = line if isinstance(line, list) else [line]
    columns = list(dict.fromkeys(fill(column, row) for row in rows))
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        place = tuple(fill(each, row) for each in (key, *patterns))
        lines.setdefault(place, {})[fill(column, row)] = fill(cell, row)
    first = [*(fill(each, rows[0]) for each in titles), *[""] * (len(patterns) - len(titles))]
    body = ([*of[1:], *(cells.get(each, "") for each in columns)] for of, cells in lines.items())
    return _table([*first, *columns], body)


def _table(titles: list[str], lines: Any) -> str:
    return "\n".join(f"| {' | '.join(of)} |" for of in (titles, ["---"] * len(titles), *lines))
