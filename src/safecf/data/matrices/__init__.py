"""Ids and matrices: from record batches to numbered users, items and a CSR matrix."""
