"""The options of commands have the names and defaults of the library's arguments."""

import inspect
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

import safecf
from safecf.approximate import export
from safecf.batch import recommend_to_file
from safecf.cli.command_options import DataOptions, flag
from safecf.cli.commands import app
from safecf.datasets import read
from safecf.models.recommender import Recommender
from safecf.split import strong_generalization

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"
# By command and function: options, and the arguments that they are. "not": the opposite.
SAME = {
    ("recommend", recommend_to_file): {
        "users": "users",
        "N": "N",
        "filter_items": "filter_items",
        "items": "items",
        "filter_already_liked_items": "filter_already_liked_items",
        "recalculate_user": "recalculate_user",
        "histories": "histories",
        "resume": "resume",
        "quiet": "not show_progress",
    },
    ("similar", Recommender.similar_items_frame): {
        "N": "N",
        "filter_items": "filter_items",
        "among": "among",
    },
    ("similar", Recommender.similar_users_frame): {
        "N": "N",
        "filter_users": "filter_users",
        "among": "among",
    },
    ("explain", Recommender.explain_frame): {"N": "N"},
    ("export", export): {
        "format": "format",
        "cosine": "cosine",
        "queries": "queries",
        "seed": "seed",
        "quiet": "not show_progress",
    },
    ("fit", safecf.SAFER2.fit): {
        "checkpoint": "checkpoint",
        "resume": "resume",
        "quiet": "not show_progress",
    },
    ("fit", strong_generalization): {"split_seed": "seed"},
    ("fit", safecf.report): {"tail": "level"},
    ("evaluate", safecf.evaluate): {"k": "k"},
    ("evaluate", strong_generalization): {"split_seed": "seed", "share": "holdout_share"},
    ("evaluate", safecf.report): {"tail": "level"},
}
# Options with other names than those of the arguments; the docs have the same table.
OTHER_NAMES = {
    "out": "path",
    "quiet": "show_progress",
    "tail": "level",
    "seed": "random_state",
    "split_seed": "seed",
    "share": "holdout_share",
}
READING = {each.name for each in fields(DataOptions)} - {"data", "path"}


def options_of(command):
    made = get_command(app).commands[command]
    return {each.name: each for each in made.params if each.param_type_name == "option"}


def default_of(function, argument):
    return inspect.signature(function).parameters[argument].default


def assert_same(option, default):
    """Compare the default, or what the help tells of it, where it is left to the library."""
    if option.default is None and isinstance(option.show_default, str):
        told = " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
        assert option.show_default == told
    else:
        assert option.default == default


@pytest.mark.parametrize(("command", "function"), SAME)
def test_options_have_the_defaults_of_arguments(command, function):
    options = options_of(command)
    for name, argument in SAME[command, function].items():
        default = default_of(function, argument.removeprefix("not "))
        assert_same(options[name], not default if argument.startswith("not ") else default)
        assert argument == name or argument.removeprefix("not ") == OTHER_NAMES[name]


def test_every_argument_of_an_answer_is_an_option():
    """But for the model and the data, which are arguments of the command."""
    for command, function in (("recommend", recommend_to_file), ("export", export)):
        found = {each.removeprefix("not ") for each in SAME[command, function].values()}
        others = {*inspect.signature(function).parameters} - found
        assert others <= {"model", "user_items", "path"}


@pytest.mark.parametrize("command", ["fit", "recommend", "explain", "evaluate"])
def test_files_are_read_with_the_same_defaults(command):
    options = options_of(command)
    for name in READING & {*inspect.signature(read).parameters} - {"header"}:
        assert_same(options[name], default_of(read, name))
    assert default_of(read, "header") is True
    assert options["header"].show_default == "header"


def test_the_table_of_other_names_is_in_the_docs():
    lines = DOCS.read_text().splitlines()
    for option, argument in OTHER_NAMES.items():
        (row,) = [line for line in lines if line.startswith(f"| `{flag(option)}`")]
        assert f"`{argument}" in row
