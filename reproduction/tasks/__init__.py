"""The functions of cells, apart from experiments: a change in their modules makes new cells."""
