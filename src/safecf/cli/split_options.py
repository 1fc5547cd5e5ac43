"""The options of splits, as records."""

import functools
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from safecf.cli.command_options import check_seed, flag
from safecf.cli.completion import one_of
from safecf.data.splits.protocol import HELDOUT_SHARE, HIDDEN_SHARE, MOST_REPEATS, SEED
from safecf.errors import choose

SPLITS = ("strong", "holdout", "temporal")
HELDOUT_HELP = (
    "number of validation users, and of test users; by default the paper's for its data sets, else "
    f"{100 * HELDOUT_SHARE:g} % of the users."
)

SplitOption = functools.partial(typer.Option, rich_help_panel="Splitting")


@dataclass(frozen=True)
class SplitOptions:
    """How to split: which users or interactions are held out."""

    split: Annotated[
        str,
        SplitOption(
            help="What is held out. strong: whole users; holdout: a part of every user; temporal: "
            "all interactions after a time.",
            autocompletion=one_of(SPLITS),
        ),
    ] = "strong"
    heldout: Annotated[
        int | None,
        SplitOption(help=f"strong: {HELDOUT_HELP}"),
    ] = None
    share: Annotated[
        float | None,
        SplitOption(
            help="Share of interactions to hide: of each user, or the latest of all (temporal).",
            show_default=str(HIDDEN_SHARE),
        ),
    ] = None
    cutoff: Annotated[
        str | None, SplitOption(help="temporal: time at which the test begins, instead of --share.")
    ] = None
    split_seed: Annotated[
        int | None, SplitOption(help="strong, holdout: random seed.", show_default=str(SEED))
    ] = None

    def __post_init__(self) -> None:
        choose("split", self.split, dict.fromkeys(SPLITS))
        uses = {"heldout": ("strong",), "cutoff": ("temporal",), "split_seed": SPLITS[:2]}
        for name, splits in uses.items():
            if getattr(self, name) is not None and self.split not in splits:
                raise ValueError(
                    f"{flag(name)} does not apply to --split {self.split}; leave it out"
                )
        check_seed("--split-seed", self.seed)
        if self.cutoff is not None and self.share is not None:
            raise ValueError("--cutoff and --share exclude each other; leave one of them out")

    @property
    def seed(self) -> int:
        """The seed of the split, the paper's by default."""
        return SEED if self.split_seed is None else self.split_seed

    def settings(self) -> dict[str, object]:
        """Return the settings that reproduce the split."""
        chosen = {"split": self.split, "held-out users": self.heldout, "share": self.share}
        chosen |= {"cutoff": self.cutoff}
        if self.split != "temporal":
            chosen["seed of the split"] = self.seed
        return {name: value for name, value in chosen.items() if value is not None}


@dataclass(frozen=True)
class RepeatedSplitOptions(SplitOptions):
    """How to split, and how often."""

    repeats: Annotated[
        int,
        SplitOption(
            help="strong, holdout: number of splits; every model is trained on each of them, and "
            "results are means over the splits."
        ),
    ] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.repeats <= MOST_REPEATS:
            bound = "at least 1" if self.repeats < 1 else f"at most {MOST_REPEATS:,}"
            raise ValueError(f"--repeats {self.repeats} has to be {bound}; try --repeats 10")
        if self.repeats > 1 and self.split == "temporal":
            raise ValueError(
                "--repeats does not apply to --split temporal, where nothing is random; leave it "
                "out, or choose --split strong or holdout"
            )

    def each(self) -> list[SplitOptions]:
        """Return the options of every split: their seeds are those of `repeated_seeds`."""
        from safecf.data.splits.strong_generalization import repeated_seeds  # noqa: PLC0415

        if self.repeats == 1:
            return [self]
        seeds = repeated_seeds(self.repeats, self.seed)
        return [replace(self, repeats=1, split_seed=seed) for seed in seeds]

    def settings(self) -> dict[str, object]:
        """Return the settings that reproduce the splits."""
        found = super().settings()
        if self.repeats > 1:
            seed = found.pop("seed of the split")
            found |= {"splits": self.repeats, "seed of the splits": seed}
        return found
