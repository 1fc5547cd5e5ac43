"""Attacks on the library's promises, with as many random cases as one has patience for.

An attack is a function of a random generator that tries one case and returns its outcome in a few
words; it raises if the promise is broken:

    @attack("A damaged model file is refused.", cases=10_000)
    def models(rng: np.random.Generator) -> str:
        ...
        return "refused"

`python -m soak` runs them with many cases in processes of their own, where a crash, a hang and a
hunger for memory are failures too. `tests/soak` runs each with a few.

files, stores   damaged and hostile models, checkpoints, evaluations, tables, texts, splits, studies
places          pipes, devices, folders and links in place of files; files that expand to gigabytes
settings        every option of every model over its whole range, on small and odd data
determinism     the same bits from any threads, processes, copies and orders
numbers         float32 against float64 on ill-conditioned problems
faults          training that is killed, interrupted, or out of disk
commands        the same for the command line
parsers         every parser of bytes; `python -m soak.parsers NAME` fuzzes it, guided by coverage
"""
