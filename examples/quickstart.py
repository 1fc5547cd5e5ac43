"""From your own Parquet file to recommendations: `python examples/quickstart.py FILE USER ITEM`.

Without arguments, it invents a file of clicks.
"""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

import safecf
from safecf import IALS, SAFER2, datasets


def invent(path: str) -> tuple[str, str, str]:
    """Write a file of clicks, and return its name and the names of its columns."""
    clicks = datasets.synthetic(3000, 600, 120_000, tastes=30).matrix.tocoo()
    visitors = [f"visitor {user}" for user in clicks.row]
    pages = [f"page {item}" for item in clicks.col]
    pq.write_table(pa.table({"visitor": visitors, "page": pages}), path)
    return path, "visitor", "page"


if len(sys.argv) not in (1, 4):
    sys.exit("usage: python examples/quickstart.py FILE USER ITEM (its columns), or no arguments")
path, user, item = sys.argv[1:] or invent("invented-clicks.parquet")

# Is SAFER2 better for your worst-off users? Hold a tenth out, ten times: once is too few to tell.
print("comparing on ten splits, for about half a minute")
log = datasets.read(path, user=user, item=item)
data = log.interactions()
models, found = (IALS(random_state=0), SAFER2(random_state=0)), ([], [])
for split in log.repeated_strong_generalization(heldout=data.num_users // 10, repeats=10):
    for model, evaluations in zip(models, found, strict=True):
        model.fit(split.training, show_progress=False)
        evaluations.append(safecf.evaluate(model, split))
comparison = safecf.compare(found)
print(comparison.verdict("SAFER2"))
safecf.report(comparison, "report.html")

# Train on everybody, and recommend by the ids of the file, without what users have already.
model = SAFER2(random_state=0).fit(data, show_progress=False)
print("scaled to the data:", model.resolved)
safecf.batch.recommend_to_file(model, "recommendations.parquet", data, N=10, show_progress=False)
model.save("model.safetensors")

first = data.user_ids[0]
for row in model.recommend_frame([first], 3, user_items=data).to_pylist():
    print(f"{first}: {row['item']} ({row['score']:.3f})")
print("written: report.html, recommendations.parquet, model.safetensors")
