"""A studio on a folder with the small table, its schema, and a release of it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from measured_release import make_measured_release
from studio_client import StudioClient, record_release


@pytest.fixture
def folder(tmp_path: Path, small_files: Path) -> Path:
    """A folder with table.csv and schema.toml."""
    root = tmp_path / "root"
    root.mkdir()
    shutil.copy(small_files / "table.csv", root)
    shutil.copy(small_files / "schema.toml", root)
    return root


@pytest.fixture
def studio(folder: Path) -> Iterator[StudioClient]:
    """A studio on that folder, with a client that was let in."""
    found = StudioClient(folder)
    yield found
    for process in found.space.control.processes:
        process.wait(60)


@pytest.fixture(scope="session")
def made_release(tmp_path_factory: pytest.TempPathFactory, small_files: Path) -> Path:
    """A folder with a release of the small table, measured. Tests copy it."""
    return make_measured_release(tmp_path_factory.mktemp("made"), small_files)


@pytest.fixture
def released(studio: StudioClient, folder: Path, made_release: Path) -> StudioClient:
    """A studio whose folder has a release, and the run that made it."""
    for name in ("out", "out.internal"):
        shutil.copytree(made_release / name, folder / name)
    record_release(studio, "out", epsilon=0.9)  # its manifest states a little more
    return studio
