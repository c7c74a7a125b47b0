"""A schema file is replaced whole, by a schema, and never over a newer one."""

import os
import stat

import pytest

from deniable.errors import OutputError, SchemaError
from deniable.studio.schema_file import SchemaFile, StalePageError


@pytest.fixture
def path(folder):
    return folder / "schema.toml"


def test_a_schema_is_written_with_its_mode_and_nothing_else_is_left(path):
    path.chmod(0o640)
    before = sorted(path.parent.iterdir())
    file = SchemaFile.read(path)
    new = file.write(f"# hello\n{file.text}")
    assert path.read_text() == new.text == f"# hello\n{file.text}"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(path.parent.iterdir()) == before


def test_what_is_no_schema_is_not_written(path):
    file = SchemaFile.read(path)
    for text in ("", "format = 1\n", "format = \n", file.text.replace("integer", "intger", 1)):
        with pytest.raises(SchemaError):
            file.write(text)
    assert path.read_text() == file.text


def test_a_broken_file_can_be_read_and_says_why(path):
    path.write_text("format = 1\n[[attribute]\n")
    file = SchemaFile.read(path)
    assert file.schema is None
    assert "line 2" in file.error
    assert file.columns == file.constraints == []


def test_an_older_page_is_refused(path):
    file = SchemaFile.read(path)
    file.require_version(file.version)
    path.write_text(f"# changed\n{file.text}")
    with pytest.raises(StalePageError, match="not saved"):
        SchemaFile.read(path).require_version(file.version)


def test_a_full_disk_leaves_the_old_schema(path, monkeypatch):
    file = SchemaFile.read(path)
    before = sorted(path.parent.iterdir())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="space"):
        file.write(f"# hello\n{file.text}")
    assert path.read_text() == file.text
    assert sorted(path.parent.iterdir()) == before


def test_what_is_no_text_is_an_error(path):
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SchemaError, match="UTF-8"):
        SchemaFile.read(path)
    path.write_bytes(b"#" * (2**22 + 1))
    with pytest.raises(SchemaError, match="large"):
        SchemaFile.read(path)
    with pytest.raises(SchemaError):
        SchemaFile.read(path.parent)


def test_a_link_is_not_read(path, tmp_path):
    """Its path was checked before; it may have become a link since."""
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    with pytest.raises(SchemaError):
        SchemaFile.read(link)
