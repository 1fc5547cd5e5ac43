"""Random rows of interactions, and a slow twin of reading, merging and filtering."""

from collections import Counter

from hypothesis import strategies as st

integers = st.integers(-3, 12) | st.sampled_from([-(2**63), 2**63 - 1, 2**40])
# without NUL, which text files cannot hold
strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
safe_strings = st.text("abcé語-_. 0", min_size=1, max_size=3)


def rows_of(users, items, min_size=1):
    """Rows of user, item, rating from 1 to 5 and weight from 0 to 3."""
    return st.lists(
        st.tuples(users, items, st.integers(1, 5), st.sampled_from([0.0, 0.5, 1.0, 2.5])),
        min_size=min_size,
        max_size=25,
    )


def slow(rows, *, weighted=False, min_rating=None, min_user=1, min_item=1, duplicates="sum"):
    """Return {(user, item): weight} of the kept pairs, and the kept users and items in order."""
    rows = [row for row in rows if min_rating is None or row[2] >= min_rating]
    users, items = (list(dict.fromkeys(row[at] for row in rows)) for at in (0, 1))
    weights = {}
    for user, item, _, weight in rows:
        weights.setdefault((user, item), []).append(weight if weighted else 1.0)
    choose = {"sum": sum, "max": max, "first": lambda w: w[0], "last": lambda w: w[-1]}
    merged = {pair: choose[duplicates](found) for pair, found in weights.items()}
    merged = {pair: weight for pair, weight in merged.items() if weight > 0}
    for at, minimum in ((1, min_item), (0, min_user)):
        count = Counter(pair[at] for pair in merged)
        merged = {pair: w for pair, w in merged.items() if count[pair[at]] >= minimum}
    left = [{pair[at] for pair in merged} for at in (0, 1)]
    return merged, [u for u in users if u in left[0]], [i for i in items if i in left[1]]


def entries(interactions):
    """Return {(user id, item id): weight}; assert that `users` and `items` agree."""
    found = {}
    for row in range(interactions.num_users):
        for column, weight in zip(*interactions.users.row(row), strict=True):
            found[interactions.user_ids[row], interactions.item_ids[column]] = float(weight)
    again = {}
    for row in range(interactions.num_items):
        for column, weight in zip(*interactions.items.row(row), strict=True):
            again[interactions.user_ids[column], interactions.item_ids[row]] = float(weight)
    assert again == found
    return found


def assert_same(interactions, expected):
    merged, users, items = expected
    assert entries(interactions) == merged
    assert interactions.user_ids.tolist() == users
    assert interactions.item_ids.tolist() == items
    ones = all(weight == 1 for weight in merged.values())
    assert (interactions.users.weights is None) == ones
