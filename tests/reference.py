"""Slow formulas, each written once: what tests of all folders compare results with."""

import numpy as np


def dense(matrix) -> np.ndarray:
    """Return the confidences as a dense matrix."""
    out = np.zeros(matrix.shape)
    for row in range(matrix.num_rows):
        columns, confidence = matrix.row(row)
        out[row, columns] = confidence
    return out


def user_losses(users, loss, x, y) -> np.ndarray:
    """loss_u = a_u/2 sum_i c_ui (1 - x_u.y_i)^2 + b/2 sum_i (x_u.y_i)^2."""
    confidence, scores = dense(users), x @ y.T
    pair_weight = loss.pair_weight(users.row_mass())
    error = (confidence * (1 - scores) ** 2).sum(axis=1)
    return pair_weight / 2 * error + loss.unobserved_weight / 2 * (scores**2).sum(axis=1)


def objective(problem, weights, x, y) -> float:
    """sum_u count_u (w_u loss_u + ridge_u/2 |x_u|^2) + 1/2 sum_i ridge_i |y_i|^2."""
    losses = user_losses(problem.interactions.users, problem.loss, x, y)
    ridge_users = problem.unit_user_rows.ridge / 2 * (x**2).sum(axis=1)
    ridge_items = problem.unit_item_rows.ridge @ (y**2).sum(axis=1)
    counts = np.ones(len(x)) if problem.user_count is None else problem.user_count
    return counts @ (weights * losses + ridge_users) + ridge_items / 2


def gradient(function, at, step=1e-5) -> np.ndarray:
    """Return the central differences of a scalar function of a matrix."""
    slopes = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        slopes[index] = (function(up) - function(down)) / (2 * step)
    return slopes


def rotation_free(users, items) -> np.ndarray:
    """X Y' and Y Y', unchanged by a common rotation."""
    return np.concatenate([users, items]) @ items.T


def cosines(factors, query) -> np.ndarray:
    """y_i.q / |y_i| |q|, and 0 for rows of zero."""
    lengths = np.linalg.norm(factors, axis=1)
    return factors @ query / np.where(lengths > 0, lengths, 1) / np.linalg.norm(query)


def ranking(scores, left_out=()) -> list[int]:
    """Return all columns but those left out, best first, ties by index."""
    order = np.argsort(-np.asarray(scores), kind="stable")
    return [column for column in order.tolist() if column not in set(left_out)]


def places(index, queries, targets, exclude=None, exclude_all=None) -> np.ndarray:
    """Find the targets in a search of all items, from 1 on; 0 where one is not found."""
    ids, _ = index.search(queries, targets.num_columns, exclude, exclude_all)
    found = []
    for row, best in enumerate(ids):
        at = {item: place for place, item in enumerate(best.tolist(), start=1)}
        found += [at.get(item, 0) for item in targets.row(row)[0].tolist()]
    return np.array(found, dtype=np.int32)
