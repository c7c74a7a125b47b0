"""Measured cells on disk, one file each: what was interrupted goes on where it was."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.errors import OutputError
from deniable.release.records import as_json


@dataclass(frozen=True)
class Shelf:
    """A folder of measured cells, one file each."""

    folder: Path

    @classmethod
    def open(cls, out: Path, settings: dict[str, Any]) -> "Shelf":
        """Return the shelf of a folder that is new, or was begun with the same settings."""
        written = out / "settings.json"
        try:
            if written.is_file():
                if written.read_bytes() != as_json(settings):
                    raise OutputError(f"{out} was begun with other settings; choose another folder")
            elif out.exists() and any(out.iterdir()):
                raise OutputError(f"{out} holds something else; choose another folder")
            (out / "cells").mkdir(parents=True, exist_ok=True, mode=0o700)
            out.chmod(0o700)
            put(written, as_json(settings))
        except OSError as error:
            raise OutputError(f"{out} cannot be used ({error.strerror}); choose another") from None
        return cls(out / "cells")

    def get(self, name: str, recipe: Callable[[], Any]) -> Any:
        """Return a cell: as it was saved, or measured now and saved."""
        file = self.folder / f"{name.replace(' ', '_')}.json"
        if not file.is_file():
            put(file, as_json({"cell": recipe()}))
        return json.loads(file.read_text(encoding="utf-8"))["cell"]


def put(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it: it is whole, or not there."""
    stage = path.with_name(f".partial.{os.getpid()}.{path.name}")
    stage.write_bytes(content)
    stage.rename(path)
