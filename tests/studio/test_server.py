"""The server as a user starts it: one link, no log, a clean stop."""

import hashlib
import http.client
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.errors import ConfigError, DataError
from deniable.studio.access_guard import Access
from deniable.studio.server import count_running, open_workspace, serve
from studio_client import record_release


@pytest.fixture
def started(folder):
    """The program, and the address that it prints."""
    command = [sys.executable, "-m", "deniable", "studio", "table.csv", "--no-browser"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    head = [process.stdout.readline() for _ in range(3)]
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/enter\?token=[0-9a-f]{64})", "".join(head))
    assert found is not None, head
    yield process, int(found[1]), found[2]
    if process.poll() is None:
        process.kill()
    process.communicate()


def ask(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": f"127.0.0.1:{port}", **headers})
    reply = connection.getresponse()
    content = reply.read().decode()
    connection.close()
    return reply, content


@pytest.mark.slow
def test_it_serves_prints_no_log_and_stops_cleanly(started, folder):
    process, port, link = started
    assert ask(port, "/table?path=table.csv")[0].status == 403
    reply, _ = ask(port, link)
    cookie = {"Cookie": reply.getheader("Set-Cookie").partition(";")[0]}
    assert reply.getheader("Server") is None
    assert "kelpfarmer" in ask(port, "/table?path=table.csv", **cookie)[1]
    assert ask(port, "/table?path=../x", **cookie)[0].status == 403
    assert ask(port, link)[0].status == 403
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert err == ""
    assert "table?path" not in out
    assert "A new link, for one browser: http://127.0.0.1" in out
    assert out.rstrip().endswith("The studio has stopped.")
    names = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert names == {"table.csv", "schema.toml", ".deniable-studio", ".deniable-studio/runs"}


@pytest.mark.parametrize("port", ["taken", 99_999])
def test_a_port_that_cannot_be_used_is_a_clear_error(folder, port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1] if port == "taken" else port
        with pytest.raises(ConfigError, match="another --port"):
            serve(
                None,
                root=folder,
                host="127.0.0.1",
                port=number,
                opens_browser=False,
                announce=print,
            )


def test_a_table_must_be_there_and_below_the_root(folder, tmp_path):
    access = Access("127.0.0.1", 1)
    with pytest.raises(DataError):
        open_workspace(folder / "absent.csv", None, access)
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="another --root"):
        open_workspace(folder / "table.csv", tmp_path / "other", access)
    (folder / "link.csv").symlink_to(folder / "table.csv")
    with pytest.raises(DataError, match="link"):
        open_workspace(folder / "link.csv", None, access)
    assert open_workspace(folder / "table.csv", None, access).first_table == "table.csv"


def test_a_folder_that_cannot_be_written_to_is_a_clear_error(folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ConfigError, match="cannot be written"):
        open_workspace(None, folder, Access("127.0.0.1", 1))


def test_runs_that_go_on_are_counted(studio):
    run = record_release(studio, "one")
    assert count_running(studio.space) == 0
    (studio.space.store.folder(run) / "0.lock").unlink()
    assert count_running(studio.space) == 1


def test_the_vendored_file_is_the_one_that_is_recorded():
    static = Path(open_workspace.__code__.co_filename).with_name("static")
    digest = hashlib.sha256((static / "htmx.min.js").read_bytes()).hexdigest()
    notice = (static / "NOTICE").read_text()
    assert f"SHA-256: {digest}" in notice
    assert "SPDX: 0BSD" in notice
    assert "htmx 2.0.11" in notice
    assert 'version:"2.0.11"' in (static / "htmx.min.js").read_text()
