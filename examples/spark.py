"""Train, evaluate and save on Spark: `python examples/spark.py`."""

import os
import sys

from pyspark.sql import SparkSession  # pip install 'safecf[spark]', and Java 17

from safecf import datasets
from safecf.spark import SAFER2, SAFER2Model, TailEvaluator, with_unobserved

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors need safecf, too
spark = SparkSession.builder.master("local[2]").getOrCreate()

# A table of ratings; yours comes from spark.read.parquet(...) or a catalogue.
pairs = datasets.synthetic(500, 200, 10_000).matrix.tocoo()
rows = [(f"user {u}", int(i), 1.0) for u, i in zip(pairs.row, pairs.col, strict=True)]
ratings = spark.createDataFrame(rows, "user string, item long, rating float")

# The Params are those of pyspark's ALS, and `tail`: the share of worst-off users to protect.
als = SAFER2(rank=16, maxIter=3, tail=0.3, numUserBlocks=2, numItemBlocks=2, seed=0)
training, heldout = with_unobserved(ratings, perUser=20).randomSplit([0.8, 0.2], seed=0)
model = als.fit(training)
auc = TailEvaluator(tail=0.3).evaluate(model.transform(heldout))
print(f"AUC of the worst-off 30 % of the users: {auc:.3f}")
model.recommendForAllUsers(5).show(3, truncate=60)

# New users are folded in; nobody has to be trained again.
new = spark.createDataFrame([("new user", 3, 1.0), ("new user", 7, 1.0)], ratings.schema)
model.recommendForFactors(model.foldIn(new), 5).show(truncate=60)

folder = os.path.abspath("spark-model")
model.write().overwrite().save(folder)
local = SAFER2Model.load(folder).to_local()  # a safecf.SAFER2, to be served
print(f"{local!r}: {len(local.user_ids)} users, {len(local.item_ids)} items")
