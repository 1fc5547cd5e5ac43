"""Which cell a figure is, where neither an interval nor a neighbour ties it to a line.

SOURCES has, by page, phrases with # for a figure and its interval, and for each # a cell of a table
or a place in a text. Pages of sources are named from docs/results.
"""

from typing import NamedTuple


class Cell(NamedTuple):
    """A cell of the first table below a text that has such a row and column."""

    page: str
    above: str
    row: str
    column: str


class Phrase(NamedTuple):
    """A place in prose or in an output; it may have several #."""

    page: str
    text: str


OURS = "safecf SAFER2, spectral CG (0.001)"
EXACT = "safecf SAFER2, exact"
PEER = "implicit ALS, CG (3 steps)"
MEDIAN = {"cpu": "seconds, median", "gpu": "ms, median"}
OUTSIDE = "SAFER2, tuned, ridge outside"
GAINS = "What SAFER2 gains over iALS, in percent"
RIDGE = "What SAFER2 gains by the users' ridge in the risk"
RECALL = "R@20", "R@20, worst-off 30 %"
TAIL = "nDCG, worst-off 30 %"
TUNED = "mean and tail"


def epoch(page, shape="ML-20M", row=OURS):
    return Cell(page, f"One epoch, {shape} shape", row, MEDIAN[page])


def part(page, column, above="One epoch", row=OURS):
    return Cell(page, above, row, column)


def topk(row):
    return Cell("cpu", "## Top-k", row, "product = 1, median of pairs")


def tuned(row):
    return Cell("frontier", "The settings; options", row, "options")


def frontier(row, column="R@20"):
    return Cell("frontier", "What one model gains", row, column)


def tail(row):
    return frontier(row, RECALL[1])


def robust(other):
    return Cell("robustness", "", f"SAFER2 / {other} | R@20", "gain of the mean")


def authors(following):
    return Phrase("table-1", f"| authors' code | # | {following} |")


def load(clients, column):
    return Cell("serving", "", clients, f"{column}, ms")


def gained(above, data, column, settings="defaults"):
    page = {"gowalla": "defaults-gowalla", "steam": "defaults-steam"}.get(data, "defaults")
    return Cell(page, above, f"{data} | {settings}", column)


def on_spark(size, d, row, column="s per epoch"):
    return Cell("spark", "One epoch", f"{size} | {d} | {row}", column)


SMALL, LARGE = "20,000 x 5,000 x 1,000,000", "200,000 x 50,000 x 10,000,000"
ALS = "pyspark ALS, native BLAS"
FLOORS, ABOVE = "Their floors", "Where the rest goes"
SPEED_ROWS = {
    "spectral CG": OURS,
    "CG, at most 5 steps": "safecf SAFER2, CG (at most 5 steps)",
    "exact": EXACT,
    "subspace, blocks of 64": "safecf SAFER2, subspace (blocks of 64)",
}
README_ROWS = {
    "iALS, defaults": "iALS, defaults",
    "iALS, tuned, 512 factors": "iALS, tuned, d = 512",
    "ERM-MF (SAFER2 without a tail), tuned": "ERM-MF, tuned",
}
README_GAINS = {
    "SAFER2, defaults": "SAFER2, defaults",
    "SAFER2, tuned, `ridge_in_risk=False`": OUTSIDE,
}
COVERAGE = {4: "1.2 | 4", 15: "4.5 | 15", 30: "9 | 30", 60: "18 | 60"}

SOURCES = {
    "README.md": {
        "over that iALS (#). Over": [
            frontier("SAFER2, defaults / iALS, tuned, d = 512", "R@50, worst-off 30 %")
        ],
        "its average recall@50 is lower (#)": [
            frontier("SAFER2, defaults / ERM-MF, tuned", "R@50"),
        ],
        "| SAFER2, two cores | # s | # s |": [epoch("cpu"), epoch("cpu", "MSD")],
        "| implicit's ALS (CG), the same two cores | # s | # s |": [
            epoch("cpu", row=PEER),
            epoch("cpu", "MSD", PEER),
        ],
        "| SAFER2, one H200 | # ms | # ms |": [epoch("gpu"), epoch("gpu", "MSD")],
        **{
            f"| {name} | # | # | | |": [Cell("frontier", "", row, column) for column in RECALL]
            for name, row in README_ROWS.items()
        },
        **{
            f"| {name} | # | # | # | # |": [
                *(Cell("frontier", "", row, column) for column in RECALL),
                *(frontier(f"{row} / iALS, tuned, d = 512", column) for column in RECALL),
            ]
            for name, row in README_GAINS.items()
        },
    },
    "batch.md": {
        f"| visitor 7 | page {page} | # |": [Phrase("../tutorial", f"│ page {page} │ # │")]
        for page in (398, 498)
    },
    "choosing.md": {
        "Gowalla loses # % of recall@20": [gained(RIDGE, "gowalla", "R@20")],
        "with `normalisation` # and 512 factors": [tuned(OUTSIDE)],
        "tuning chose #, and gained # % for all users and # % for the tail": [
            tuned(OUTSIDE),
            *(frontier(f"{OUTSIDE} / {OUTSIDE}, rho = 1", column) for column in RECALL),
        ],
        "with the ridge inside it chose #,": [tuned("SAFER2, tuned")],
        "half-steps is #e-04 to #e-03": [
            Cell("cpu", "ML-20M shape", OURS, "error of items"),
            Cell("cpu", "MSD shape", OURS, "error of users"),
        ],
    },
    "cli.md": {
        "at d = 256 take # microseconds on one core": [
            Cell("cpu", "## Top-k", "its top-k, `model.recommend_factors`", "microseconds, median")
        ],
    },
    "defaults.md": {
        "nDCG gains # % on ML-1M, # % on Book-Crossing, # % on Gowalla and # % on `short`": [
            gained(RIDGE, data, "nDCG") for data in ("ml-1m", "book-crossing", "gowalla", "short")
        ],
        "and loses # % on `demo`": [gained(RIDGE, "demo", "nDCG")],
        "it costs # % of recall@20 on ML-1M, and gains # % on `short` and # % on Steam": [
            gained(RIDGE, data, "R@20", TUNED) for data in ("ml-1m", "short", "steam")
        ],
        "the ridge outside has # % more than the defaults": [
            frontier(f"{OUTSIDE} / SAFER2, defaults")
        ],
    },
    "evaluation.md": {
        f"| {users} | # | # to # % |": [
            Cell("coverage", "", row, "users in the tail"),
            Phrase("coverage", f"# to # % of the samples of {users} users"),
        ]
        for users, row in COVERAGE.items()
    },
    "from-implicit.md": {
        "have # to # % more recall@20 than implicit's": [
            Cell(f"defaults-{data}", "What the defaults gain", f"{data} | R@20", "iALS")
            for data in ("steam", "gowalla")
        ],
    },
    "from-spark.md": {
        "take # GB to train on": [Phrase("../cli", "to train on it    # GB")],
    },
    "gpu.md": {
        "takes # ms on data of the shape of ML-20M with 256 factors, and # ms on": [
            epoch("gpu"),
            epoch("gpu", "MSD"),
        ],
        "on the latter takes # s. The 49 epochs after the first take # s of it": [
            Cell("gpu", "A whole fit", row, "seconds")
            for row in ("`fit`", "of it the other 49 epochs")
        ],
        "by `recommend_all`, take # s": [
            Cell("gpu", "## Top-k", "`model.recommend_all`", "seconds, median")
        ],
    },
    "method.md": {
        "Steps 1 to 3 take # % of an epoch": [part("cpu", "losses and quantile, share")],
        "its # to # steps per row make": 2 * [part("cpu", "CG steps", FLOORS)],
        "an epoch of # s on two cores, where exact solves take # s": [
            epoch("cpu"),
            epoch("cpu", row=EXACT),
        ],
    },
    "reproduce.md": {
        "ERM-MF and SAFER2 is #, # and #, that of their C++ #, # and #.": [
            *(Cell("table-1", "", model, "R@20") for model in ("iALS", "ERM-MF", "SAFER2")),
            *(authors(following) for following in ("0.4710", "0.4655", "0.4797")),
        ],
        "does better here, # against #.": [
            Cell("table-1", "", "CVaR-MF", "R@20"),
            authors("0.4560"),
        ],
        "SAFER2 gains # % over iALS at R@20": [robust("iALS")],
        "over ERM-MF # % and": [robust("ERM-MF")],
        "with spectral CG takes # s on the shape of ML-20M and # s on": [
            Cell("runtime", "", "SAFER2 | spectral CG", "seconds"),
            Cell("runtime-msd-like", "", "SAFER2 | spectral CG", "seconds"),
        ],
        "as in the paper, it takes # and # s; the paper reports # and # s on 96 cores": [
            Cell(page, "", "SAFER2 | exact", column)
            for column in ("seconds", "the paper")
            for page in ("runtime", "runtime-msd-like")
        ],
        "on another machine: # s and # s with spectral CG, and # s with exact solves": [
            epoch("cpu"),
            epoch("cpu", "MSD"),
            epoch("cpu", row=EXACT),
        ],
    },
    "serving.md": {
        "took one client # ms, # ms at the 99th percentile": [load("1", "p50"), load("1", "p99")],
        "32 clients got # answers a second, half of them within # ms and 99 % within #,": [
            Cell("serving", "", "32 | 737,334", column)
            for column in ("answers/s", "p50, ms", "p99, ms")
        ],
    },
    "speed.md": {
        "MovieLens-20M takes # seconds on two cores": [epoch("cpu")],
        "`implicit` on the same matrix # (": [epoch("cpu", row=PEER)],
        **{
            f"| {name} | # | # | # |": [
                epoch("cpu", row=row),
                part("cpu", "floor", FLOORS, row),
                part("cpu", "measured / floor", FLOORS, row),
            ]
            for name, row in SPEED_ROWS.items()
        },
        "users need # steps and items #,": 2 * [part("cpu", "CG steps", FLOORS)],
        "Losses and quantile are # % of": [part("cpu", "losses and quantile, share")],
        "is # ± # with bfloat16, and # ± # in float32": [
            Cell("cpu", "## Precision", f"SAFER2, d = 256 | {tolerance}", "R@20")
            for tolerance in 2 * ["1e-3, bfloat16 (default)"] + 2 * ["1e-6, float32"]
        ],
        "# milliseconds at d = 512 on two threads and # on one, where LAPACK takes # on one": [
            Cell("cpu", "## Eigenvectors", "512", column)
            for column in ("2 threads", "1 threads", "evd")
        ],
        "An H200 takes # milliseconds": [epoch("gpu")],
        "# times its floor of #, of which # are": [
            part("gpu", column, FLOORS) for column in ("measured / floor", "floor", "eigh")
        ],
        "# milliseconds of the quantile, # of the rotations, # of the users and # of the items": [
            part("gpu", column, ABOVE) for column in ("quantile", "rotate", "users", "items")
        ],
        "for 100000 users take # times as long": [topk("safecf, `model.recommend`")],
        "`implicit` takes # times as long": [topk("implicit, `model.recommend`")],
    },
    "where.md": {
        "the tail gains, by # to # % of nDCG and # to # % of recall@20": [
            gained(GAINS, data, column, TUNED)
            for column in (TAIL, RECALL[1])
            for data in ("ml-1m", "demo")
        ],
        "a little worse, by # % of nDCG on both": [gained(GAINS, "gowalla", TAIL, TUNED)],
        "SAFER2 gains # % of the tail's nDCG": [gained(GAINS, "steam", TAIL, TUNED)],
        "the tail loses # % of nDCG": [gained(GAINS, "short", TAIL, TUNED)],
        "# % on ML-1M, # % on `demo`, # % on Steam and # % on `short`. On": [
            gained(GAINS, data, TAIL) for data in ("ml-1m", "demo", "steam", "short")
        ],
        "nDCG itself loses: # on both": [gained(GAINS, "gowalla", "nDCG")],
        "`SAFER2()` gains # % for the tail over `IALS()` and # % over the best iALS": [
            tail(f"SAFER2, defaults / {other}")
            for other in ("iALS, defaults", "iALS, tuned, d = 512")
        ],
        "the average is below ERM-MF's (#;": [frontier("SAFER2, defaults / ERM-MF, tuned", "R@50")],
    },
    "index.md": {
        "at d = 256 takes # s, where implicit's and irspack's ALS take # and # s": [
            epoch("cpu"),
            epoch("cpu", row=PEER),
            epoch("cpu", row="irspack IALS, CG (3 steps)"),
        ],
        "at d = 512, # s and implicit's # s": [epoch("cpu", "MSD"), epoch("cpu", "MSD", PEER)],
        "these epochs take # and # times as long": [
            Cell("cpu", f"One epoch, {shape} shape", OURS, "measured / floor")
            for shape in ("ML-20M", "MSD")
        ],
        "for everybody takes # times as long": [topk("safecf, `model.recommend`")],
        "20000 items takes # microseconds on one core": [
            Cell(
                "cpu",
                "## Top-k",
                "`model.recommend(recalculate_user=True)`",
                "microseconds, median",
            )
        ],
        "these epochs take # and # ms": [epoch("gpu"), epoch("gpu", "MSD")],
        "takes # s at d = 32 and # s at d = 128, where pyspark's ALS": [
            on_spark(SMALL, d, "safecf SAFER2") for d in (32, 128)
        ],
        "with a native BLAS takes # and # s": [on_spark(SMALL, d, ALS) for d in (32, 128)],
        "for ten times the data # and # s, ALS # and # s": [
            on_spark(LARGE, d, row) for row in ("safecf SAFER2", ALS) for d in (32, 128)
        ],
        "at d = 32 takes # s, ALS's # s": [
            on_spark(SMALL, 32, row, "whole fit, s (epochs)") for row in ("safecf SAFER2", ALS)
        ],
        "five metrics, takes # times as long as the bare matrix product, and # times": [
            Cell("evaluation", "", row, "product = 1")
            for row in ("evaluation of IALS", "and auc, ndcg and log_rank")
        ],
        "of Parquet come in within # GiB": [
            Cell("parquet", "", "strings | 100,000,000", "peak, GiB")
        ],
    },
}
