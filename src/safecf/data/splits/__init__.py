"""Splits: training users, held-out users, what is shown of them and what is to be predicted.

In: a `Log` (rows in the order of the file, with times), or arrays of users and items.
Out: a `Split`: the training matrix, and history and target of validation and test users.

Modules in reading order: `protocol`, `held_out`, `strong_generalization`, `known_users`, `log`,
`split_files`.
"""
