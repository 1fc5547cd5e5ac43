"""The section on tuning: the trials of all models, and those among which one can choose."""

from safecf.reporting.content import Content, TrialPoint, Tuned, TunedModel
from safecf.reporting.drawing.front_chart import bounds, front_chart, inside
from safecf.reporting.markup import count, escape, level_name, name, number, tag, whom
from safecf.reporting.sections.elements import figure, folded, section, swatch, table

SHOWN = 10  # rows of a table
EDGE = "†"


def tuning(content: Content) -> str:
    """The trials on the validation users, and the front of mean and tail."""
    found = content.tuned
    if found is None:
        return ""
    goal = {
        "mean": "the mean over all users",
        "tail": f"the mean over {whom(found.level)}",
        "both": f"both the mean over all users and that over {whom(found.level)}",
    }[found.kind]
    lede = (
        f"Options were searched for {goal}, on {count(found.users)} validation users. The rest of "
        "this page is about the test set, which played no part in it. Each dot is a trial at "
        "its best epoch, hollow if it was ended early; a cross marks a model's defaults. On the "
        "line, one of the two scores can only be raised by lowering the other. A ring marks "
        f"{_picked(found)}. The best of many trials is partly the best by chance, so that its "
        "scores here are too good."
    )
    tables = "".join(_table(found, each) for each in found.models)
    return section("tuning", "How the options were found", lede, _figure(found) + tables)


def _picked(tuned: Tuned) -> str:
    """Say how the trial of each model was picked."""
    if tuned.pick.isdecimal():
        return f"trial {tuned.pick}, which was chosen"
    if tuned.pick == "objective" and tuned.kind == "both":
        return "the trial that was picked, with the largest mean relative gain over the defaults"
    best = tuned.kind if tuned.pick == "objective" else tuned.pick
    return f"the trial with the best {best}, which was picked"


def _figure(tuned: Tuned) -> str:
    spoken = "; ".join(_spoken(each) for each in tuned.models)
    drawing = "".join(
        front_chart(tuned, label=f"Trials on the validation users: {spoken}", narrow=narrow)
        for narrow in (False, True)
    )
    entries = "".join(
        tag("li", swatch(each.style) + name(each.model), class_=f"s{each.style % 8}")
        for each in tuned.models
    )
    low, _ = bounds(tuned)
    trials = [trial for each in tuned.models for trial in each.trials]
    failed = sum(each.state == "failed" for each in trials)
    outside = len(trials) - failed - sum(len(inside(each, low)) for each in tuned.models)
    notes = []
    if tuned.kind != "mean" and not any(each.tail > 0 for each in trials):
        notes.append(
            f"{escape(tuned.metric)} is 0 for all of {whom(tuned.level)} in every trial, so that "
            "they told nothing; a metric over the whole ranking, such as ndcg, would."
        )
    if outside:
        notes.append(
            f"{count(outside)} of {count(len(trials))} trials score less than the chart shows."
        )
    if failed:
        notes.append(f"{count(failed)} of {count(len(trials))} trainings failed.")
    below = tag("p", " ".join(notes), class_="fine") if notes else ""
    below += folded("Show all trials", "".join(_all(tuned, each) for each in tuned.models))
    legend = tag("div", tag("ul", entries), class_="readout")
    title = f"{escape(tuned.metric)} of the validation users, by trial"
    return figure(title, drawing, above=legend, below=below)


def _spoken(model: TunedModel) -> str:
    best = model.trials[model.best]
    scores = f"mean {number(best.mean)} and tail {number(best.tail)}"
    return f"{model.model}, {len(model.trials)} trials, of which {best.number} reaches {scores}"


def _table(tuned: Tuned, model: TunedModel) -> str:
    """The trials to choose from: the front, or the best by mean or tail."""
    if tuned.kind == "both":
        chosen = [model.trials[place] for place in model.front]
        title = f"{name(model.model)}: the front"
    else:
        scored = [each for each in model.trials if each.state != "failed"]
        chosen = sorted(scored, key=lambda each: -getattr(each, tuned.kind))
        title = f"{name(model.model)}: the best trials"
    best = model.trials[model.best]
    rows = chosen[:SHOWN]
    rows += [each for each in (best, model.trials[0]) if each not in rows]
    ranges = "; ".join(f"{key} {text}" for key, text in model.ranges.items())
    note = f"{count(len(model.trials))} trials in {_time(model.minutes)}. Ranges: {ranges}."
    if model.edges:
        note += (
            f" {EDGE} The value of {', '.join(model.edges)} is near an end of its range; a wider "
            "range may have a better one."
        )
    said = tag("p", escape(note), class_="fine")
    return tag("div", tag("h3", title) + _rows(tuned, model, rows) + said, class_="keep")


def _time(minutes: float) -> str:
    return f"{60 * minutes:.0f} seconds" if minutes < 1 else f"{minutes:.1f} minutes"


def _all(tuned: Tuned, model: TunedModel) -> str:
    return tag("h3", name(model.model)) + _rows(tuned, model, model.trials)


def _rows(tuned: Tuned, model: TunedModel, trials: list[TrialPoint]) -> str:
    scores = [level_name(level).capitalize() for level in (1.0, tuned.level)]
    head = ["Trial", *scores, "", "epochs", *map(escape, model.ranges)]
    lines, marks = [], []
    for each in trials:
        label = f"{each.number}, the defaults" if each.number == 0 else str(each.number)
        options = [_option(model, each, key) for key in model.ranges]
        state = "picked" if each.number == model.best else each.state
        scores = [number(each.mean), number(each.tail)]
        lines.append([label, *scores, state, count(each.epochs), *options])
        marks.append({"class_": "chosen"} if each.number == model.best else {})
    return table(head, lines, label=f"Trials of {model.model}", marks=marks)


def _option(model: TunedModel, trial: TrialPoint, key: str) -> str:
    value = trial.options[key]
    written = f"{value:.3g}" if isinstance(value, float) else escape(value)
    return written + (EDGE if trial.number == model.best and key in model.edges else "")
