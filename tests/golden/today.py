"""What the library does today, as JSON: defaults, answers, exchanges, files; and a report."""

import asyncio
import gzip
import inspect
import json
import re
import tempfile
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from typer.main import get_command

import safecf
from safecf import approximate, batch, datasets, evaluation, serving, split, tuning
from safecf.cli.commands import app
from safecf.models import MODELS
from safecf.tuning.space import DEFAULT_RANGES

HERE = Path(__file__).parent
# Small enough for a file, and so exact that scores agree on every machine.
OPTIONS = {"factors": 6, "iterations": 8, "tolerance": 1e-6, "random_state": 0, "device": "cpu"}
LONGER = {"CVaRMF": {"iterations": 60}, "MultVAE": {"iterations": 4}}
SHORT = {"iterations": 4}  # a file holds the history
MODEL_METHODS = ("fit", "recommend", "recommend_frame", "similar_items", "similar_items_frame")
MODEL_METHODS += ("similar_users", "similar_users_frame", "explain", "explain_frame")
MODEL_METHODS += ("partial_fit_users", "partial_fit_items")


def likes():
    """The data of all answers: one line per user in likes.txt, one digit per item, its weight."""
    lines = (HERE / "likes.txt").read_text().split()
    return sp.csr_matrix([[int(digit) for digit in line] for line in lines], dtype=np.float32)


def named():
    users, items = likes().shape
    names = [f"user {user:02}" for user in range(users)]
    return safecf.Interactions.from_csr(likes(), names, range(100, 100 + items))


# Defaults


def defaults():
    """The defaults of models, functions and commands, by name."""
    public = {f"safecf.{name}": getattr(safecf, name) for name in ("compare", "evaluate", "tune")}
    public |= {"safecf.report": safecf.report, "safecf.Interactions": safecf.Interactions}
    public["safecf.batch.recommend_to_file"] = batch.recommend_to_file
    modules = (approximate, datasets, evaluation, serving, split, tuning)
    for module in modules:
        found = {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
        public |= {name: each for name, each in found.items() if each not in public.values()}
    models = {name: _of(kind) for name, kind in MODELS.items()}
    methods = {f"SAFER2.{name}": getattr(MODELS["SAFER2"], name) for name in MODEL_METHODS}
    for name, each in list(public.items()):
        if inspect.isclass(each) and each.__module__.startswith("safecf."):
            public |= {f"{name}.{method}": getattr(each, method) for method in _methods(each)}
    functions = {name: _of(each) for name, each in {**methods, **public}.items() if callable(each)}
    found = {
        "names": {module.__name__: sorted(module.__all__) for module in (safecf, *modules)},
        "models": models,
        "functions": {name: found for name, found in functions.items() if found},
        "data sets": {
            name: {key: v for key, v in vars(each).items() if key[:4] in ("held", "min_")}
            for name, each in datasets.DATASETS.items()
        },
        "ranges of tune": {name: repr(each) for name, each in DEFAULT_RANGES.items()},
        "commands": dict(_commands(get_command(app))),
    }
    return plain(found)


def _methods(kind):
    return [n for n in vars(kind) if n[0] != "_" and not isinstance(vars(kind)[n], property)]


def _of(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a type alias
        return {}
    known = (str, int, float, tuple, type(None))
    given = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    return {name: v if isinstance(v, known) else repr(v) for name, v in given.items()}


def _commands(command, words=("safecf",)):
    if hasattr(command, "commands"):
        for name in command.commands:
            yield from _commands(command.commands[name], (*words, name))
        return
    options = {}
    for each in command.params:
        told = each.show_default if isinstance(each.show_default, str) else each.default
        name = " / ".join([*each.opts, *each.secondary_opts])
        options[name] = str(told) if isinstance(told, Path) else told
    yield " ".join(words), options


# Answers


def fitted(name, **options):
    known = inspect.signature(MODELS[name]).parameters
    given = OPTIONS | LONGER.get(name, {}) | options
    given = {option: value for option, value in given.items() if option in known}
    return MODELS[name](**given).fit(named(), show_progress=False)


def answers(model):
    """What a model answers; of ALS models, also what its last epoch and its options have become."""
    users, data = np.arange(0, 60, 9), likes()
    new = data[users + 1].maximum(data[users + 2])
    found = {
        "recommend": model.recommend(users, data[users], N=6),
        "new users": model.recommend(users, new, N=6, recalculate_user=True),
        "similar items": model.similar_items(np.arange(0, 30, 5), N=6),
    }
    found = {each: {"ids": ids, "scores": scores} for each, (ids, scores) in found.items()}
    if hasattr(model, "fold_in"):
        factors = model.fold_in(new)
        found["fold_in"] = {"scores": (factors @ model.item_factors.T)[:, :5]}
    history = getattr(model, "history", None)
    if history:
        epoch, keys = vars(history[-1]), ("objective", "xi", "mean_weight")
        found["last epoch"] = {key: epoch[key] for key in keys if key in epoch}
        found["resolved"] = dict(model.resolved)
    return plain(found)


def automatic():
    """What "auto" means on little data, on more, and on much: users who have all items."""
    found = {}
    for users, items in ((60, 10), (64, 200), (512, 300)):
        for kind in (safecf.IALS, safecf.ERMMF):
            model = kind(1, iterations=1, random_state=0, device="cpu")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", safecf.ConvergenceWarning)  # nothing is learned
                model.fit(sp.csr_matrix(np.ones((users, items))), show_progress=False)
            found[f"{kind.__name__}, {users} users with {items} items"] = dict(model.resolved)
    return plain(found)


def plain(value):
    """Numbers, texts, lists and dictionaries, as they are read back from JSON."""
    shown = json.dumps(value, default=lambda array: np.asarray(array).tolist())
    return json.loads(shown, parse_float=lambda text: float(f"{float(text):.8g}"))


# The service

ASKED = [
    *(("GET", path, None) for path in ("/about", "/health", "/search?q=song&k=3", "/metrics")),
    *(("GET", path, None) for path in ("/", "/page.css", "/page.js", "/tail.js", "/icon.svg")),
    ("POST", "/recommend", {"history": [101, 102, 999], "k": 3}),
    ("POST", "/recommend", {"user": "user 07", "k": 2, "exclude": [104], "model": "baseline"}),
    ("POST", "/similar", {"item": 103, "k": 3}),
    ("POST", "/explain", {"item": 105, "history": [101, 102], "k": 2}),
    ("POST", "/items", {"ids": [101, 999]}),
    ("POST", "/history", {"user": "user 07"}),
    ("POST", "/reload", {}),
    ("POST", "/recommend", {"history": [101], "k": 0}),
    ("POST", "/recommend", {"user": "nobody"}),
    ("POST", "/recommend", b"{"),
    ("POST", "/recommend", b" " * 2**20 + b"{}"),
    ("DELETE", "/recommend", None),
    ("GET", "/nowhere", None),
    ("GET", "/about", {"host": "elsewhere.example"}),
    ("GET", "/about", {"authorization": "Bearer wrong"}),
    ("POST", "/similar", {"origin": "http://elsewhere.example"}),
]
HEADERS = {b"host", b"origin", b"authorization"}


def exchanges():
    """Status, headers and body of one exchange per path of the service, and of each problem."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        fitted("SAFER2").save(place / "model.safetensors")
        fitted("IALS").save(place / "baseline.safetensors")
        titles = [f"{item},Song {item}\n" for item in range(100, 130)]
        (place / "titles.csv").write_text("item,title\n" + "".join(titles))
        files = (place / "model.safetensors", place / "baseline.safetensors", place / "titles.csv")
        given = serving.Settings(*files, data=named(), token="secret", watch=0)
        return asyncio.run(_asked(serving.create_app(given)))


async def _asked(service):
    found = {"starting": await _exchange(service, "POST", "/similar", {"item": 103})}
    async with service.router.lifespan_context(service):
        for method, path, body in ASKED:
            about = "" if body is None else f" {str(body)[:60]}"
            found[f"{method} {path}{about}"] = await _exchange(service, method, path, body)
        document = await _exchange(service, "GET", "/openapi.json", None)
    found["openapi"] = {
        f"{method.upper()} {path}": {
            "name": each["operationId"],
            "answers": sorted(each["responses"]),
            "body": _defaults(each),
        }
        for path, methods in document["body"]["paths"].items()
        for method, each in methods.items()
    }
    return plain(found)


def _defaults(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return {
        kind: {name: part.get("default") for name, part in each["schema"]["properties"].items()}
        for kind, each in content.items()
    }


async def _exchange(service, method, target, body):
    """Ask the application as a server does."""
    path, _, query = target.partition("?")
    headers = {b"host": b"127.0.0.1", b"authorization": b"Bearer secret"}
    if isinstance(body, dict) and {*map(str.encode, body)} & HEADERS:
        headers |= {key.encode(): value.encode() for key, value in body.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    content = b"" if body is None else content
    headers |= {b"content-type": b"application/json", b"content-length": b"%d" % len(content)}
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method}
    scope |= {"scheme": "http", "path": path, "raw_path": path.encode(), "root_path": ""}
    scope |= {"query_string": query.encode(), "headers": list(headers.items())}
    scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000)}
    sent = []

    async def receive():
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message):
        sent.append(message)

    await service(scope, receive, send)
    headers = {key.decode().lower(): value.decode() for key, value in sent[0]["headers"]}
    text = b"".join(each.get("body", b"") for each in sent).decode()
    if "json" in headers["content-type"]:
        shown = json.loads(text)
        shown |= {"since": 0} if "since" in shown else {}
    else:  # names of metrics, or the first line of a file of the page
        shown = text.splitlines()[0]
        if path == "/metrics":
            shown = sorted({*re.findall(r"^# TYPE (.*)$", text, re.MULTILINE)})
    headers.pop("content-length", None)  # of numbers with more or fewer digits
    return {"status": sent[0]["status"], "headers": headers, "body": shown}


# The report


def report_text():
    """The text that the report shows of a fixed comparison, one piece per line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        page = safecf.report(comparison(90), path, data_summary={"Users": 90})
        reader = _Words()
        reader.feed(page.read_text(encoding="utf-8"))
    text = "\n".join(reader.words).replace(safecf.__version__, "VERSION")
    return text + "\n"


def comparison(users):
    evaluations = [_scores("IALS", 0, users), _scores("SAFER2", 0.15, users)]
    return safecf.compare(evaluations, resamples=200)


def _scores(model, gain, users):
    """Scores without ties at the digits that are shown; `gain` helps users below the median."""
    level = (np.arange(users) * 37 % users + 0.5) / users
    noise = np.sin(7.0 * np.arange(users) + 31 * gain) / 11
    scores = np.clip(level + noise + gain * (level < 0.5), 0, 1)
    count = np.arange(users)
    epochs = [
        {"epoch": n, "objective": 0.3 + 1 / n, "cvar": 0.4 + 1 / n, "xi": 0.3, "mean_weight": 0.3}
        for n in range(1, 7)
    ]
    return safecf.Evaluation(
        model=model,
        scores={"recall@20": scores, "ndcg@20": scores**1.3},
        k=(20,),
        tails=(0.1, 0.3, 1.0),
        users=evaluation.UserProfile(3 + count, 1 + count % 7, count / 97, group=count % 3),
        catalogue={"coverage@20": 0.2137 + gain, "gini@20": 0.9123},
        training={"class": model, "params": {"factors": 32, "tail": 0.3}, "history": epochs},
        losses=0.07 + (count % 31) / 47 - gain / 9,
        versions={"safecf": safecf.__version__},
    )


class _Words(HTMLParser):
    silent = 0

    def __init__(self):
        super().__init__()
        self.words = []

    def handle_starttag(self, tag, attrs):
        self.silent += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.silent -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.silent and data.strip():
            self.words.append(" ".join(data.split()))


# Files


def write_files(folder):
    """Write a model of every class, a checkpoint, a study and a comparison, by today's version."""
    folder.mkdir()
    for name in MODELS:
        fitted(name, **SHORT).save(folder / name)
    half = safecf.SAFER2(**OPTIONS | {"iterations": 2})
    half.fit(named(), show_progress=False, checkpoint=folder / "checkpoint")
    tuned(folder / "study.sqlite")
    (folder / "comparison.json").write_text(json.dumps(comparison(40).to_dict()))
    for large in ("study.sqlite", "comparison.json"):
        content = gzip.compress((folder / large).read_bytes(), mtime=0)
        (folder / f"{large}.gz").write_bytes(content)
        (folder / large).unlink()


def read_file(file):
    """What a model, a checkpoint, a study or a comparison answers today."""
    match file.name.partition(".")[0]:
        case "comparison":
            results = safecf.Comparison.from_dict(json.loads(gzip.decompress(file.read_bytes())))
            found = {"text": results.summary(), "tail": results.baseline.tail("ndcg@20", 0.1)}
        case "study":
            with tempfile.TemporaryDirectory() as place:
                study = Path(place) / "study.sqlite"
                study.write_bytes(gzip.decompress(file.read_bytes()))
                found = tuned(study)
        case "checkpoint":
            model = safecf.SAFER2(**OPTIONS | SHORT)
            found = answers(model.fit(named(), show_progress=False, resume=file))
        case _:
            found = answers(safecf.load(file))
    return plain(found)


def tuned(study):
    """Search three trials, or take them from the study."""
    pairs = likes().tocoo()
    parts = split.strong_generalization(pairs.row, pairs.col, heldout=12)
    space = {"regularization": tuning.LogUniform(0.01, 0.1), "bandwidth": None}
    space |= {"unobserved_weight": None}
    given = {"metric": "ndcg", "space": space, "trials": 3, "study": study}
    found = safecf.tune(safecf.SAFER2(**OPTIONS | SHORT), parts, show_progress=False, **given)
    return {"trials": found.trials}  # with the seconds that they took at first
