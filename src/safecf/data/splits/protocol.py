"""The paper's split in numbers; they are the defaults of all splits and of the command line.

What depends on the data set (held-out users, shortest history, lowest rating) is in its record, in
`safecf.data.datasets`. Nothing is imported here, so that the command line starts fast.
"""

SEED = 98765
# Users with fewer interactions are dropped.
MIN_INTERACTIONS = 5
# Share of a held-out user's interactions that is hidden, rounded down ...
HIDDEN_SHARE = 0.2
# ... if the user has at least this many, whatever MIN_INTERACTIONS is (Liang et al., 2018).
SHORTEST_TO_HIDE = 5
# Splits of the robustness study, how many there may be at most, and the bound of their seeds.
REPEATS = 50
MOST_REPEATS = 1_000_000
SEED_BOUND = 100_000_000

# Our own, where the paper gives no number: the share of users held out for validation, and again
# for the test, and the share of interactions held out for validation.
HELDOUT_SHARE = 0.1
VALIDATION_SHARE = 0.1
