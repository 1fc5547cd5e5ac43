"""Downloads from a local server: complete, resumed, damaged and failed."""

import functools
import hashlib
import http.server
import socket
import threading
from dataclasses import replace

import pytest

from safecf import datasets
from safecf.data.datasets import download
from safecf.data.datasets.download import cache_folder, fetch
from tests.data.official import LIKED, archive

CONTENT = bytes(range(256)) * 3000
SUM = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT, and records the requested ranges."""

    daemon_threads = True
    content = CONTENT
    ranges = True
    stop_after = None  # bytes after which the connection ends
    shift = 0  # by which a range starts too late
    asked: list


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        if "missing" in self.path:
            self.send_error(404)
            return
        start = int(wanted.split("=")[1].rstrip("-")) if wanted and server.ranges else 0
        size = len(server.content)
        if start >= size:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{size}")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        if start:
            first = start + server.shift
            self.send_header("Content-Range", f"bytes {first}-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - start))
        self.end_headers()
        self.wfile.write(server.content[start : server.stop_after])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "TIMEOUT_SECONDS", 5)
    with Server(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        thread = threading.Thread(target=functools.partial(running.serve_forever, 0.02))
        thread.start()
        yield running
        running.shutdown()
        thread.join(5)


def url_of(server, name="file.zip"):
    return f"http://127.0.0.1:{server.server_address[1]}/{name}"


def test_a_download_with_and_without_a_progress_bar(server, tmp_path, capsys):
    target = tmp_path / "new" / "folder" / "file.zip"
    assert fetch(url_of(server), target, md5=SUM) == target
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.zip"]
    output = capsys.readouterr()
    assert output.out == ""
    assert "file.zip" in output.err
    fetch(url_of(server), tmp_path / "file.zip", show_progress=False)
    assert capsys.readouterr() == ("", "")


def test_a_broken_connection_is_resumed(server, tmp_path):
    target = tmp_path / "file.zip"
    server.stop_after = 100_000
    with pytest.raises(ConnectionError, match=r"100,000 of 768,000 bytes\); try again to go on"):
        fetch(url_of(server), target, md5=SUM, show_progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip.part"]
    server.stop_after = None
    fetch(url_of(server), target, md5=SUM, show_progress=False)
    assert target.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]


@pytest.mark.parametrize(
    ("part", "ranges", "asked"),
    [(b"something else", False, 1), (CONTENT, True, 1), (CONTENT + b"more", True, 2)],
    ids=["restarted", "complete", "too long"],
)
def test_a_part_that_is_there(server, tmp_path, part, ranges, asked):
    (tmp_path / "file.zip.part").write_bytes(part)
    server.ranges = ranges
    fetch(url_of(server), tmp_path / "file.zip", md5=SUM, show_progress=False)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert len(server.asked) == asked


def test_what_a_server_gets_wrong(server, tmp_path):
    target = tmp_path / "file.zip"
    with pytest.raises(ValueError, match=rf"is damaged: its md5 sum is {SUM}, not 0+; it was"):
        fetch(url_of(server), target, md5="0" * 32, show_progress=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConnectionError, match=r"Not Found\); try again .*pass path=.*put it at"):
        fetch(url_of(server, "missing"), target, show_progress=False)
    (tmp_path / "file.zip.part").write_bytes(CONTENT[:10])
    server.shift = 1
    with pytest.raises(ConnectionError, match="does not continue at byte 10"):
        fetch(url_of(server), target, show_progress=False)


def test_no_network(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path))
    monkeypatch.delenv("SAFECF_DATA", raising=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/ml-1m.zip"
    with monkeypatch.context() as patch:
        patch.setitem(datasets.DATASETS, "ml-1m", _at(url))
        with pytest.raises(ConnectionError, match=r"cannot download .*pass path=.*ml-1m\.zip"):
            datasets.load("ml-1m", show_progress=False)
    assert not list(tmp_path.iterdir())


def test_load_downloads_once(server, tmp_path, monkeypatch):
    (tmp_path / "origin").mkdir()
    server.content = archive(tmp_path / "origin", "ml-1m").read_bytes()
    monkeypatch.setenv("SAFECF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SAFECF_DATA", raising=False)
    dataset = _at(url_of(server, "ml-1m.zip"))
    monkeypatch.setitem(datasets.DATASETS, "ml-1m", dataset)
    logs = [datasets.load("ml-1m", show_progress=False) for _ in range(2)]
    assert server.asked == [None]
    assert [len(log) for log in logs] == [len(LIKED)] * 2


def _at(url):
    return replace(datasets.DATASETS["ml-1m"], url=url, md5=None)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"SAFECF_CACHE": "/c"}, "/c"),
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/safecf"),
        ("linux", {}, "/home/me/.cache/safecf"),
        ("darwin", {}, "/home/me/Library/Caches/safecf"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/safecf"),
    ],
)
def test_the_cache_folder(monkeypatch, platform, variables, expected):
    for name in ("SAFECF_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (variables | {"HOME": "/home/me"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(download.sys, "platform", platform)
    assert str(cache_folder()) == expected
