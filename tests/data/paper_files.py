"""The six files of the paper's split: their checksums for ML-1M, and a slow way to write them."""

ML1M_SUMS = {
    "train.csv": "5e9f12657a6492112511603426d999f64905e940e5b2be5b4af978bc46a443ec",
    "validation_tr.csv": "f701265f3f0ba6245c187e3ef23c36d7e9ba2e8c85e9a405b8533285c90c8c24",
    "validation_te.csv": "8e2d06d4359fbd47ea23124b9845fa29d8d739b6a56c01f9c5fa8a0b146879f4",
    "test_tr.csv": "9bbc3f35a1fbe0cf63e3751c0b9b941bd6c79bf54192eaed35d4df4a8095a6c4",
    "test_te.csv": "4ccd72972227549c0e4cf334b04b52db115ef84432aa88ba9a3fa09bf08f9577",
    "unique_sid.txt": "b6b0f586dbe7c38b1344aebfd3e8c3a8c69b0044441d8812a7c521da0b418d12",
}


def files_of(split, users, items):
    """Write the split as Liang et al. do; uid is counted over the three sets of users.

    Lines are in the order of the interactions, those of held-out users grouped by original id.
    """
    uid = {user: number for number, user in enumerate(split.user_ids.tolist())}
    sid = {item: number for number, item in enumerate(split.item_ids.tolist())}
    pairs = [
        (uid[user], sid[item])
        for user, item in zip(users.tolist(), items.tolist(), strict=True)
        if user in uid and item in sid
    ]
    by_id = sorted(pairs, key=lambda pair: split.user_ids[pair[0]])
    begin_validation = split.train.shape[0]
    begin_test = begin_validation + split.validation.history.shape[0]

    def lines(pairs, matrix, begin):
        rows, columns = matrix.nonzero()
        inside = set(zip((rows + begin).tolist(), columns.tolist(), strict=True))
        assert len(inside) == matrix.nnz
        chosen = [pair for pair in pairs if pair in inside]
        assert len(chosen) == matrix.nnz
        return "uid,sid\n" + "".join(f"{user},{item}\n" for user, item in chosen)

    return {
        "train.csv": lines(pairs, split.train, 0),
        "validation_tr.csv": lines(by_id, split.validation.history, begin_validation),
        "validation_te.csv": lines(by_id, split.validation.target, begin_validation),
        "test_tr.csv": lines(by_id, split.test.history, begin_test),
        "test_te.csv": lines(by_id, split.test.target, begin_test),
        "unique_sid.txt": "".join(f"{item}\n" for item in split.item_ids),
    }
