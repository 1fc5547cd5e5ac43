"""Progress without a terminal: one line per minute."""

from safecf import progress


def test_a_file_gets_a_line_per_minute(monkeypatch, capsys):
    clock = iter(range(0, 1000, 25))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    bar = progress.progress_bar("cells", 0, 20, *progress.EPOCHS, show=True, numbers="")
    with bar as draw:
        for done in range(1, 11):
            draw(done, numbers=f"loss {done}")
        told = capsys.readouterr().err.splitlines()
    assert [line.split("loss ")[1].split()[0] for line in told] == ["3", "6", "9"]
    assert all(line.startswith("cells") and "/20" in line for line in told)


def test_nothing_is_drawn_without_show(capsys):
    with progress.progress_bar("cells", 0, 2, show=False) as draw:
        draw(1, numbers="")
    assert capsys.readouterr().err == ""
