"""`TailEvaluator`: how well the worst-off users are served; `with_unobserved`: items to rank."""

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Self, Unpack

from pyspark import StorageLevel
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Params
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from safecf.checks import check_integer
from safecf.defaults import LEVEL
from safecf.measures.tails import ROUNDING, check_level
from safecf.spark.arguments import EvaluatorArguments
from safecf.spark.columns import check_different, known_column, known_type
from safecf.spark.params import declare, one_of, set_named, to_float, to_string, whole
from safecf.spark.persistence import Stored

# Approximate quantiles are off by 1 / ACCURACY of the users at most.
ACCURACY = 10_000

# Items are numbered in so many tasks at most.
BUCKETS = 256

# The columns of a table of rows to rank, and of one of users.
USER, POSITIVE, SCORE, VALUE = "user", "positive", "score", "value"


class EvaluatorParams(Params):
    """Params of `TailEvaluator`."""

    userCol, getUserCol, setUserCol = declare("userCol", "column of the users' ids", to_string)
    labelCol, getLabelCol, setLabelCol = declare(
        "labelCol", "column of labels: rows with a label above 0 are to rank first", to_string
    )
    predictionCol, getPredictionCol, setPredictionCol = declare(
        "predictionCol", "column of the predictions", to_string
    )
    metricName, getMetricName, setMetricName = declare(
        "metricName",
        "'auc', 'ndcg', 'recall' or 'loss'",
        one_of("metricName", "auc", "ndcg", "recall", "loss"),
    )
    tail, getTail, setTail = declare("tail", "the share of worst-off users; 1: everybody", to_float)
    k, getK, setK = declare(
        "k", "number of rows that 'ndcg' and 'recall' look at", whole("k", 1, 10)
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            userCol="user",
            labelCol="rating",
            predictionCol="prediction",
            metricName="auc",
            tail=LEVEL,
            k=10,
        )


class TailEvaluator(Evaluator, EvaluatorParams, Stored):
    """CVaR of a metric over users: its mean over the worst-off share `tail` of them.

    A user's rows with a label above 0 are to rank before the others, by their predictions; see
    `with_unobserved`. Missing predictions rank last. P and N are the numbers of these rows.

        auc      share of the P N pairs that are in order; ties count one half
        ndcg     sum_{r <= k} h_r / log2(r + 1)  /  sum_{r <= min(k, P)} 1 / log2(r + 1)
        recall   sum_{r <= k} h_r / min(k, P)
        loss     mean of (1 - prediction)^2 over the P rows; missing predictions count as 0

    Row r in the user's order is a hit, h_r = 1, if its label is above 0; where predictions tie,
    hits come last. Users who do not have rows of both kinds are left out, for 'loss' those with
    P = 0. The user on the boundary of the tail counts by the fraction that is left, as in
    `safecf.measures.tails`.

    >>> evaluator = TailEvaluator(metricName="ndcg", k=20, tail=0.1)
    >>> CrossValidator(estimator=als, estimatorParamMaps=grid, evaluator=evaluator)
    """

    def __init__(self, **params: Unpack[EvaluatorArguments]) -> None:
        super().__init__()
        self.setParams(**params)

    def setParams(self, **params: Unpack[EvaluatorArguments]) -> Self:
        """Set Params by name."""
        return set_named(self, params)

    def isLargerBetter(self) -> bool:
        """Whether a larger value is better: of all metrics but the loss."""
        return self.getMetricName() != "loss"

    def perUser(self, dataset: DataFrame) -> DataFrame:
        """Return the metric of every user who has one: user, value.

        >>> evaluator.perUser(predictions).orderBy("value").show()
        """
        for name in ("labelCol", "predictionCol"):
            kind = known_type(dataset, name, self.getOrDefault(name))
            if not isinstance(kind, NumericType):
                raise TypeError(
                    f"the column {name}={self.getOrDefault(name)!r} is of type "
                    f"{kind.simpleString()}; cast it to a number"
                )
        label = known_column(dataset, "labelCol", self.getLabelCol())
        prediction = known_column(dataset, "predictionCol", self.getPredictionCol())
        rows = dataset.select(
            known_column(dataset, "userCol", self.getUserCol()).alias(USER),
            F.coalesce(label > 0, F.lit(False)).alias(POSITIVE),
            F.when(~F.isnan(prediction), prediction.cast("double")).alias(SCORE),
        )
        return METRICS[self.getMetricName()](rows, self.getK())

    def _evaluate(self, dataset: DataFrame) -> float:
        tail = self.getTail()
        check_level(tail, "tail")
        values = self.perUser(dataset).select(VALUE).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            return self._tail_mean(values, tail)
        finally:
            values.unpersist()

    def _tail_mean(self, values: DataFrame, tail: float) -> float:
        """CVaR = 1/(tail n) sum_r clip(tail n - (r - 1), 0, 1) value_(r), the worst first."""
        sign = 1 if self.isLargerBetter() else -1
        scores = values.select((sign * F.col(VALUE)).alias(VALUE))
        count = scores.count()
        if not count:
            raise ValueError(
                f"no user has the metric {self.getMetricName()!r}: it needs rows with labels above "
                "0, and others to rank them among; add some with with_unobserved"
            )
        return sign * _lowest(scores, tail, tail * count) / (tail * count)


def _lowest(scores: DataFrame, tail: float, budget: float) -> float:
    """Return the sum of the `budget` lowest scores, the last of them counted in part.

    Approximate quantiles enclose the last one. Only the scores between these are collected, each
    once with its count; those below are summed up where they are.
    """
    for margin in (4 / ACCURACY, 1.0):  # the second encloses all
        shares = [max(tail - margin, 0.0), min(tail + margin, 1.0)]
        enclosing = scores.agg(F.percentile_approx(VALUE, shares, ACCURACY)).collect()[0][0]
        low, high = map(F.lit, enclosing)
        below = scores.where(F.col(VALUE) < low).agg(F.count("*"), F.sum(VALUE)).collect()[0]
        between = scores.where(F.col(VALUE).between(low, high)).groupBy(VALUE).count()
        total, left = below[1] or 0.0, budget - below[0]
        for score, count in sorted(map(tuple, between.collect())):
            taken = min(count, max(left, 0.0))
            total, left = total + taken * score, left - taken
        if abs(left) <= ROUNDING * budget:
            break
    return float(total)


def _auc(rows: DataFrame, k: int) -> DataFrame:
    """AUC_u = (sum of the positives' ranks - P (P + 1) / 2) / (P N), ties at their mean rank."""
    score = F.coalesce(F.col(SCORE), F.lit(-math.inf))
    same = rows.withColumn(SCORE, score).groupBy(USER, SCORE)
    ties = same.agg(F.count("*").alias("size"), F.count_if(POSITIVE).alias("hits"))
    below = Window.partitionBy(USER).orderBy(SCORE).rowsBetween(Window.unboundedPreceding, -1)
    before = F.coalesce(F.sum(F.col("size") - F.col("hits")).over(below), F.lit(0))
    misses = F.col("size") - F.col("hits")
    ranked = ties.withColumn("won", F.col("hits") * (before + misses / 2))
    users = ranked.groupBy(USER).agg(
        F.sum("won").alias("won"), F.sum("hits").alias("hits"), F.sum("size").alias("size")
    )
    pairs = F.col("hits") * (F.col("size") - F.col("hits"))
    return users.where(pairs > 0).select(USER, (F.col("won") / pairs).alias(VALUE))


def _ranked(rows: DataFrame, k: int, gain: Callable[[Column], Column]) -> DataFrame:
    """Sum the gains of the hits among the first k, with P; users need rows of both kinds."""
    order = Window.partitionBy(USER).orderBy(F.col(SCORE).desc_nulls_last(), POSITIVE)
    hit = F.col(POSITIVE) & (F.col("rank") <= k)
    users = rows.withColumn("rank", F.row_number().over(order)).groupBy(USER)
    summed = users.agg(
        F.sum(F.when(hit, gain(F.col("rank"))).otherwise(0.0)).alias("gained"),
        F.count_if(POSITIVE).alias("hits"),
        F.count("*").alias("size"),
    )
    return summed.where((F.col("hits") > 0) & (F.col("hits") < F.col("size")))


def _recall(rows: DataFrame, k: int) -> DataFrame:
    """Recall@k_u."""
    best = F.least(F.col("hits"), F.lit(k))
    found = _ranked(rows, k, lambda rank: F.lit(1.0))
    return found.select(USER, (F.col("gained") / best).alias(VALUE))


def _ndcg(rows: DataFrame, k: int) -> DataFrame:
    """nDCG@k_u."""
    found = _ranked(rows, k, lambda rank: 1 / F.log2(rank + 1))
    ranks = F.sequence(F.lit(1), F.least(F.col("hits"), F.lit(k)).cast("int"))
    ideal = F.aggregate(ranks, F.lit(0.0), lambda total, rank: total + 1 / F.log2(rank + 1))
    return found.select(USER, (F.col("gained") / ideal).alias(VALUE))


def _loss(rows: DataFrame, k: int) -> DataFrame:
    """loss_u = mean of (1 - prediction)^2 over the positive rows."""
    square = F.pow(1 - F.coalesce(F.col(SCORE), F.lit(0.0)), F.lit(2.0))
    return rows.where(POSITIVE).groupBy(USER).agg(F.mean(square).alias(VALUE))


METRICS: dict[str, Callable[[DataFrame, int], DataFrame]] = {
    "auc": _auc,
    "ndcg": _ndcg,
    "recall": _recall,
    "loss": _loss,
}


def with_unobserved(
    dataset: DataFrame,
    itemCol: str = "item",
    userCol: str = "user",
    ratingCol: str = "rating",
    perUser: int = 100,
    seed: int = 0,
) -> DataFrame:
    """Add for every user `perUser` items that he has no row for, drawn uniformly, with rating 0.

    Training ignores rows of rating 0; `TailEvaluator` ranks the others against them, and the mean
    of the AUC is that against all items (Krichene and Rendle, On Sampled Metrics for Item
    Recommendation, KDD 2020); 'ndcg' and 'recall' compare models on the same rows only. Users who
    have nearly all items get those that are left. The draw depends on the ids and the seed alone.

    >>> data = with_unobserved(ratings, perUser=100)
    >>> CrossValidator(estimator=als, evaluator=TailEvaluator(), ...).fit(data)
    """
    check_integer("perUser", perUser, 1, 100)
    check_integer("seed", seed, 0, 0)
    check_different(dataset, userCol=userCol, itemCol=itemCol, ratingCol=ratingCol)
    rating = known_type(dataset, "ratingCol", ratingCol)
    pairs = dataset.select(
        known_column(dataset, "userCol", userCol).alias("user"),
        known_column(dataset, "itemCol", itemCol).alias("item"),
    ).distinct()
    numbered, size = _numbered(pairs)
    prime = _prime_from(size)

    def drawn(salt: int, modulus: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(seed), F.lit(salt), F.col("user")), F.lit(modulus))

    # at_j = (start + j step) mod p meets every number below the prime p once, in an order of the
    # user's own; the first perUser + n_u + (p - size) of them have perUser that are left.
    users = pairs.groupBy("user").agg(F.count("*").alias("n"))
    last = F.least(F.col("n") + (perUser + prime - size), F.lit(prime)) - 1
    walk = users.select("user", F.explode(F.sequence(F.lit(0), last.cast("int"))).alias("j"))
    step = 1 + drawn(1, prime - 1)
    walk = walk.withColumn("at", F.pmod(drawn(0, prime) + F.col("j") * step, F.lit(prime)))
    new = walk.join(numbered, "at").join(pairs, ["user", "item"], "left_anti")
    order = Window.partitionBy("user").orderBy("j")
    first = new.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= perUser)
    added = first.select(
        F.col("user").alias(userCol),
        F.col("item").alias(itemCol),
        F.lit(0).cast(rating).alias(ratingCol),
    )
    return dataset.unionByName(added, allowMissingColumns=True)


def _numbered(pairs: DataFrame) -> tuple[DataFrame, int]:
    """Return every item with a number from 0 on, `at`, and how many there are.

    The numbers go through buckets of hashes, so that no task sorts all items.
    """
    bucket = F.pmod(F.xxhash64("item"), F.lit(BUCKETS)).alias("bucket")
    items = pairs.select("item", bucket).distinct()
    counts = sorted(tuple(row) for row in items.groupBy("bucket").count().collect())
    starts = accumulate((count for _, count in counts), initial=0)
    table = [(bucket, start) for (bucket, _), start in zip(counts, starts, strict=False)]
    offsets = pairs.sparkSession.createDataFrame(table, "bucket long, start long")
    place = F.row_number().over(Window.partitionBy("bucket").orderBy("item"))
    numbered = items.join(F.broadcast(offsets), "bucket")
    size = sum(count for _, count in counts)
    return numbered.select("item", (F.col("start") + place - 1).alias("at")), size


def _prime_from(low: int) -> int:
    """Return the smallest prime from `low` on, at least 3.

    >>> _prime_from(14)
    17
    """
    number = max(low, 3) | 1
    while any(number % each == 0 for each in range(3, math.isqrt(number) + 1, 2)):
        number += 2
    return number
