"""Reading: from files and frames to checked columns.

In: paths, or a frame of pandas, polars or Arrow, and a `Layout` that names the columns.
Out: Arrow arrays, batch by batch, in the types of the library; errors name the file and the row.

Modules in reading order: `arrow`, `layout`, `paths`, `delimited`, `sources`, `times`, `columns`.
"""
