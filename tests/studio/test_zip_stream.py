"""A zip that is made while it is sent: the files of the manifest, and no other."""

import io
import json
import os
import zipfile

import pytest

from deniable.errors import ArtefactError
from deniable.studio.root_folder import PathError, RootFolder
from deniable.studio.zip_stream import list_files, zip_blocks

FORMAT = "deniable manifest 1"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root" / "sub" / "rel"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.csv").write_bytes(os.urandom(600_000))
    (folder / "inner" / "é.txt").write_text("x" * 100_000)
    (folder / "note.txt").write_text("no")
    (folder / "second.internal").mkdir()
    (folder / "second.internal" / "run.json").write_text("no")
    found = RootFolder(tmp_path / "root")
    write_manifest(found, "a.csv", "inner/é.txt")
    return found


def write_manifest(root, *names, form=FORMAT):
    document = {"format": form, "files": dict.fromkeys(names, "0")}
    (root.path / "sub" / "rel" / "manifest.json").write_text(json.dumps(document))


def test_the_zip_has_what_the_manifest_lists_under_one_folder(root):
    blocks = list(zip_blocks(root, "sub/rel"))
    assert len(blocks) > 2  # it is not held in memory
    with zipfile.ZipFile(io.BytesIO(b"".join(blocks))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["rel/a.csv", "rel/inner/é.txt", "rel/manifest.json"]
        assert archive.read("rel/a.csv") == (root.path / "sub/rel/a.csv").read_bytes()


def test_a_link_is_refused_before_the_first_block(root, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (root.path / "sub" / "rel" / "z.csv").symlink_to(tmp_path / "secret")
    write_manifest(root, "a.csv", "z.csv")
    with pytest.raises(PathError):
        zip_blocks(root, "sub/rel")


def test_a_missing_file_and_a_folder_are_refused_before_the_first_block(root):
    write_manifest(root, "a.csv", "z.csv")
    with pytest.raises(FileNotFoundError):
        zip_blocks(root, "sub/rel")
    write_manifest(root, "inner")
    with pytest.raises(PathError):
        zip_blocks(root, "sub/rel")


@pytest.mark.parametrize(
    "name", ["second.internal/run.json", "../x", "/etc/passwd", ".hidden", "a//b", "", "X.INTERNAL"]
)
def test_a_listing_that_leaves_the_release_is_refused(root, name):
    write_manifest(root, "a.csv", name)
    with pytest.raises(ArtefactError):
        zip_blocks(root, "sub/rel")


def test_an_internal_folder_is_refused_at_any_depth(root):
    rel = root.path / "sub" / "rel"
    rel.rename(rel.with_name("rel.internal"))
    with pytest.raises(PathError, match="stays inside"):
        zip_blocks(root, "sub/rel.internal")
    with pytest.raises(PathError, match="stays inside"):
        zip_blocks(root, "sub/rel.internal/inner")


@pytest.mark.parametrize("manifest", [[], {}, {"files": {}}, {"format": FORMAT, "files": []}])
def test_another_manifest_is_no_release(manifest):
    with pytest.raises(ArtefactError):
        list_files(manifest)


def test_files_are_listed_by_their_path():
    assert list_files({"format": FORMAT, "files": {"b": "0", "a/c": "0"}}) == [
        *("a/c", "b", "manifest.json"),
    ]
