"""Fuzz the commands: mutated tables, schemas, artefacts and manifests end in a documented way.

Whatever the input, a command ends with exit code 0 to 3, shows no traceback, no cell of the table
and no control character, and leaves its whole output or nothing. Inputs are mutations of valid
ones, by fixed keys: a failure can be repeated. ``DENIABLE_FUZZ=20`` runs 20 times as many, with
other keys; ``DENIABLE_FUZZ_KEEP=folder`` keeps the inputs that fail.
"""

import datetime as dt
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import mutations
from command_line import names_below
from deniable import __main__ as program
from deniable.pipeline.api import learn, synthesize
from deniable.release.atomic_files import file_hash
from deniable.release.manifest import add_checksum
from deniable.release.release import Format
from mutations import Draws, mutate, mutate_arrays, mutate_json

pytestmark = pytest.mark.slow

FACTOR = int(os.environ.get("DENIABLE_FUZZ", "1"))
KEEP = os.environ.get("DENIABLE_FUZZ_KEEP")

# Parts of cells that nobody would write by chance: where one shows, a cell has leaked.
MARKS = ("Zxqvort", "Qwyjibo", "76543219")
ROWS = 120
# Releases to verify: modes, and the format of their records.
RELEASES: dict[str, Format] = {"one-shot": "csv", "tested": "csv", "seedless": "parquet"}

SCHEMA = """\
format = 1
rows_max = 1_000

[[attribute]]
name = "name"
type = "identifier"
release = "omit"

[[attribute]]
name = "account"
type = "identifier"
format = "A{:06d}"

[[attribute]]
name = "years"
type = "integer"
min = 0
max = 99
bins = { width = 10 }
outside = "clip"

[[attribute]]
name = "pay"
type = "real"
min = 0
max = 9_000
decimals = 2
bins = { edges = [0.01, 100, 1_000] }
missing = ["", "NA"]

[[attribute]]
name = "since"
type = "date"
min = 2019-01-01
max = 2024-12-31
bins = { width = 365 }

[[attribute]]
name = "ward"
type = "categorical"
values = ["east", "west"]

[[attribute]]
name = "note"
type = "text"
values = ["none", "late"]
other = "other"

[[attribute]]
name = "yearly"
type = "computed"
formula = "pay * 12"

[[constraint]]
forbid = { years = { below = 10 }, ward = ["west"] }
"""


def valid_table() -> pl.DataFrame:
    draws = np.random.default_rng(1)
    first = dt.date(2019, 1, 1)
    return pl.DataFrame(
        {
            "name": [f"Zxqvort{i}" for i in range(ROWS)],
            "account": [7_654_321_900 + i for i in range(ROWS)],
            "years": draws.integers(10, 99, ROWS),
            "pay": draws.uniform(0, 9_000, ROWS).round(2),
            "since": [first + dt.timedelta(days=int(x)) for x in draws.integers(0, 2_000, ROWS)],
            "ward": draws.choice(["east", "west"], ROWS),
            "note": [["none", "late", f"Qwyjibo{i}"][i % 3] for i in range(ROWS)],
        }
    )


@dataclass
class Valid:
    """Valid inputs: files by name."""

    folder: Path

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def all(self) -> list[bytes]:
        """Everything that mutations may take a slice of; none of it holds a mark but the table."""
        names = ("schema.toml", "artefact/manifest.json", "artefact/artefact.json")
        return [self.read(name) for name in names]


@pytest.fixture(scope="module")
def valid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("valid")
    table = valid_table()
    table.write_csv(folder / "table.csv")
    table.write_parquet(folder / "table.parquet")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    options = {"k": 2, "epsilon": 3.0, "delta": 1e-4}
    learn(table, folder / "schema.toml", **options).save(folder / "artefact")
    for mode, file_format in RELEASES.items():
        released = synthesize(table, folder / "schema.toml", records=30, mode=mode, **options)
        released.write(folder / mode, file_format=file_format)
    return Valid(folder)


End = Callable[[Path, list[str]], tuple[int, list[str]]]


@pytest.fixture
def end(monkeypatch, capfd) -> End:
    """Run a command in a folder; return its exit code, and what is wrong with how it ended."""
    home = Path.cwd()

    def run_in(folder: Path, arguments: list[str]) -> tuple[int, list[str]]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["deniable", *arguments])
        before = names_below(folder)
        capfd.readouterr()
        code = program.run()
        # Of the file descriptors, so that it includes what polars prints itself.
        printed = capfd.readouterr()
        monkeypatch.chdir(home)
        return code, list(complaints(code, printed.out + printed.err, folder, before))

    return run_in


@pytest.fixture
def fuzz(end: End, tmp_path: Path) -> Callable[..., None]:
    """Run a command on ``count`` mutated inputs; fail with a list of all that went wrong."""

    def fuzz(name: str, count: int, prepare: Callable[[Draws, Path], list[str]]) -> None:
        failures = []
        for number in range(count * FACTOR):
            folder = tmp_path / f"{number}"
            folder.mkdir()
            draws = np.random.default_rng([len(name), *name.encode(), number])
            _, found = end(folder, prepare(draws, folder))
            if found:
                failures.append(f"{name} {number}: {'; '.join(found)}")
                if KEEP:
                    shutil.copytree(folder, Path(KEEP) / f"{name} {number}", dirs_exist_ok=True)
            shutil.rmtree(folder)
        assert not failures, "\n".join(failures)

    return fuzz


def complaints(code: int, printed: str, folder: Path, before: list[str]):
    """List what is wrong with the end of a command."""
    if code not in (0, 1, 2, 3):
        yield f"exit code {code}: {printed[-300:]!r}"
    for word in ("Traceback", "panicked", *MARKS):
        if word in printed:
            yield f"{word} is printed: {printed[-600:]!r}"
    odd = {c for c in printed if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c != "\n"}
    if odd:
        yield f"control characters are printed: {sorted(odd)}"
    if code and not printed.strip():
        yield f"exit code {code} without a message"
    new = sorted(set(names_below(folder)) - set(before))
    if code and new:
        yield f"exit code {code} and yet there is {new}"
    if any(".partial" in path for path in new):
        yield f"half-written files: {new}"
    for path in new:
        content = (folder / path).read_bytes() if (folder / path).is_file() else b""
        if path != "draft.toml" and any(mark.encode() in content for mark in MARKS):
            yield f"a cell is in {path}"


def copy(valid: Valid, folder: Path, *names: str) -> None:
    for name in names:
        source = valid.folder / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy(source, folder / name)


BUDGET = ["--k", "2", "--epsilon", "3", "--delta", "1e-4", "--schema", "schema.toml"]
SYNTHESIZE = ["synthesize", *BUDGET, "--records", "20", "--out", "out", "--key", "1"]
LEARN = ["learn", *BUDGET, "--out", "out"]
EVALUATE = ["evaluate", "table.csv", "one-shot/synthetic.csv", "--schema", "schema.toml"]
EVALUATE += ["--out", "out"]


def run_on(draws: Draws, table: str) -> list[str]:
    """Synthesize or learn."""
    return [*(SYNTHESIZE if draws.random() < 0.6 else LEARN), table]


def test_valid_inputs_pass(fuzz, valid):
    """Without a mutation every command ends with 0: the fuzzer starts from there."""

    def prepare(arguments):
        def each(_, folder):
            copy(valid, folder, "table.csv", "table.parquet", "schema.toml", "artefact", *RELEASES)
            return arguments

        return each

    for arguments in (
        [*SYNTHESIZE, "table.csv"],
        [*SYNTHESIZE, "table.parquet"],
        [*LEARN, "table.csv"],
        [*LEARN, "table.parquet"],
        ["init", "table.csv", "--out", "draft.toml"],
        ["init", "table.csv", "--draft-epsilon", "1", "--out", "private.toml"],
        ["plan", "--schema", "schema.toml"],
        ["generate", "artefact", "--records", "9", "--out", "out.csv"],
        ["verify", "artefact"],
        *(["verify", mode] for mode in RELEASES),
        [*EVALUATE, "--edition", "public"],
    ):
        fuzz(f"valid {arguments[0]}", 1, prepare(arguments))


def mutated_csv(draws: Draws, valid: Valid) -> bytes:
    """Mutate the table; where its header is lost, put it back: names of columns are public."""
    data = valid.read("table.csv")
    changed = mutate(draws, data, [*valid.all(), data])
    first = changed.partition(b"\n")[0]
    is_header = not any(mark.encode() in first for mark in MARKS)
    return changed if is_header else data.splitlines()[0] + b"\n" + changed


def test_tables_of_csv_bytes(fuzz, valid):
    def prepare(draws, folder):
        copy(valid, folder, "schema.toml")
        (folder / "table.csv").write_bytes(mutated_csv(draws, valid))
        return run_on(draws, "table.csv")

    fuzz("csv", 60, prepare)


def test_drafts_of_csv_bytes(fuzz, valid):
    """Plain and private; a plain draft may hold cells, which are confidential, its output not."""

    def prepare(draws, folder):
        (folder / "table.csv").write_bytes(mutated_csv(draws, valid))
        if draws.random() < 0.5:
            return ["init", "table.csv", "--out", "draft.toml"]
        return ["init", "table.csv", "--draft-epsilon", "1", "--out", "private.toml"]

    fuzz("init csv", 60, prepare)


def test_tables_of_parquet_bytes(fuzz, valid):
    def prepare(draws, folder):
        copy(valid, folder, "schema.toml")
        data = valid.read("table.parquet")
        # The footer decides how the rest is read: half of the changes are there.
        start = int(0.7 * len(data)) if draws.random() < 0.5 else 0
        changed = data[:start] + mutate(draws, data[start:], [data])
        (folder / "table.parquet").write_bytes(changed)
        if draws.random() < 0.5:
            return ["init", "table.parquet", "--draft-epsilon", "1", "--out", "private.toml"]
        return run_on(draws, "table.parquet")

    fuzz("parquet", 60, prepare)


def odd_column(draws: Draws, rows: int) -> pl.Series:
    """A column of a type that the schema does not expect, or of extreme values."""
    days = pl.Series([2**31 - 1, -(2**31), 0, None], dtype=pl.Int32)
    micros = pl.Series([2**63 - 1, -(2**63), 0, None], dtype=pl.Int64)
    columns = (
        days.cast(pl.Date),
        micros.cast(pl.Datetime("us")),
        micros.cast(pl.Datetime("ns", "UTC")),
        micros.cast(pl.Duration("us")),
        micros,
        pl.Series([2**64 - 1, 0, 1, None], dtype=pl.UInt64),
        pl.Series([float("nan"), float("inf"), -1e308, None]),
        pl.Series(["Zxqvort", "", "1e400", None]),
        pl.Series(["Zxqvort", "", "1e400", None], dtype=pl.Categorical),
        pl.Series([b"Zxqvort", b"", b"\xff", None]),
        pl.Series([["Zxqvort"], [], None, ["x"]]),
        pl.Series([{"a": "Zxqvort"}, {"a": None}, None, {"a": ""}]),
        pl.Series([True, False, None, True]),
        pl.Series([None] * 4, dtype=pl.Null),
        pl.Series(["9" * 30, "0.1", "-1", None]).cast(pl.Decimal(38, 4)),
        pl.Series([dt.time(1), None, dt.time(2), dt.time(3)]),
    )
    chosen = columns[draws.integers(len(columns))]
    return pl.concat([chosen] * (rows // 4 + 1)).head(rows)


def test_tables_of_odd_parquet_types(fuzz, valid):
    def prepare(draws, folder):
        copy(valid, folder, "schema.toml")
        table = valid_table().head(int(draws.integers(0, ROWS)))
        name = table.columns[draws.integers(table.width)]
        column = odd_column(draws, table.height).alias(name)
        table.with_columns(column).write_parquet(folder / "table.parquet")
        commands = (
            ["init", "table.parquet", "--out", "draft.toml"],
            ["init", "table.parquet", "--draft-epsilon", "1", "--out", "private.toml"],
            run_on(draws, "table.parquet"),
        )
        return list(commands[draws.integers(3)])

    fuzz("types", 60, prepare)


def test_schemas(fuzz, valid):
    def everything(draws, data):
        return mutate(draws, data, [data, *valid.all()])

    def prepare(draws, folder):
        copy(valid, folder, "table.csv")
        # A mutation that keeps the syntax gets further.
        change = mutations.extreme_number if draws.random() < 0.6 else everything
        changed = change(draws, SCHEMA.encode())
        (folder / "schema.toml").write_bytes(changed)
        if draws.random() < 0.6:
            return ["plan", "--schema", "schema.toml"]
        return run_on(draws, "table.csv")

    fuzz("schema", 50, prepare)


def seal(folder: Path, document: Any, name: str = "manifest.json") -> None:
    """Write a manifest with correct hashes, as a forger would."""
    if isinstance(document, dict):
        if isinstance(document.get("files"), dict):
            listed = [path for path in folder.rglob("*") if path.is_file() and path.name != name]
            for path in listed:
                key = path.relative_to(folder).as_posix()
                if key in document["files"]:
                    document["files"][key] = file_hash(path)
        try:
            document = add_checksum(document)
        except ValueError:
            document = {**document, "checksum": "0" * 64}
    (folder / name).write_bytes(mutations.encode(document))


ARTEFACT_FILES = ("artefact.json", "manifest.json", "schema.toml", "tables.npz")


def mutate_folder(draws: Draws, folder: Path) -> None:
    """Change one file of an artefact: its bytes, or its content with correct hashes."""
    name = ARTEFACT_FILES[draws.integers(4)]
    path, data = folder / name, (folder / name).read_bytes()
    manifest = json.loads((folder / "manifest.json").read_bytes())
    action = draws.random()
    if action < 0.15 or (action < 0.4 and name == "schema.toml"):
        path.write_bytes(mutate(draws, data, [data]))
    elif name == "tables.npz":
        path.write_bytes(mutate_arrays(draws, data))
    elif name == "manifest.json":
        manifest = mutate_json(draws, manifest)
    elif name == "artefact.json":
        path.write_bytes(mutations.encode(mutate_json(draws, json.loads(data))))
    else:
        path.write_bytes(mutations.extreme_number(draws, data))
    if name != "manifest.json" or action >= 0.15:
        seal(folder, manifest)


def test_artefacts(fuzz, valid):
    """generate and verify."""

    def prepare(draws, folder):
        copy(valid, folder, "artefact")
        mutate_folder(draws, folder / "artefact")
        if draws.random() < 0.7:
            return ["generate", "artefact", "--records", "9", "--out", "out.csv"]
        return ["verify", "artefact"]

    fuzz("artefact", 120, prepare)


def test_manifests_of_releases(fuzz, valid):
    def prepare(draws, folder):
        mode = list(RELEASES)[draws.integers(len(RELEASES))]
        copy(valid, folder, mode, "table.csv")
        release = folder / mode
        table = f"synthetic.{RELEASES[mode]}"
        name = ("manifest.json", "schema.toml", table)[draws.integers(3)]
        data = (release / name).read_bytes()
        manifest = json.loads((release / "manifest.json").read_bytes())
        if name == "manifest.json" and draws.random() < 0.7:
            seal(release, mutate_json(draws, manifest))
        else:
            (release / name).write_bytes(mutate(draws, data, [data]))
            if name != "manifest.json" and draws.random() < 0.7:
                seal(release, manifest)
        return ["verify", mode, *(["--against", "table.csv"] if draws.random() < 0.3 else [])]

    fuzz("verify", 90, prepare)


def test_evaluations(fuzz, valid):
    """The public edition reads a manifest and records; the internal one also the real table."""

    def prepare(draws, folder):
        copy(valid, folder, "one-shot", "table.csv", "schema.toml")
        files = ("one-shot/manifest.json", "one-shot/synthetic.csv", "table.csv", "schema.toml")
        path = folder / files[draws.integers(4)]
        path.write_bytes(mutate(draws, path.read_bytes(), [path.read_bytes()]))
        edition = "public" if draws.random() < 0.9 else "internal"
        return [*EVALUATE, "--edition", edition]

    fuzz("evaluate", 10, prepare)


# Inputs that once ended otherwise: each with the exit code that it must have.


def write_csv(folder, text, name="table.csv"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def one_column(name, kind='"integer"\nmin = 0\nmax = 9'):
    return f"format = 1\nrows_max = 1_000\n[[attribute]]\nname = {name}\ntype = {kind}\n"


def cell_beyond_the_header(folder, _):
    write_csv(folder, "a,b\nZxqvort,1,2\n")
    write_csv(
        folder, one_column('"a"') + one_column('"b"').partition("000\n")[2], name="schema.toml"
    )
    return [*SYNTHESIZE, "table.csv"]


def schema_of(text, *arguments):
    def prepare(folder, _):
        write_csv(folder, text, "schema.toml")
        return ["plan", "--schema", "schema.toml", *arguments]

    return prepare


def draft_of(column, *arguments):
    def prepare(folder, _):
        table = pl.DataFrame({"x": column, "y": [1] * len(column)})
        table.write_parquet(folder / "table.parquet")
        return ["init", "table.parquet", "--out", "draft.toml", *arguments]

    return prepare


def draft_of_csv(text, *arguments):
    def prepare(folder, _):
        write_csv(folder, text)
        return ["init", "table.csv", "--out", "draft.toml", *arguments]

    return prepare


def artefact_with(change, *arguments):
    def prepare(folder, valid):
        copy(valid, folder, "artefact")
        change(folder / "artefact")
        return [*(arguments or ("generate", "artefact", "--records", "9", "--out", "out.csv"))]

    return prepare


def replace_file(name, content):
    def change(folder):
        (folder / name).write_bytes(content)
        if name != "manifest.json":
            seal(folder, json.loads((folder / "manifest.json").read_bytes()))

    return change


def edit_manifest(**new):
    def change(folder):
        document = json.loads((folder / "manifest.json").read_bytes())
        (folder / "manifest.json").write_bytes(mutations.encode({**document, **new}))

    return change


def huge_array(folder):
    """An array that declares more numbers than any computer has, and holds none."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }"
    member = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n"
    packed = mutations.zipped({"probabilities_0.npy": member}, compressed=True)
    replace_file("tables.npz", packed)(folder)


LATE = pl.Series([2**31 - 1, 0], dtype=pl.Int32).cast(pl.Date)
REGRESSIONS: dict[str, tuple[int, Callable[[Path, Valid], list[str]]]] = {
    "a row with a cell too many": (2, cell_beyond_the_header),
    "a column with markup": (0, schema_of(one_column('"wage [/h]"'))),
    "a column with escape codes": (0, schema_of(one_column(r'"\u001b[2Jx\u202e"'))),
    "a schema of brackets": (2, schema_of("format = 1\nx = " + "[" * 100_000)),
    "a schema of dots": (2, schema_of("a." * 50_000 + "a = 1")),
    "the year 10,000": (
        2,
        schema_of(one_column('"x"', '"date"\nmin = 1999-01-01\nmax = 10000-1-1')),
    ),
    "the last date of Parquet": (2, draft_of(LATE)),
    "the last date of Parquet, privately": (0, draft_of(LATE, "--draft-epsilon", "1")),
    "the last timestamp": (2, draft_of(pl.Series([2**63 - 1, 0]).cast(pl.Datetime("us")))),
    "bytes": (0, draft_of(pl.Series([b"Zxqvort", b"\xff"]))),
    "bytes, privately": (0, draft_of(pl.Series([b"Zxqvort", b"\xff"]), "--draft-epsilon", "1")),
    "lists, privately": (0, draft_of(pl.Series([["Zxqvort"], []]), "--draft-epsilon", "1")),
    "a header alone, privately": (0, draft_of_csv("a,b\n", "--draft-epsilon", "1")),
    "an artefact of brackets": (
        2,
        artefact_with(replace_file("artefact.json", b"[" * 200_000)),
    ),
    "a manifest of brackets": (2, artefact_with(replace_file("manifest.json", b"[" * 200_000))),
    "a manifest of brackets, verified": (
        1,
        artefact_with(replace_file("manifest.json", b'{"a":' * 200_000), "verify", "artefact"),
    ),
    "an array of any size": (2, artefact_with(huge_array)),
    "an array of any size, verified": (1, artefact_with(huge_array, "verify", "artefact")),
    "a manifest without its seal": (2, artefact_with(edit_manifest(mode="seedless"))),
    "an unknown mode": (1, artefact_with(edit_manifest(mode="x"), "verify", "artefact")),
}


@pytest.mark.parametrize("case", REGRESSIONS)
def test_an_input_that_once_ended_otherwise(case, end, valid, tmp_path):
    wanted, prepare = REGRESSIONS[case]
    folder = tmp_path / "case"
    folder.mkdir()
    code, found = end(folder, prepare(folder, valid))
    assert found == []
    assert code == wanted
