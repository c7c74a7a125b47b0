"""The root: no path leaves it, by a parent, a link or a trick."""

import os

import pytest

from deniable.errors import ConfigError
from deniable.studio.root_folder import PathError, RootFolder

MANIFEST = '{\n  "format": "deniable manifest 1",\n  "version": "0"\n}\n'


@pytest.fixture
def root(tmp_path):
    inside = tmp_path / "inside"
    (inside / "sub" / "deep").mkdir(parents=True)
    (inside / "sub" / "people.csv").write_text("a\n1\n")
    (inside / ".ssh").mkdir()
    (inside / ".ssh" / "key.csv").write_text("secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "people.csv").write_text("secret")
    return RootFolder(inside)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/people.csv",
        "sub/../../outside/people.csv",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        ".ssh/key.csv",
        "sub/.hidden",
        "sub\\people.csv",
        "sub/people.csv\0",
        "sub\npeople.csv",
        "\x1b[2J",
    ],
)
def test_a_path_that_leaves_or_hides_is_refused(root, path):
    for use in (root.locate, root.new_path, root.entries):
        with pytest.raises(PathError):
            use(path)
    with pytest.raises(PathError), root.open(path):
        pass


def test_a_link_is_refused_as_file_as_folder_and_as_target(root, tmp_path):
    (root.path / "file.csv").symlink_to(tmp_path / "outside" / "people.csv")
    (root.path / "folder").symlink_to(tmp_path / "outside")
    (root.path / "own").symlink_to(root.path / "sub")
    for path in ("file.csv", "folder/people.csv", "own/people.csv"):
        with pytest.raises(PathError, match="link"):
            root.locate(path)
        with pytest.raises(PathError), root.open(path):
            pass
    with pytest.raises(PathError):
        root.new_path("folder/new.toml")
    assert {each.name: each.kind for each in root.entries()} == {
        "sub": "folder",
        "file.csv": "link",
        "folder": "link",
        "own": "link",
    }


def test_a_file_that_becomes_a_link_between_two_looks_is_refused(root, tmp_path):
    assert root.locate("sub/people.csv").read_text() == "a\n1\n"
    (root.path / "sub" / "people.csv").unlink()
    (root.path / "sub" / "people.csv").symlink_to(tmp_path / "outside" / "people.csv")
    with pytest.raises(PathError), root.open("sub/people.csv"):
        pass


def test_what_is_inside_is_opened(root):
    with root.open("sub/people.csv") as file:
        assert os.read(file, 10) == b"a\n1\n"
    assert root.locate("./sub//people.csv") == root.path / "sub" / "people.csv"
    assert root.relative(root.path / "sub" / "people.csv") == "sub/people.csv"
    assert [each.path for each in root.entries("sub")] == ["sub/deep", "sub/people.csv"]


def test_a_pipe_is_refused_and_does_not_block(root):
    os.mkfifo(root.path / "pipe.csv")
    with pytest.raises(PathError, match="regular"), root.open("pipe.csv"):
        pass
    assert "pipe.csv" not in [each.name for each in root.entries()]


def test_a_path_elsewhere_is_not_below_the_root(root, tmp_path):
    with pytest.raises(PathError):
        root.relative(tmp_path / "outside" / "people.csv")


def test_releases_are_found_three_levels_deep_and_hidden_ones_are_not(root):
    for name in ("one", "sub/two", "sub/deep/three", ".ssh/four", "sub/deep/more/four"):
        (root.path / name).mkdir(parents=True)
        (root.path / name / "manifest.json").write_text(MANIFEST)
    assert root.find_releases() == ["one", "sub/deep/three", "sub/two"]


def test_a_manifest_of_another_program_makes_no_release(root, tmp_path):
    (tmp_path / "manifest.json").write_text(MANIFEST)
    for at, text in enumerate(('{"name": "app"}', "{}", "", '["deniable manifest 1"]')):
        (root.path / f"app{at}").mkdir()
        (root.path / f"app{at}" / "manifest.json").write_text(text)
    for name in ("linked", "piped", "nested"):
        (root.path / name).mkdir()
    (root.path / "linked" / "manifest.json").symlink_to(tmp_path / "manifest.json")
    os.mkfifo(root.path / "piped" / "manifest.json")
    (root.path / "nested" / "manifest.json").mkdir()
    assert root.find_releases() == []
    assert {each.kind for each in root.entries()} == {"folder"}


def test_a_root_must_be_a_folder(root):
    with pytest.raises(ConfigError, match="no such folder"):
        RootFolder(root.path / "absent")
    with pytest.raises(ConfigError, match="not a folder"):
        RootFolder(root.path / "sub" / "people.csv")


def test_a_name_that_is_no_text_is_listed_and_a_long_one_is_a_clear_page(studio, folder):
    for name in (b"caf\xe9.csv", b"a\nb.csv", b"c\\d.csv"):
        (folder / os.fsdecode(name)).write_text("a\n1\n")
    page = studio.get("/", folder="")
    assert "caf\\udce9.csv" in page
    assert page.count("rename it to open it here") == 3
    assert "table.csv" in page
    for path in ("/table?path=", "/?folder=", "/schema?schema=", "/plan?schema="):
        reply = studio.client.get(path + "x" * 300)
        assert reply.status_code == 422, path
        assert "too long" in reply.text


def test_a_root_whose_path_is_no_text_is_refused(tmp_path):
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    with pytest.raises(ConfigError, match="rename it"):
        RootFolder(odd)
