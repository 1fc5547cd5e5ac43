"""`python -m benchmarks NAME`: run one benchmark and write its page under docs/results/."""

import typer

from benchmarks import (
    batch,
    coverage,
    cpu,
    demo,
    evaluation,
    fingerprints,
    gpu,
    memory,
    parquet,
    profiling,
    readme,
    serving,
    solvers,
    spark,
    synthetic,
)

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.command("batch")(batch.main)
app.command("coverage")(coverage.main)
app.command("cpu")(cpu.main)
app.command("demo")(demo.main)
app.command("evaluation")(evaluation.main)
app.command("fingerprints")(fingerprints.main)
app.command("gpu")(gpu.main)
app.command("memory")(memory.main)
app.command("parquet")(parquet.main)
app.command("readme")(readme.main)
app.command("profile")(profiling.main)
app.command("serving")(serving.main)
app.command("solvers")(solvers.main)
app.command("spark")(spark.main)
app.command("synthetic")(synthetic.main)

if __name__ == "__main__":
    app()
