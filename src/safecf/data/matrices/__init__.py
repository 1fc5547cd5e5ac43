"""Matrices: from checked columns, or a scipy matrix, to `Interactions`.

In: record batches (`reading`), or a scipy.sparse matrix of users and items.
Out: `Interactions`, the data type that models are fitted on: CSR by user and by item, with ids.

    columns -> coo -> csr_from_coo   -> csr -> interactions
    scipy.sparse   -> csr_from_scipy -> csr -> interactions

Modules in reading order: `read_only`, `csr`, `ids`, `coo`, `csr_from_coo`, `csr_from_scipy`,
`interactions`, `summary`.
"""
