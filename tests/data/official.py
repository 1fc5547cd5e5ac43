"""Small files in the official formats of the public data sets."""

import zipfile

import numpy as np

from safecf import datasets


def random_rows(seed=0, num_users=40, num_items=30, density=0.4):
    """Return rows of user, item, rating and time, by user as MovieLens is."""
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((num_users, num_items)) < density)
    ratings = rng.integers(1, 6, users.size)
    times = rng.integers(10**9, 2 * 10**9, users.size)
    return [tuple(row) for row in np.transpose([users + 1, 3 * items + 2, ratings, times]).tolist()]


def ml_1m_text(rows):
    return "".join("::".join(map(str, row)) + "\n" for row in rows)


def ml_20m_text(rows):
    lines = [f"{user},{item},{rating}.0,{time}\n" for user, item, rating, time in rows]
    return "userId,movieId,rating,timestamp\n" + "".join(lines)


def msd_rows(rows):
    """Return user, song and count in an order that is not that of the ids."""
    names = {user: f"{(user * 7919) % 9973:040x}" for user, *_ in rows}
    return [(names[user], f"SO{item:016d}", rating) for user, item, rating, _ in rows]


def msd_text(rows):
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


ROWS = random_rows()
LIKED = [row for row in ROWS if row[2] >= 4]
SONGS = msd_rows(ROWS)

# name: (member of the archive, its text, the rows that are kept)
OFFICIAL = {
    "ml-1m": ("ml-1m/ratings.dat", ml_1m_text(ROWS), LIKED),
    "ml-20m": ("ml-20m/ratings.csv", ml_20m_text(ROWS), LIKED),
    "msd": ("train_triplets.txt", msd_text(SONGS), SONGS),
}


def archive(folder, name):
    """Write the official archive."""
    member, text, _ = OFFICIAL[name]
    path = folder / datasets.DATASETS[name].archive
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(f"{member.split('/')[0]}/README", "words")
        file.writestr(member, text)
    return path
