"""Checkpoints of long measurements: one JSON file per cell, so that a run can resume."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from deniable.errors import OutputError
from deniable.release.atomic_files import encode_json, flush, make_file


@dataclass(frozen=True)
class CheckpointFolder:
    """Folder of measured cells, one JSON file per cell."""

    folder: Path

    @classmethod
    def open(cls, out: Path, settings: dict[str, Any]) -> "CheckpointFolder":
        """Open a new folder, or one that was started with the same settings.

        Raises:
            OutputError: The folder has other contents or settings, or cannot be written.
        """
        saved = out / "settings.json"
        try:
            if saved.is_file():
                if saved.read_bytes() != encode_json(settings):
                    raise OutputError(
                        f"{out} was started with other settings; choose another folder"
                    )
            elif out.exists() and any(out.iterdir()):
                raise OutputError(f"{out} contains other files; choose another folder")
            out.parent.mkdir(parents=True, exist_ok=True)
            out.mkdir(exist_ok=True, mode=0o700)
            out.chmod(0o700)  # an empty folder that was there already
            (out / "cells").mkdir(exist_ok=True, mode=0o700)
            write_atomically(saved, encode_json(settings))
        except OSError as error:
            raise OutputError(
                f"{out} cannot be used ({error.strerror}); choose another folder"
            ) from None
        return cls(out / "cells")

    def load_or_measure(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return a saved cell; measure and save it if there is none."""
        if not self.has(name):
            self.save(name, measure())
        return self.load(name)

    def has(self, name: str) -> bool:
        """Test whether a cell was saved."""
        return self._file(name).is_file()

    def load(self, name: str) -> Any:
        """Return a saved cell.

        Raises:
            OutputError: The file is damaged.
        """
        path = self._file(name)
        try:
            return json.loads(path.read_text(encoding="utf-8"))["cell"]
        except (ValueError, KeyError, TypeError):
            raise OutputError(f"{path} is damaged; delete it, and it is measured again") from None

    def save(self, name: str, cell: Any) -> None:
        """Save a measured cell."""
        write_atomically(self._file(name), encode_json({"cell": cell}))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '_')}.json"


def code_fingerprint() -> str:
    """Hash the source of this package, for measurements that need the same code all along."""
    root = Path(__file__).parents[1]
    digest = sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary file, then rename it: the file is complete or does not exist.

    It is as private as its folder.
    """
    stage = path.with_name(f".partial.{os.getpid()}.{path.name}")
    make_file(stage)
    stage.write_bytes(content)
    flush(stage)
    stage.rename(path)
