"""Releases in parts: the same records as one file, equal parts, a manifest that comes last."""

import json
import stat
from pathlib import Path

import polars as pl
import pytest

from deniable.errors import InvariantError, OutputError
from deniable.pipeline import api
from deniable.release import generation, record_parts
from deniable.release.atomic_files import encode_json, file_hash
from deniable.release.manifest import add_checksum
from deniable.release.record_parts import PartWriter, collect_parts, count_parts, part_name
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification import record_checks
from deniable.verification.verify import verify

pytestmark = pytest.mark.slow

BLOCK = 128
RECORDS = 2 * BLOCK + 50


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (generation, record_parts, record_checks):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


@pytest.fixture
def release(artefact):
    return api.generate(artefact, RECORDS, key=9)


def parts_of(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith("part-"))


def failed(report):
    return {check.name for check in report.failed}


def test_parts_are_the_file_cut_into_equal_pieces(release, tmp_path):
    release.write(tmp_path / "one")
    release.write(tmp_path / "parts", parts=True)
    header, *lines = (tmp_path / "one" / "synthetic.csv").read_text().splitlines()
    pieces = [path.read_text().splitlines() for path in parts_of(tmp_path / "parts")]
    assert [len(piece) - 1 for piece in pieces] == [BLOCK, BLOCK, 50]
    assert all(piece[0] == header for piece in pieces)
    assert [line for piece in pieces for line in piece[1:]] == lines


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_release_of_parts_verifies(release, tmp_path, file_format):
    release.write(tmp_path / "parts", parts=True, file_format=file_format)
    report = verify(tmp_path / "parts")
    assert report.passed, failed(report)
    assert "regenerated records" in {check.name for check in report.checks}
    listed = json.loads((tmp_path / "parts" / "manifest.json").read_text())["files"]
    assert [name for name in listed if name.startswith("part-")] == [
        part_name(part, f".{file_format}") for part in range(3)
    ]


def write_and_tamper(release, folder, tamper):
    release.write(folder, parts=True)
    tamper(parts_of(folder))
    return verify(folder)


def test_a_changed_part_is_found(release, tmp_path):
    def swap(parts):
        one, two = parts[0].read_bytes(), parts[1].read_bytes()
        parts[0].write_bytes(two)
        parts[1].write_bytes(one)

    assert {"files", "records"} <= failed(write_and_tamper(release, tmp_path / "r", swap))


def test_a_missing_part_is_found(release, tmp_path):
    report = write_and_tamper(release, tmp_path / "r", lambda parts: parts[1].unlink())
    assert "files" in failed(report)


def test_an_extra_part_is_found(release, tmp_path):
    def add(parts):
        parts[0].with_name(part_name(3, ".csv")).write_bytes(parts[0].read_bytes())

    assert "files" in failed(write_and_tamper(release, tmp_path / "r", add))


def test_a_part_with_other_records_and_a_right_hash_is_found(release, tmp_path, artefact):
    """The manifest is made for it: only a second generation shows it."""
    other = api.generate(artefact, RECORDS, key=10)
    release.write(tmp_path / "r", parts=True)
    other.write(tmp_path / "other", parts=True)
    manifest = tmp_path / "other" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["parameters"]["key"] = 9
    from deniable.release.manifest import add_checksum  # noqa: PLC0415

    manifest.write_text(
        json.dumps(add_checksum(document), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    assert "regenerated records" in failed(verify(tmp_path / "other"))


class StopsAfter:
    """An engine that fails after some parts, and leaves what a killed task leaves."""

    def __init__(self, parts):
        self.parts = parts

    def run_blocks(self, kernel, blocks):
        for part in range(blocks):
            if part == self.parts:
                (kernel.folder / ".partial.abc.part-00001.csv").write_text("half")
                raise OutputError("a task failed")
            yield kernel(part)

    def frame(self, kernel, blocks):
        raise NotImplementedError


def test_after_a_failure_there_is_no_folder(release, tmp_path):
    from dataclasses import replace  # noqa: PLC0415

    with pytest.raises(OutputError, match="a task failed"):
        replace(release, engine=StopsAfter(1)).write(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_parts_of_failed_tries_are_removed(release, tmp_path):
    class TriesTwice(StopsAfter):
        def run_blocks(self, kernel, blocks):
            kernel(1)
            (kernel.folder / ".partial.abc.part-00001.csv").write_text("half")
            return map(kernel, reversed(range(blocks)))

    from dataclasses import replace  # noqa: PLC0415

    replace(release, engine=TriesTwice(0)).write(tmp_path / "r")
    release.write(tmp_path / "plain", parts=True)
    found, plain = (
        {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        for folder in (tmp_path / "r", tmp_path / "plain")
    )
    assert found == plain


def test_a_folder_that_is_not_shared_is_an_error(tmp_path):
    report = json.dumps({"name": "part-00000.csv", "sha256": "0"}).encode()
    with pytest.raises(OutputError, match="a folder that all machines share"):
        collect_parts(tmp_path, [report], parts=1)
    with pytest.raises(InvariantError, match="reported 1 parts, not 2"):
        collect_parts(tmp_path, [report], parts=2)


@pytest.fixture
def tested(small_table, small_schema):
    """Records that cannot be drawn again, with running and permuted numbers and UUIDs."""
    rows = range(len(small_table))
    table = small_table.with_columns(
        number=pl.Series(rows), uuid=pl.Series(map(str, rows)), member=pl.Series(rows)
    )
    columns = (
        Identifier(name="number"),
        Identifier(name="uuid", format="uuid"),
        Identifier(name="member"),
        *small_schema.columns,
    )
    schema = Schema(columns, rows_max=10_000)
    return api.synthesize(table, schema, records=RECORDS, mode="tested", k=5, omega="4")


def test_records_of_real_seeds_have_parts_too(tested, tmp_path):
    """There is nothing to generate them from: each part is in the form that deniable writes."""
    tested.write(tmp_path / "r", parts=True)
    sizes = [len(path.read_text().splitlines()) - 1 for path in parts_of(tmp_path / "r")]
    assert sizes == [BLOCK, BLOCK, 50]
    report = verify(tmp_path / "r")
    assert report.passed, failed(report)
    made = pl.concat(map(pl.read_csv, parts_of(tmp_path / "r")))
    assert made["number"].to_list() == list(range(1, RECORDS + 1))
    for name in ("uuid", "member", "years", "boats", "pet"):
        assert made[name].to_list() == tested.frame()[name].to_list()
    assert made["member"].is_unique().all()


def test_a_number_of_another_part_is_noticed(tested, tmp_path):
    """Numbers are swapped between two parts: each number is still there once."""
    tested.write(tmp_path / "r", parts=True)
    first, second, _ = parts_of(tmp_path / "r")
    one, two = (str(pl.read_csv(path)["member"][0]) for path in (first, second))
    for path, old, new in ((first, one, two), (second, two, one)):
        path.write_text(path.read_text().replace(f",{old},", f",{new},"))
    manifest = tmp_path / "r" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["files"] |= {path.name: file_hash(path) for path in (first, second)}
    manifest.write_bytes(encode_json(add_checksum(document)))
    assert failed(verify(tmp_path / "r")) == {"records"}


def test_a_uuid_of_another_part_is_noticed(tested, tmp_path):
    tested.write(tmp_path / "r", parts=True)
    first, second, _ = parts_of(tmp_path / "r")
    uuids = [pl.read_csv(path)["uuid"][0] for path in (first, second)]
    second.write_text(second.read_text().replace(uuids[1], uuids[0]))
    manifest = tmp_path / "r" / "manifest.json"
    document = json.loads(manifest.read_text())
    document["files"][second.name] = file_hash(second)
    manifest.write_bytes(encode_json(add_checksum(document)))
    assert failed(verify(tmp_path / "r")) == {"records"}


def test_a_part_is_as_private_as_it_must_be(small_table, small_schema, tmp_path):
    plain = api.synthesize(small_table, small_schema, records=5, epsilon=float("inf"))
    plain.write(tmp_path / "r", parts=True)
    for path in (tmp_path / "r", *parts_of(tmp_path / "r")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_names_sort_as_parts_do():
    assert [part_name(n, ".csv") for n in (0, 12)] == ["part-00000.csv", "part-00012.csv"]
    assert [count_parts(n) for n in (1, BLOCK, BLOCK + 1)] == [1, 1, 2]
    assert PartWriter.__call__.__doc__
    assert Path(part_name(3, ".parquet")).suffix == ".parquet"


def test_parts_beyond_five_digits_are_in_the_order_of_their_records(tmp_path):
    names = [part_name(number, ".csv") for number in (9, 99_999, 100_000)]
    for name in reversed(names):
        (tmp_path / name).touch()
    assert [path.name for path in record_checks.find_tables(tmp_path)] == names
    written = [json.dumps({"name": name, "sha256": ""}).encode() for name in reversed(names)]
    assert list(collect_parts(tmp_path, written, parts=3)) == names
