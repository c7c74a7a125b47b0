"""The command ``studio``: what it passes on, and what it refuses."""

import pytest

from deniable.cli import studio_command

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens here


@pytest.fixture
def served(monkeypatch):
    calls = []

    def serve(table, **given):
        calls.append((table, given))

    monkeypatch.setattr("deniable.studio.server.serve", serve)
    return calls


def test_it_listens_on_this_computer_only(deniable, served):
    result = deniable("studio")
    assert result.code == 0
    [(table, given)] = served
    assert table is None
    assert given["host"] == "127.0.0.1"
    assert given["port"] == 0
    assert given["opens_browser"]
    assert result.out == ""


def test_another_address_is_warned_of(deniable, served):
    result = deniable("studio", "t.csv", "--host", EVERYWHERE, "--port", "8000", "--no-browser")
    assert "WARNING" in result.out
    assert "not encrypted" in " ".join(result.out.split())
    [(table, given)] = served
    assert str(table) == "t.csv"
    assert (given["host"], given["port"], given["opens_browser"]) == (EVERYWHERE, 8000, False)


def test_the_plain_name_is_warned_of_as_its_cookie_goes_to_other_ports(deniable, served):
    result = deniable("studio", "--host", "localhost")
    assert "sends its cookie to every server" in " ".join(result.out.split())
    assert served[0][1]["host"] == "localhost"


def test_without_the_extra_it_says_what_to_install(deniable, served, monkeypatch):
    monkeypatch.setattr(studio_command, "find_spec", lambda name: None if name == "uvicorn" else 1)
    deniable("studio").complains(2, "uvicorn", "pip install 'deniable[studio]'")
    assert served == []


@pytest.mark.usefixtures("served")
def test_windows_is_told_what_works(deniable, monkeypatch):
    monkeypatch.setattr(studio_command.sys, "platform", "win32")
    deniable("studio").complains(2, "WSL")


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("port", ["x", "-1"])
def test_a_port_is_a_number(deniable, port):
    deniable("studio", f"--port={port}").complains(2, "--port")
