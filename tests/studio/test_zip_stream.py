"""A zip that is made while it is sent."""

import io
import os
import zipfile

import pytest

from deniable.studio.root_folder import PathError, RootFolder
from deniable.studio.zip_stream import list_files, zip_blocks


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root" / "sub" / "rel"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.csv").write_bytes(os.urandom(600_000))
    (folder / "inner" / "é.txt").write_text("x" * 100_000)
    (folder / ".hidden").write_text("no")
    return RootFolder(tmp_path / "root")


def test_the_zip_has_all_files_under_one_folder(root):
    blocks = list(zip_blocks(root, "sub/rel"))
    assert len(blocks) > 2  # it is not held in memory
    with zipfile.ZipFile(io.BytesIO(b"".join(blocks))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["rel/a.csv", "rel/inner/é.txt"]
        assert archive.read("rel/a.csv") == (root.path / "sub/rel/a.csv").read_bytes()


def test_a_link_in_the_folder_is_refused(root, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (root.path / "sub" / "rel" / "b.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(PathError):
        list(zip_blocks(root, "sub/rel"))


def test_files_are_listed_by_their_path(root):
    assert list_files(root, "sub/rel") == ["a.csv", "inner/é.txt"]
