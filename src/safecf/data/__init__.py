"""Data: from a file to a CSR matrix, to a split, and data sets by name.

Four packages, in the order in which data flows; each imports only those before it:

1. `reading`: files and frames -> checked columns of users, items, weights and times
2. `matrices`: columns -> integer codes (COO) -> CSR -> `Interactions`, which models are fitted on
3. `splits`: a `Log` of interactions -> training users and held-out users
4. `datasets`: MovieLens, MSD and synthetic data by name

`limits` holds the largest numbers that the native code takes.
"""
