"""Studies on disk: a killed search goes on as if nothing had happened; others are refused."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import optuna
import pytest

from safecf import IALS, SAFER2, FileFormatError
from safecf.tuning import LogUniform
from tests.helpers import refused
from tests.tuning.conftest import SMALL, tune, without_time

# Kills itself without warning in the middle of the training of a trial.
KILLED = """
import os, signal, sys
from safecf import IALS, SAFER2, datasets, tune
from safecf.split import strong_generalization

pairs = datasets.synthetic(600, 150, 12000, tastes=4).matrix.tocoo()
split = strong_generalization(pairs.row, pairs.col, heldout=60)
study, deadly = sys.argv[1], int(sys.argv[2])
looks = 0

def killing(fit):
    def train(self, data, callback, **options):
        def look(epoch, *rest):
            global looks
            looks += 1
            if looks == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            return callback(epoch, *rest)
        return fit(self, data, callback=look, **options)
    return train

SAFER2.fit, IALS.fit = killing(SAFER2.fit), killing(IALS.fit)
tune(SAFER2(8, iterations=12), split, trials=14, study=study, against=[IALS(8, iterations=12)],
     show_progress=False)
"""


def stored_trials(study):
    """Return the number of trials by the name of the study."""
    with closing(sqlite3.connect(study)) as file:
        return dict(
            file.execute("SELECT study_name, COUNT(*) FROM trials NATURAL JOIN studies GROUP BY 1")
        )


def test_a_killed_search_goes_on_to_the_same_trials_and_the_same_best(
    split, tuned, studies, tmp_path
):
    study, whole = tmp_path / "killed.sqlite", shutil.copy(studies / "tuned", tmp_path)
    models = {"model": SAFER2(8, iterations=12), "against": [IALS(8, iterations=12)]}
    for deadly in (60, 150):
        command = [sys.executable, "-c", KILLED, str(study), str(deadly)]
        assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    counts = stored_trials(study)
    assert counts["SAFER2"] == 14  # killed once in the first model, once in the second
    assert 0 < counts["IALS"] < 14
    resumed, whole = (tune(data=split, trials=14, study=each, **models) for each in (study, whole))
    assert without_time(resumed) == [trials[:14] for trials in without_time(tuned)]
    assert resumed.best_options == whole.best_options
    for one, other in zip(resumed.evaluations, whole.evaluations, strict=True):
        assert one.tail("recall@20", 0.3) == other.tail("recall@20", 0.3)


def test_a_study_grows_to_the_number_of_trials_and_serves_smaller_ones(split, small, study):
    more = without_time(tune(SMALL, split, trials=6, study=study))
    assert (more[0][:4], len(more[0])) == (without_time(small)[0], 6)
    assert tune(SMALL, split, trials=3, study=study).trials == small.trials[:3]


def test_optuna_reads_the_study(tuned, studies):
    stored = optuna.load_study(study_name="SAFER2", storage=f"sqlite:///{studies / 'tuned'}")
    assert len(stored.trials) == 20
    for ours, theirs in zip(tuned.searches[0].trials, stored.trials, strict=True):
        assert theirs.state.name.lower() == ours.state
        assert theirs.params == ours.options
        assert tuple(theirs.values) == ours.scores
    stored._storage._backend.engine.dispose()


CHANGED = [
    ({"objective": "mean"}, "objective both there, mean here"),
    ({"metric": "ndcg@20"}, "metric recall@20 there, ndcg@20 here"),
    ({"level": 0.5}, "share of worst-off users 0.3 there, 0.5 here"),
    ({"seed": 1}, "seed of the search 0 there, 1 here"),
    ({"model": IALS(4, iterations=9)}, "iterations 2 there, 9 here"),
    ({"space": {"regularization": LogUniform(0.1, 1)}}, "range of regularization None there, 0.1 "),
    ({"space": {"regularization": None}}, "searched options "),
]


@pytest.mark.parametrize(("changed", "words"), CHANGED)
def test_the_study_of_another_search_is_refused(split, study, changed, words):
    with refused(ValueError, "another search: ", words, " here", "delete this one"):
        tune(**{"model": SMALL, "data": split, "trials": 1, "study": study} | changed)


def test_threads_do_not_make_another_search(split, small, study):
    other = IALS(4, iterations=2, num_threads=1)
    assert tune(other, split, trials=4, study=study).trials == small.trials


def test_files_that_are_no_studies_are_refused(split, tmp_path):
    wrong, text = tmp_path / "notes.txt", "This is a text, and long enough to be no database." * 20
    wrong.write_text(text)
    for error, study, words in (
        (FileFormatError, wrong, "notes.txt cannot be read or written as a study"),
        (IsADirectoryError, tmp_path, "is a folder; name the file of the study"),
        (FileNotFoundError, tmp_path / "new" / "s", "there is no folder"),
        (ValueError, tmp_path / "what?", "choose another name"),
    ):
        with pytest.raises(error, match=words):
            tune(SMALL, split, trials=1, study=study)
    assert wrong.read_text() == text


def test_two_searches_at_once_are_refused(split, tmp_path, monkeypatch):
    study, fit, ran = tmp_path / "both.sqlite", IALS.fit, []

    def other_search(self, *arguments, **options):
        if not ran:
            ran.append(True)
            tune(SMALL, split, trials=2, study=study)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(IALS, "fit", other_search)
    with refused(OSError, "another process has added trials; run one search at a time"):
        tune(SMALL, split, trials=2, study=study)
    assert stored_trials(study) == {"IALS": 2}


def test_trials_that_are_there_twice_are_refused(split, study):
    stored = optuna.load_study(study_name="IALS", storage=f"sqlite:///{study}")
    stored.add_trial(stored.trials[-1])
    with refused(FileFormatError, "its trials are not numbered 0, 1"):
        tune(SMALL, split, trials=5, study=study)


def test_minutes_of_an_earlier_run_count(split, small, study):
    trials = small.searches[0].trials
    minutes = (trials[0].seconds + trials[1].seconds / 2) / 60
    found = tune(SMALL, split, trials=9, minutes=minutes, study=study)
    assert found.searches[0].trials == trials[:2]


def test_a_study_is_of_all_that_trials_see(split, small, study):
    """The test users are not among it: other ones change no trial."""
    other = replace(split, test=split.validation)
    assert tune(SMALL, other, trials=4, study=study).trials == small.trials
    assert without_time(tune(SMALL, other, trials=4)) == without_time(small)
    changes = [replace(split, train=split.train[::-1])]
    for part in ("history", "target"):
        users = replace(split.validation, **{part: getattr(split.validation, part)[::-1]})
        changes.append(replace(split, validation=users))
    for changed in changes:
        with refused(ValueError, "another search: data ", " there"):
            tune(SMALL, changed, trials=1, study=study)


def edited(study, table, change):
    """Replace the first record of a table by what `change` returns."""
    with closing(sqlite3.connect(study)) as file, file:
        key, text = file.execute(f"SELECT rowid, value_json FROM {table} LIMIT 1").fetchone()
        changed = change(json.loads(text))
        changed = changed if isinstance(changed, bytes) else json.dumps(changed)
        query = f"UPDATE {table} SET value_json = CAST(? AS TEXT) WHERE rowid = ?"
        file.execute(query, (changed, key))


def without_checksum(record):  # as before there were checksums
    return {key: value for key, value in record.items() if key != "checksum"}


def test_a_trial_that_was_changed_in_the_file_is_refused(split, study):
    edited(study, "trial_user_attributes", lambda record: record | {"scores": [0.5, 0.25]})
    with refused(FileFormatError, "trial 0: it is damaged ", "checksum does not fit"):
        tune(SMALL, split, trials=2, study=study)
    edited(study, "trial_user_attributes", without_checksum)
    found = tune(SMALL, split, trials=2, study=study)
    assert found.searches[0].trials[0].scores == (0.5, 0.25)


UNREADABLE = " cannot be read or written as a study"
OTHER_VALUES = [
    ("trial", {"options": {}}, "trial 0: its options are not unobserved_weig"),
    ("trial", {"number": 1}, "its trials are not numbered 0, 1, "),
    ("trial", {"state": "failed"}, "trial 0: it has no scores"),
    (
        "trial",
        {"options": {"unobserved_weight": -1, "regularization": "x"}},
        "unobserved_weight=-1",
    ),
    ("trial", None, "trial 0: it is a NoneType, not an object"),
    ("trial", b"{", UNREADABLE),
    ("trial", b"\xff", UNREADABLE),
    ("study", [1], "'safecf settings': it is a list, not an object"),
]


@pytest.mark.parametrize(("table", "value", "words"), OTHER_VALUES)
def test_a_study_with_other_values_is_refused(split, study, table, value, words):
    def change(record):
        return without_checksum(record) | value if isinstance(value, dict) else value

    edited(study, f"{table}_user_attributes", change)
    with refused(FileFormatError, "study.sqlite", words, "choose another "):
        tune(SMALL, split, trials=1, study=study)
