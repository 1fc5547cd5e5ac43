"""Train on a GPU if there is one: `python examples/gpu.py`."""

import time

from safecf import SAFER2, datasets, load

user_items = datasets.synthetic(4000, 1000, 200_000).matrix
model = SAFER2(64, random_state=0).to("auto")  # the GPU if there is one, else the CPU in C++

begin = time.perf_counter()
model.fit(user_items, show_progress=False)
print(f"{len(model.history)} epochs in {time.perf_counter() - begin:.2f} s, {model!r}")
ids = model.recommend_all(user_items, N=10)
print(f"user 0 gets {ids[0]}")

# To serve from a machine without a GPU: move the model to the CPU, and save it.
model.to("cpu").save("model.safetensors")
ids, scores = load("model.safetensors").recommend(0, user_items[0], N=10)
