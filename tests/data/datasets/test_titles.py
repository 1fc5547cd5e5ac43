"""Invented titles: all different, always the same, and of the genre of the items' tastes."""

from collections import Counter

from safecf.data.datasets.titles import GENRES, invent_titles
from safecf.datasets import synthetic


def test_titles_are_all_different_and_always_the_same():
    drawn = synthetic(3000, 2000, 60_000)
    titles = invent_titles(drawn)
    assert titles.equals(invent_titles(drawn))
    assert titles.column_names == ["item", "title", "genres", "year"]
    assert titles["item"].to_pylist() == list(range(2000))
    assert len(set(titles["title"].to_pylist())) == 2000
    other = invent_titles(synthetic(3000, 2000, 60_000, seed=1))
    assert other["title"].to_pylist() != titles["title"].to_pylist()


def test_users_like_the_genre_of_their_taste():
    drawn = synthetic(500, 300, 10_000, tastes=5, hits=0.1, roaming=0.1, overlap=0.0)
    genres = [each[0] for each in invent_titles(drawn)["genres"].to_pylist()]
    names = list(GENRES)
    for user in range(0, 500, 25):
        liked = Counter(genres[item] for item in drawn.matrix[user].indices)
        assert names[drawn.group[user]] in [name for name, _ in liked.most_common(2)]


def test_more_tastes_than_genres_share_them():
    drawn = synthetic(400, 300, 5000, tastes=2 * len(GENRES))
    found = {each[0] for each in invent_titles(drawn)["genres"].to_pylist()}
    assert found <= set(GENRES)
