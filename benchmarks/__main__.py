"""`python -m benchmarks NAME`: run one benchmark and write its page under docs/results/."""

import typer

from benchmarks import epoch, memory, ml1m

app = typer.Typer(no_args_is_help=True, help=__doc__)
app.command("epoch")(epoch.main)
app.command("memory")(memory.main)
app.command("ml-1m")(ml1m.main)

if __name__ == "__main__":
    app()
