"""Pages: a template filled with the stored rows, and the figures that are drawn from them."""

import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from string import Formatter
from typing import Any

from reproduction import store
from reproduction.experiment import TINY, Experiment, Row, Tables
from reproduction.units import Units
from safecf.atomic import replace_file

UNITS = Units()
Pattern = str | Sequence[str]


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
    files = _draw(experiment, folder / name, tables)
    drawn = {file.name for file in files}

    def figure(caption: str, suffix: str = "") -> str:
        return f"![{caption}]({name}{suffix}.svg)" if f"{name}{suffix}.svg" in drawn else ""

    def head(part: str = "") -> str:
        return _head(experiment, parts[part])

    def section(part: str) -> str:
        command = f"python -m {experiment.package} {experiment.name} --part {part}"
        text = head(part) if part in parts else f"Not measured yet: `{command}`."
        return f"## {experiment.parts[part]}\n\n{text}"

    def warned(part: str = "") -> str:
        return _warned(parts[part])

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(experiment.template.parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    helpers: dict[str, Any] = {each.__name__: each for each in (table, pivot, origin, fill)}
    helpers |= {"figure": figure, "head": head, "section": section, "warned": warned}
    first = next(iter(parts.values()))
    data = first.get("options", {}).get("data", experiment.default)
    known = {
        "title": experiment.title + ("" if data == experiment.default else f": {data}"),
        "parts": parts,
        "tables": tables,
        "all_numbers": f"All numbers: [{name}.csv]({name}.csv)." if "numbers" in tables else "",
    }
    template = environment.get_template(experiment.template.name, globals=helpers)
    blocks = [
        block.strip("\n") for block in template.render({**first, **tables, **known}).split("\n\n")
    ]
    file = folder / f"{name}.md"
    replace_file(file, ("\n\n".join(block for block in blocks if block.strip()) + "\n").encode())
    return [file, *files]


def _head(experiment: Experiment, part: Mapping[str, Any]) -> str:
    """Return the first paragraphs: command and origin, what it is of the paper, data and notes."""
    blocks = [origin(part)]
    if experiment.paper:
        blocks.append(f"Of the paper: {experiment.paper}.")
    blocks += [f"Data: {name}, sha256 `{sum_}…`." for name, sum_ in part["data"].items()]
    blocks += part["notes"]
    if part.get("options", {}).get("data") == TINY:
        blocks.append("**Tiny synthetic data, to try the command: the numbers mean nothing.**")
    return "\n\n".join(blocks)


def origin(part: Mapping[str, Any]) -> str:
    """Write the command of a part, and with what its cases were made."""
    command, made = f"`{part['command']}`", part["made"]
    if len(made) == 1:
        return f"{command} with {_origin(made[0])}."
    lines = [f"- {_counted(each['count'], 'cell')} with {_origin(each)}" for each in made]
    return "\n".join([f"{command}. Its cells were made\n", *lines])


def _origin(made: Mapping[str, Any]) -> str:
    if "commit" not in made:
        return "the same code, at a commit that they do not tell"
    versions = [f"{name} {made[name]}" for name in store.PACKAGES if name in made] or ["the code"]
    day = f", {made['date']}" if "date" in made else ""
    return f"{', '.join(versions)} at commit `{made['commit']}`, on {made['machine']}{day}"


def _warned(part: Mapping[str, Any]) -> str:
    """Write the warnings of models, and in how many of the cases each occurred."""
    of = _counted(part["cases"], "cell")
    lines = [f"- {each['count']} of {of}, such as: {each['example']}" for each in part["warnings"]]
    return "\n".join(["Warnings of the models:\n", *lines]) if lines else ""


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


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
    texts = []
    for each in [pattern] if isinstance(pattern, str) else pattern:
        names = [name for _, name, _, _ in Formatter().parse(each) if name]
        known = all(_known(UNITS.field(name, row)) for name in names)
        texts.append(UNITS.vformat(each, (), row) if known else "")
    return "".join(texts)


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


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


def check() -> None:
    """Raise if what pages need is missing."""
    for name, remedy in (("matplotlib", "'safecf[plots]'"), ("jinja2", "jinja2")):
        if find_spec(name) is None:
            raise ImportError(
                f"pages need {name}; try pip install {remedy}, or --rows to write none"
            )


def _draw(experiment: Experiment, path: Path, tables: Tables) -> list[Path]:
    if not experiment.figures:
        return []
    from reproduction import figures  # noqa: PLC0415 - needs matplotlib

    with figures.style():
        drawn = {suffix: draw(tables) for suffix, draw in experiment.figures.items()}
        return [
            figures.save(figure, path.with_name(path.name + suffix))
            for suffix, figure in drawn.items()
            if figure is not None
        ]
