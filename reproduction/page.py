"""Pages: a template filled with the stored rows, and the figures that are drawn from them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from string import Formatter
from typing import Any

from reproduction import store
from reproduction.experiment import TINY, Experiment, Row, Tables
from reproduction.units import Units
from safecf.atomic import replace_file

PLOTS = "figures need matplotlib; install it with: pip install 'safecf[plots]'"
NO_PAGE = "pages need Jinja; install it with: pip install jinja2"

Pattern = str | Sequence[str]
UNITS = Units()


def render(experiment: Experiment, name: str, folder: Path) -> list[Path]:
    """Write NAME.md and its figures from the stored parts; return the files."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - measuring works without it

    parts = store.read(folder, name)
    if not parts:
        raise FileNotFoundError(
            f"{folder / name}.json is not there; leave out --render to measure it"
        )
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    files = _draw(experiment, name, folder, parts)
    drawn = {file.name for file in files}

    def figure(caption: str, suffix: str = "") -> str:
        file = f"{name}{suffix}.svg"
        return f"![{caption}]({file})" if file in drawn else ""

    def head(part: str = "") -> str:
        return _head(experiment, parts[part])

    def section(part: str) -> str:
        title = f"## {experiment.parts[part]}"
        if part in parts:
            return f"{title}\n\n{_head(experiment, parts[part])}"
        return f"{title}\n\nNot measured yet: `{experiment.unmeasured(part)}`."

    first = next(iter(parts.values()))
    title = experiment.title
    if first.get("options", {}).get("data", experiment.default) != experiment.default:
        title += f": {first['options']['data']}"
    helpers = {
        each.__name__: each for each in (table, pivot, origin, warned, fill, figure, head, section)
    }
    numbers = f"All numbers: [{name}.csv]({name}.csv)." if first["tables"].get("numbers") else ""
    template = environment.from_string(experiment.template.read_text("utf8"), helpers)
    known = {"title": title, "parts": parts, "all_numbers": numbers, "tables": tables_of(parts)}
    text = template.render({**first, **known["tables"], **known})
    file = folder / f"{name}.md"
    replace_file(file, (_blocks(text) + "\n").encode())
    return [file, *files]


def tables_of(parts: Mapping[str, Any]) -> Tables:
    """Return the tables of all parts by "part.table", or by "table" if the part has no name."""
    return {
        f"{part}.{name}" if part else name: rows
        for part, each in parts.items()
        for name, rows in each["tables"].items()
    }


def _blocks(text: str) -> str:
    """Return the text with single blank lines between paragraphs."""
    blocks = [block.strip("\n") for block in text.split("\n\n")]
    return "\n\n".join(block for block in blocks if block.strip())


def _head(experiment: Experiment, part: Mapping[str, Any]) -> str:
    """Return the first paragraphs: command and origin, what it is of the paper, data and notes."""
    options, blocks = part.get("options", {}), [origin(part)]
    if experiment.paper:
        blocks.append(f"Of the paper: {experiment.paper}.")
    blocks += [f"Data: {name}, sha256 `{sum_[:16]}…`." for name, sum_ in part["data"].items()]
    blocks += part["notes"]
    if options.get("data") == TINY:
        blocks.append("**Tiny synthetic data, to try the command: the numbers mean nothing.**")
    return "\n\n".join(blocks)


def origin(part: Mapping[str, Any]) -> str:
    """Write the command of a part, and with what its cases were made."""
    command, made = f"`{part['command']}`", part["made"]
    if len(made) == 1:
        return f"{command} with {_origin(made[0])}."
    lines = [f"- {counted(each['count'], 'cell')} with {_origin(each)}" for each in made]
    return "\n".join([f"{command}. Its cells were made\n", *lines])


def _origin(made: Mapping[str, Any]) -> str:
    if "commit" not in made:
        return "the same code, at a commit that they do not tell"
    versions = [f"{name} {made[name]}" for name in store.PACKAGES if name in made] or ["the code"]
    day = f", {made['date']}" if "date" in made else ""
    return f"{', '.join(versions)} at commit `{made['commit']}`, on {made['machine']}{day}"


def origins(made: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Count the cases by what they were made with, the day apart, of which the range is kept."""
    names = (*store.PACKAGES, "commit", "machine")
    keys = [tuple((name, each[name]) for name in names if name in each) for each in made]
    found = []
    for key, count in Counter(keys).most_common():
        pairs = zip(made, keys, strict=True)
        days = sorted({each["date"] for each, its in pairs if its == key and "date" in each})
        dates = {"date": " to ".join(dict.fromkeys((days[0], days[-1])))} if days else {}
        found.append({"count": count, **dict(key), **dates})
    return found


def warned(warnings: Sequence[Mapping[str, Any]], total: int) -> str:
    """Write the warnings of models, and in how many of the cases each occurred."""
    if not warnings:
        return ""
    of = counted(total, "cell")
    lines = [f"- {each['count']} of {of}, such as: {each['example']}" for each in warnings]
    return "\n".join(["Warnings of the models:\n", *lines])


def counted(count: int, noun: str) -> str:
    """Write a number and a noun in singular or plural.

    >>> counted(1, "cell"), counted(2, "cell")
    ('1 cell', '2 cells')
    """
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

    Of several patterns the first decides; the others are added where they are not empty. `heading`
    is that of the row's metric and tail.

    >>> fill(["{value:.2f}", " ± {std:.2f}"], {"value": 0.5, "std": None})
    '0.50'
    """
    patterns = [pattern] if isinstance(pattern, str) else pattern
    if "metric" in row:
        row = {"heading": heading(row["metric"], row.get("tail", 1.0)), **row}
    texts = []
    for each in patterns:
        names = [name for _, name, _, _ in Formatter().parse(each) if name]
        known = all(_known(UNITS.field(name, row)) for name in names)
        texts.append(UNITS.vformat(each, (), row) if known else "")
    return "".join(texts) if texts[0] else ""


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
    titles = [title for title, _ in pairs]
    return _table([titles, *([fill(each, row) for _, each in pairs] for row in rows)])


def pivot(
    rows: Sequence[Row],
    line: Pattern | list[Pattern],
    column: Pattern,
    cell: Pattern,
    titles: Sequence[str] = (),
) -> str:
    """Return a Markdown table: lines and columns in the order in which the rows have them.

    `line` may be a list, with a pattern for each of the first columns; `titles` are their headings.

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
        key = tuple(fill(each, row) for each in patterns)
        lines.setdefault(key, {})[fill(column, row)] = fill(cell, row)
    first = [*titles, *[""] * (len(patterns) - len(titles))]
    body = ([*key, *(cells.get(each, "") for each in columns)] for key, cells in lines.items())
    return _table([[*first, *columns], *body])


def _table(lines: list[list[str]]) -> str:
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def check() -> None:
    """Raise if what pages need is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError(PLOTS)
    if find_spec("jinja2") is None:
        raise ImportError(NO_PAGE)


def _draw(experiment: Experiment, name: str, folder: Path, parts: dict[str, Any]) -> list[Path]:
    if not experiment.figures:
        return []
    from reproduction import figures  # noqa: PLC0415 - needs matplotlib

    files = []
    with figures.style():
        for suffix, draw in experiment.figures.items():
            figure = draw(tables_of(parts))
            if figure is not None:
                files.append(figures.save(figure, folder / f"{name}{suffix}"))
    return files
