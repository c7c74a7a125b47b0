"""Whether a verdict still holds: any change of content ends it, a new time alone does not."""

import json
import os
import shutil

import pytest

from deniable.studio.checked_files import is_unchanged, state_of_files


@pytest.fixture
def release(made_release, tmp_path):
    shutil.copytree(made_release / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def state(release):
    return json.loads(json.dumps(state_of_files(release)))


def append(path):
    with path.open("a") as file:
        file.write("x")


def swap(path):
    """Change content, and restore size and time of writing."""
    before = path.stat()
    text = path.read_bytes()
    path.write_bytes(text[:-2] + b"0\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        lambda out: append(out / "synthetic.csv"),
        lambda out: swap(out / "synthetic.csv"),
        lambda out: append(out / "manifest.json"),
        lambda out: append(out / "artefact" / "schema.toml"),
        lambda out: (out / "schema.toml").unlink(),
        lambda out: (out / "extra.csv").write_text("x"),
        shutil.rmtree,
    ],
)
def test_a_change_is_noticed(release, state, change):
    assert is_unchanged(release, state)
    change(release)
    assert not is_unchanged(release, state)


def test_the_same_content_with_another_time_is_unchanged(release, state):
    for path in (release / "synthetic.csv", release / "manifest.json"):
        os.utime(path, ns=(1, 1))
    assert is_unchanged(release, state)


def test_the_same_content_as_a_link_is_changed(release, state, tmp_path):
    shutil.move(release / "synthetic.csv", tmp_path / "moved.csv")
    (release / "synthetic.csv").symlink_to(tmp_path / "moved.csv")
    assert not is_unchanged(release, state)


@pytest.mark.parametrize("state", [{}, {"manifest": ""}, {"manifest": "0", "files": {}}])
def test_an_unknown_state_is_a_change(release, state):
    assert not is_unchanged(release, state)
