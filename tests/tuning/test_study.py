"""Studies on disk: a killed search goes on as if nothing had happened; others are refused."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import optuna
import pytest

from safecf import IALS, SAFER2, FileFormatError, tune
from safecf.tuning import LogUniform

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


def records(tuning):
    """Return all trials but for the seconds that they took."""
    return [
        [{**trial.to_dict(), "seconds": 0} for trial in search.trials] for search in tuning.searches
    ]


def stored_trials(study):
    """Return the number of trials by the name of the study."""
    with closing(sqlite3.connect(study)) as file:
        return dict(
            file.execute("SELECT study_name, COUNT(*) FROM trials NATURAL JOIN studies GROUP BY 1")
        )


def test_a_killed_search_goes_on_to_the_same_trials_and_the_same_best(split, tmp_path):
    study = tmp_path / "killed.sqlite"
    models = {"model": SAFER2(8, iterations=12), "against": [IALS(8, iterations=12)]}
    for deadly in (60, 150):
        command = [sys.executable, "-c", KILLED, str(study), str(deadly)]
        assert subprocess.run(command, check=False, timeout=120).returncode == -signal.SIGKILL
    counts = stored_trials(study)
    assert counts["SAFER2"] == 14  # killed once in the first model, once in the second
    assert 0 < counts["IALS"] < 14
    resumed = tune(data=split, trials=14, study=study, show_progress=False, **models)
    whole = tune(data=split, trials=14, show_progress=False, **models)
    assert records(resumed) == records(whole)
    assert resumed.best_options == whole.best_options
    for one, other in zip(resumed.evaluations, whole.evaluations, strict=True):
        assert one.tail("recall@20", 0.3) == other.tail("recall@20", 0.3)


def test_a_study_grows_to_the_number_of_trials_and_serves_smaller_ones(split, model, tmp_path):
    study = tmp_path / "s.sqlite"
    few = tune(model, split, trials=3, study=study, show_progress=False)
    more = tune(model, split, trials=6, study=study, show_progress=False)
    assert records(more)[0][:3] == records(few)[0]
    assert len(more.trials) == 6
    assert tune(model, split, trials=3, study=study, show_progress=False).trials == few.trials


def test_optuna_reads_the_study(split, model, tmp_path):
    study = tmp_path / "s.sqlite"
    found = tune(model, split, trials=8, study=study, show_progress=False)
    stored = optuna.load_study(study_name="SAFER2", storage=f"sqlite:///{study}")
    assert len(stored.trials) == 8
    for ours, theirs in zip(found.searches[0].trials, stored.trials, strict=True):
        assert theirs.state.name.lower() == ours.state
        assert theirs.params == ours.options
        assert tuple(theirs.values) == ours.scores
    stored._storage._backend.engine.dispose()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"objective": "mean"}, "objective both there, mean here"),
        ({"metric": "ndcg@20"}, "metric recall@20 there, ndcg@20 here"),
        ({"level": 0.5}, "share of worst-off users 0.3 there, 0.5 here"),
        ({"seed": 1}, "seed of the search 0 there, 1 here"),
        ({"model": SAFER2(8, iterations=9)}, "iterations 12 there, 9 here"),
        ({"space": {"bandwidth": LogUniform(0.1, 1.0)}}, "range of bandwidth None there, 0.1 to 1"),
        ({"space": {"bandwidth": None}}, "searched options .* here"),
    ],
)
def test_the_study_of_another_search_is_refused(split, model, tmp_path, changed, message):
    study = tmp_path / "s.sqlite"
    tune(model, split, trials=1, study=study, show_progress=False)
    arguments = {"model": model, "data": split, "trials": 1, "study": study, **changed}
    with pytest.raises(ValueError, match=rf"another search: .*{message}.*delete this one"):
        tune(show_progress=False, **arguments)


def test_threads_do_not_make_another_search(split, tmp_path):
    study = tmp_path / "s.sqlite"
    for threads in (0, 1):
        model = SAFER2(8, iterations=12, num_threads=threads)
        found = tune(model, split, trials=1, study=study, show_progress=False)
        assert len(found.trials) == 1


def test_files_that_are_no_studies_are_refused(split, model, tmp_path):
    wrong = tmp_path / "notes.txt"
    wrong.write_text("This is a text, and long enough to be no empty database." * 20)
    with pytest.raises(FileFormatError, match=r"notes.txt cannot be read or written as a study"):
        tune(model, split, trials=1, study=wrong, show_progress=False)
    assert wrong.read_text().startswith("This is a text")
    with pytest.raises(IsADirectoryError, match="is a folder; name the file of the study"):
        tune(model, split, trials=1, study=tmp_path, show_progress=False)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        tune(model, split, trials=1, study=tmp_path / "new" / "s", show_progress=False)
    with pytest.raises(ValueError, match="choose another name"):
        tune(model, split, trials=1, study=tmp_path / "what?", show_progress=False)


def test_two_searches_at_once_are_refused(split, tmp_path, monkeypatch):
    study = tmp_path / "both.sqlite"
    model, fit = IALS(4, iterations=2), IALS.fit
    ran = []

    def other_search(self, *arguments, **options):
        if not ran:
            ran.append(True)
            tune(model, split, trials=2, study=study, show_progress=False)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(IALS, "fit", other_search)
    with pytest.raises(OSError, match="another process has added trials; run one search at a time"):
        tune(model, split, trials=2, study=study, show_progress=False)
    assert stored_trials(study) == {"IALS": 2}


def test_trials_that_are_there_twice_are_refused(split, tmp_path):
    study = tmp_path / "twice.sqlite"
    tune(IALS(4, iterations=2), split, trials=2, study=study, show_progress=False)
    stored = optuna.load_study(study_name="IALS", storage=f"sqlite:///{study}")
    stored.add_trial(stored.trials[-1])
    with pytest.raises(FileFormatError, match="its trials are not numbered 0, 1"):
        tune(IALS(4, iterations=2), split, trials=3, study=study, show_progress=False)


def test_minutes_of_an_earlier_run_count(split, tmp_path):
    study = tmp_path / "minutes.sqlite"
    model = IALS(4, iterations=2)
    trials = tune(model, split, trials=4, study=study, show_progress=False).searches[0].trials
    minutes = (trials[0].seconds + trials[1].seconds / 2) / 60
    found = tune(model, split, trials=9, minutes=minutes, study=study, show_progress=False)
    assert found.searches[0].trials == trials[:2]


def test_a_study_is_of_all_that_trials_see(split, tmp_path):
    """The test users are not among it: other ones change no trial."""
    study, model = tmp_path / "study.sqlite", IALS(4, iterations=2)
    found = tune(model, split, trials=3, study=study, show_progress=False)
    other = replace(split, test=split.validation)
    assert tune(model, other, trials=3, study=study, show_progress=False).trials == found.trials
    assert records(tune(model, other, trials=3, show_progress=False)) == records(found)
    changes = [replace(split, train=split.train[::-1])]
    for part in ("history", "target"):
        users = replace(split.validation, **{part: getattr(split.validation, part)[::-1]})
        changes.append(replace(split, validation=users))
    for changed in changes:
        with pytest.raises(ValueError, match=r"another search: data .* there"):
            tune(model, changed, trials=1, study=study, show_progress=False)


def edited(study, table, change):
    """Replace the first record of a table by what `change` returns."""
    with closing(sqlite3.connect(study)) as file, file:
        key, text = file.execute(f"SELECT rowid, value_json FROM {table} LIMIT 1").fetchone()
        changed = json.dumps(change(json.loads(text)))
        file.execute(f"UPDATE {table} SET value_json = ? WHERE rowid = ?", (changed, key))


def test_a_trial_that_was_changed_in_the_file_is_refused(split, tmp_path):
    study, model = tmp_path / "study.sqlite", IALS(4, iterations=2)
    tune(model, split, trials=2, study=study, show_progress=False)
    edited(study, "trial_user_attributes", lambda record: record | {"scores": [0.5, 0.25]})
    with pytest.raises(FileFormatError, match=r"trial 0: it is damaged .* checksum does not fit"):
        tune(model, split, trials=2, study=study, show_progress=False)

    def without_checksum(record):  # as before there were checksums
        del record["checksum"]
        return record

    edited(study, "trial_user_attributes", without_checksum)
    found = tune(model, split, trials=2, study=study, show_progress=False)
    assert found.searches[0].trials[0].scores == (0.5, 0.25)


@pytest.mark.parametrize(
    ("table", "value", "message"),
    [
        ("trial_user_attributes", {"options": {}}, "trial 0: its options are not unobserved_weig"),
        ("trial_user_attributes", {"number": 1}, "its trials are not numbered 0, 1, "),
        ("trial_user_attributes", {"state": "failed"}, "trial 0: it has no scores"),
        (
            "trial_user_attributes",
            {"options": {"unobserved_weight": -1, "regularization": "x"}},
            r"trial 0: unobserved_weight=-1.* has to be",
        ),
        ("trial_user_attributes", None, "trial 0: it is a NoneType, not an object"),
        ("study_user_attributes", [1], "'safecf settings': it is a list, not an object"),
    ],
)
def test_a_study_with_other_values_is_refused(split, tmp_path, table, value, message):
    study, model = tmp_path / "study.sqlite", IALS(4, iterations=2)
    tune(model, split, trials=1, study=study, show_progress=False)

    def change(record):
        record.pop("checksum", None)
        return record | value if isinstance(value, dict) else value

    edited(study, table, change)
    with pytest.raises(FileFormatError, match=rf"study.sqlite.*{message}.*; choose another study"):
        tune(model, split, trials=1, study=study, show_progress=False)


@pytest.mark.parametrize("text", ["{", b"\xff"])
def test_records_that_are_no_json_are_refused(split, tmp_path, text):
    study, model = tmp_path / "study.sqlite", IALS(4, iterations=2)
    tune(model, split, trials=1, study=study, show_progress=False)
    with closing(sqlite3.connect(study)) as file, file:
        file.execute("UPDATE trial_user_attributes SET value_json = CAST(? AS TEXT)", (text,))
    with pytest.raises(FileFormatError, match=r"study.sqlite cannot be read or written as a study"):
        tune(model, split, trials=1, study=study, show_progress=False)
