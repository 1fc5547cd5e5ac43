"""Reading: from paths and frames to record batches of checked columns."""
