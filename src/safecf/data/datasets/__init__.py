"""Data sets: MovieLens, MSD and synthetic data by name, and any file by its columns.

In: a name or paths; official archives are found, or downloaded into a cache.
Out: a `Log`, the paper's `Split` of it, or a synthetic matrix with the taste of every user.

Modules in reading order: `dataset`, `movielens`, `msd`, `download`, `loading`, `synthetic`,
`titles`. The public functions are those of `safecf.datasets`.
"""
