"""Output of a run, distinguished from files of other origin at the same path.

A run owns a release, or a file of records, if the manifest there is the one that was there when its
first step ended. Only then is it linked as its result, and known to be of its table.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deniable.errors import DeniableError
from deniable.release.atomic_files import file_hash
from deniable.release.untrusted_files import read_json
from deniable.studio.run_store import RunRecord, RunStore

_MANIFESTS = {"release": "{}/manifest.json", "records": "{}.manifest.json"}


@dataclass(frozen=True, kw_only=True)
class MadeOutput:
    """What a run has made.

    Attributes:
        manifest_hash: SHA-256 of its manifest; "" if it made nothing.
        epsilon: The ε of the manifest, as it is written there; None if there is none.
        delta: Its δ.
        mode: Its mode.
        draft: The cost of the private draft that the manifest's total contains.
    """

    manifest_hash: str = ""
    epsilon: float | str | None = None
    delta: float | str | None = None
    mode: str = ""
    draft: Mapping[str, Any] | None = None


def made_by(store: RunStore, root: Path, run: RunRecord) -> MadeOutput | None:
    """What a run has made; None as long as its first step has not ended.

    It is recorded once (``record_made``); until then it is read from the files.
    """
    if run.made is not None:
        with suppress(TypeError):
            return MadeOutput(**run.made)
        return MadeOutput()
    if run.kind not in _MANIFESTS:
        return MadeOutput()
    state = store.status(run)[0].state
    if state in ("waiting", "running"):
        return None
    rivals = [each for each in store.all() if each.out == run.out and each.kind == run.kind]
    # A run that did not end well may have made it, but not if another run wrote there too.
    if len(rivals) > 1 and (state != "done" or _newest_done(store, rivals) != run.id):
        return MadeOutput()
    return _read_made(root / _MANIFESTS[run.kind].format(run.out))


def record_made(store: RunStore, root: Path, run: RunRecord) -> RunRecord:
    """Record what a run has made, once its first step has ended."""
    if run.made is not None or run.kind not in _MANIFESTS:
        return run
    made = made_by(store, root, run)
    return run if made is None else store.change(run.id, made=asdict(made))


def owns_output(store: RunStore, root: Path, run: RunRecord) -> bool:
    """Whether what is at the output of a run now is what this run has made."""
    made = made_by(store, root, run)
    if made is None or not made.manifest_hash:
        return False
    return manifest_hash(root / _MANIFESTS[run.kind].format(run.out)) == made.manifest_hash


def manifest_hash(path: Path) -> str:
    """SHA-256 of a manifest; "" if it is not there."""
    with suppress(DeniableError, FileNotFoundError, NotADirectoryError):
        return "" if path.is_symlink() else file_hash(path)
    return ""


def _newest_done(store: RunStore, runs: list[RunRecord]) -> str:
    done = [each for each in runs if store.status(each)[0].state == "done"]
    return max((each.started, each.id) for each in done)[1] if done else ""


def _read_made(path: Path) -> MadeOutput:
    digest = manifest_hash(path)
    if not digest:
        return MadeOutput()
    found: dict[str, Any] = {}
    with suppress(DeniableError, KeyError, TypeError):
        document = read_json(path)
        claim, draft = document["guarantee"], document["parameters"].get("draft")
        found = {
            "epsilon": claim["epsilon"],
            "delta": claim["delta"],
            "mode": str(document["mode"]),
            "draft": draft if isinstance(draft, dict) else None,
        }
    return MadeOutput(manifest_hash=digest, **found)
