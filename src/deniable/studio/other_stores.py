"""Runs that were started with another ``--root``: in a folder above this one, or in one below."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from deniable.errors import DeniableError
from deniable.studio.root_folder import STATE_FOLDER, RootFolder
from deniable.studio.run_store import RunRecord, RunStore
from deniable.studio.workspace import Workspace

# Levels of folders below the root that are searched, and folders in all.
_MAX_DEPTH = 4
_MAX_FOLDERS = 2000


@dataclass(frozen=True, kw_only=True)
class LocatedRun:
    """A run, and the workspace whose paths it uses.

    Attributes:
        run: The run.
        space: Its workspace.
        home: The other ``--root`` that it was started with; "" for the studio's own.
    """

    run: RunRecord
    space: Workspace
    home: str = ""

    def path(self, name: str) -> Path:
        """A path of the run, from the top."""
        return self.space.root.path / name


def located_runs(space: Workspace) -> list[LocatedRun]:
    """All runs of the studio's root, then those of the roots above and below it."""
    found = [LocatedRun(run=run, space=space) for run in space.store.all()]
    for folder in other_roots(space.root.path):
        with suppress(DeniableError):
            store = RunStore(folder)
            other = replace(space, root=RootFolder(folder), store=store)
            found += [LocatedRun(run=run, space=other, home=str(folder)) for run in store.all()]
    return found


def other_roots(root: Path) -> list[Path]:
    """Folders above and below a root that have runs of this user.

    Links are not followed, and folders of other users are not trusted.
    """
    return [each for each in (*root.parents, *_folders_below(root)) if _has_own_runs(each)]


def _has_own_runs(folder: Path) -> bool:
    state = folder / STATE_FOLDER
    try:
        found = state.lstat()
        return found.st_uid == os.getuid() and not state.is_symlink() and (state / "runs").is_dir()
    except OSError:
        return False


def _folders_below(root: Path) -> Iterator[Path]:
    level, seen = [root], 0
    for _ in range(_MAX_DEPTH):
        below: list[Path] = []
        for folder in level:
            with suppress(OSError), os.scandir(folder) as listed:
                below += [
                    Path(each.path)
                    for each in listed
                    if not each.name.startswith(".") and each.is_dir(follow_symlinks=False)
                ]
        below = sorted(below)[: _MAX_FOLDERS - seen]
        seen += len(below)
        yield from below
        level = below
