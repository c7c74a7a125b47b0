"""The server as a user starts it: one link, no log, a clean stop."""

import contextlib
import errno
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
from deniable.studio.server import count_running, listen, open_workspace, serve
from studio_client import record_release


@pytest.fixture
def started(folder):
    """The program, and the address that it prints."""
    command = [sys.executable, "-m", "deniable", "studio", "table.csv", "--no-browser"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    head = [process.stdout.readline() for _ in range(3)]
    found = re.search(
        r"http://(studio-[0-9a-f]{32}\.localhost:\d+)(/enter\?token=[0-9a-f]{64})", "".join(head)
    )
    assert found is not None, head
    assert "--host localhost" in head[2]
    yield process, found[1], found[2]
    if process.poll() is None:
        process.kill()
    process.communicate()


def ask(host, path, *, to="127.0.0.1", **headers):
    connection = http.client.HTTPConnection(to, int(host.partition(":")[2]), timeout=30)
    connection.request("GET", path, headers={"Host": host, **headers})
    reply = connection.getresponse()
    content = reply.read().decode()
    connection.close()
    return reply, content


@pytest.mark.slow
def test_it_serves_prints_no_log_and_stops_cleanly(started, folder):
    process, port, link = started
    assert ask(port, "/table?path=table.csv")[0].status == 403
    assert ask(f"127.0.0.1:{port.partition(':')[2]}", link)[0].status == 421
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
    assert "A new link, for one browser: http://studio-" in out
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


def test_nobody_else_can_listen_where_a_name_of_this_computer_leads():
    """Browsers may try ::1 before 127.0.0.1."""
    with contextlib.ExitStack() as stack:
        bound = [stack.enter_context(each) for each in listen("127.0.0.1", 0)]
        port = bound[0].getsockname()[1]
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with pytest.raises(OSError, match=r".") as caught:
                socket.create_server((address, port), family=family)
            assert caught.value.errno in (
                errno.EADDRINUSE,
                errno.EADDRNOTAVAIL,
                errno.EAFNOSUPPORT,
            )


def test_a_port_that_another_program_has_under_the_other_address_is_not_used():
    try:
        other = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("there is no IPv6 here")
    with other, pytest.raises(ConfigError, match="another --port"):
        listen("127.0.0.1", other.getsockname()[1])


def test_the_browser_is_given_a_file_of_this_user_and_no_token(folder, monkeypatch):
    opened = []

    def open_browser(address):
        page = Path(address.removeprefix("file://"))
        opened.append((address, page.read_text(), page.stat().st_mode, page.parent.stat().st_mode))

    printed: list[str] = []
    monkeypatch.setattr("deniable.studio.server.webbrowser.open", open_browser)
    monkeypatch.setattr("deniable.studio.server.uvicorn.Server.run", lambda *_, **__: None)
    serve(None, root=folder, host="127.0.0.1", port=0, opens_browser=True, announce=printed.append)
    [(address, text, mode, folder_mode)] = opened
    link = printed[1].rpartition(" ")[2]
    assert "/enter?token=" in link
    assert f'content="0;url={link}"' in text
    assert "token" not in address
    assert mode & 0o777 == 0o600
    assert folder_mode & 0o777 == 0o700
    assert not Path(address.removeprefix("file://")).parent.exists()


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
