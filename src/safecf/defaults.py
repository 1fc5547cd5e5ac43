"""Defaults that evaluation, reports, tuning and the command line share.

Nothing is imported here, so that the command line can show them without loading numpy.
"""

CUTOFFS = (20, 50, 100)  # K
METRIC = "recall@20"
LEVEL = 0.3  # share of worst-off users that models protect, and verdicts and tuning are about
TAILS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # shares that tables show
RESAMPLES = 2000  # bootstrap draws behind an interval
CONFIDENCE = 0.95  # of an interval
SEED = 0  # of bootstrap draws and of random search
AUTO = "auto"  # an option that a fit derives from the data
