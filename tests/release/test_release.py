"""A release as a frame, as a folder, as a file: with its manifest, or not at all."""

import json
import math
import os
import re
from dataclasses import replace

import polars as pl
import pytest

from deniable.errors import BudgetError, OutputError
from deniable.pipeline.api import generate, learn, synthesize
from deniable.randomness import Keyed
from deniable.release.artefact import load
from deniable.release.atomic_files import file_hash, hash_files
from deniable.release.query_answer import AnswerCell, Interval, NumberSummary, QueryAnswer
from deniable.release.release import release_folders


@pytest.fixture(scope="module")
def artefact(small_table, small_schema):
    return learn(small_table, small_schema, epsilon=float("inf"), k=20, noise=Keyed(3))


@pytest.fixture
def release(artefact):
    return generate(artefact, 300, key=7)


def names_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def failing(release, fault):
    """The same release, whose records fail after their first block."""

    class FailingRecords:
        number = release.encoded.number

        def blocks(self):
            yield next(release.encoded.blocks())
            raise fault

    return replace(release, encoded=FailingRecords())


def test_a_folder_holds_what_the_contract_says(release, tmp_path):
    release.write(tmp_path / "out")
    assert names_below(tmp_path) == [
        "out",
        "out.internal",
        "out.internal/run.json",
        "out/artefact",
        "out/artefact/artefact.json",
        "out/artefact/manifest.json",
        "out/artefact/schema.toml",
        "out/artefact/tables.npz",
        "out/manifest.json",
        "out/schema.toml",
        "out/synthetic.csv",
    ]


def test_what_must_not_leave_is_beside_and_its_owner_s_alone(release, tmp_path):
    release.write(tmp_path / "out")
    assert (tmp_path / "out.internal").stat().st_mode & 0o777 == 0o700
    assert not list((tmp_path / "out").rglob("*internal*"))
    assert json.loads((tmp_path / "out.internal" / "run.json").read_text()) == dict(
        release.internal
    )


def test_the_manifest_lists_every_other_file_with_its_hash(release, tmp_path):
    release.write(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    hashes = hash_files(tmp_path / "out")
    del hashes["manifest.json"]
    assert manifest["files"] == hashes


def test_the_artefact_of_a_release_gives_the_same_records(release, artefact, tmp_path):
    release.write(tmp_path / "out")
    again = load(tmp_path / "out" / "artefact").generate(300, key=7)
    assert again.equals(artefact.generate(300, key=7))
    written = pl.read_csv(tmp_path / "out" / "synthetic.csv", null_values={"trade": "?"})
    assert written.equals(again)


def test_csv_and_parquet_hold_the_same_records(artefact, tmp_path):
    generate(artefact, 300, key=7).write(tmp_path / "csv")
    generate(artefact, 300, key=7).write(tmp_path / "parquet", file_format="parquet")
    csv = pl.read_csv(tmp_path / "csv" / "synthetic.csv", null_values={"trade": "?"})
    assert csv.equals(pl.read_parquet(tmp_path / "parquet" / "synthetic.parquet"))
    assert csv.height == 300


def test_a_schema_in_a_release_is_the_one_that_was_given(release, small_schema, tmp_path):
    release.write(tmp_path / "out")
    assert (tmp_path / "out" / "schema.toml").read_text() == small_schema.text()


@pytest.mark.parametrize("fault", [BudgetError("too few"), KeyboardInterrupt()])
def test_after_a_fault_among_the_records_nothing_is_left(release, tmp_path, fault):
    with pytest.raises(type(fault)):
        failing(release, fault).write(tmp_path / "out")
    assert names_below(tmp_path) == []


@pytest.mark.parametrize("name", ["out", "out.internal"])
def test_a_folder_that_holds_something_is_refused_and_left_as_it_is(release, tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "old").write_text("x")
    with pytest.raises(OutputError, match=f"{name} exists and is not empty"):
        release.write(tmp_path / "out")
    assert names_below(tmp_path) == [name, f"{name}/old"]


def test_below_a_file_nothing_can_be_written(release, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        release.write(tmp_path / "file" / "out")
    assert names_below(tmp_path) == ["file"]


def modes_below(folder):
    return {name: (folder / name).stat().st_mode & 0o777 for name in names_below(folder)}


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_without_a_claim_everything_is_its_owner_s_alone(release, tmp_path, file_format):
    """The release of these tests has no noise: it is as confidential as the table."""
    release.write(tmp_path / "out", file_format=file_format)
    release.write_file(tmp_path / f"r.{file_format}")
    for name, mode in modes_below(tmp_path).items():
        assert mode == (0o700 if (tmp_path / name).is_dir() else 0o600), name


def test_with_a_claim_only_the_internal_folder_is(tmp_path, small_table, small_schema):
    release = synthesize(small_table, small_schema, records=5, mode="seedless")
    before = os.umask(0o022)
    try:
        release.write(tmp_path / "out")
        release.write_file(tmp_path / "r.csv")
    finally:
        os.umask(before)
    modes = modes_below(tmp_path)
    internal = {name: modes.pop(name) for name in ("out.internal", "out.internal/run.json")}
    assert internal == {"out.internal": 0o700, "out.internal/run.json": 0o600}
    for name, mode in modes.items():
        assert mode == (0o755 if (tmp_path / name).is_dir() else 0o644), name


@pytest.mark.parametrize("name", [".partial.9.out", ".partial.9.out.internal"])
def test_the_remains_of_a_killed_run_are_named_before_anything_is_read(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(OutputError, match=re.escape(name)):
        release_folders(tmp_path / "out")


# A file


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("r.csv", lambda path: pl.read_csv(path, null_values={"trade": "?"})),
        ("r.csv.gz", lambda path: pl.read_csv(path, null_values={"trade": "?"})),
        ("r.parquet", pl.read_parquet),
    ],
)
def test_a_file_has_the_format_of_its_name_and_a_manifest_beside_it(artefact, tmp_path, name, read):
    generate(artefact, 300, key=7).write_file(tmp_path / name)
    assert names_below(tmp_path) == [name, f"{name}.manifest.json"]
    assert read(tmp_path / name).equals(artefact.generate(300, key=7))
    manifest = json.loads((tmp_path / f"{name}.manifest.json").read_text())
    assert manifest["files"] == {name: file_hash(tmp_path / name)}
    assert (tmp_path / name).read_bytes()[:2] == {
        "r.csv": b"ye",
        "r.csv.gz": b"\x1f\x8b",
        "r.parquet": b"PA",
    }[name]


@pytest.mark.parametrize("fault", [BudgetError("too few"), KeyboardInterrupt()])
def test_of_a_file_nothing_is_left_after_a_fault(release, tmp_path, fault):
    with pytest.raises(type(fault)):
        failing(release, fault).write_file(tmp_path / "r.csv")
    assert names_below(tmp_path) == []


@pytest.mark.parametrize("name", ["r.txt", "r", "csv"])
def test_a_name_that_tells_no_format_is_refused(release, tmp_path, name):
    with pytest.raises(OutputError, match=r"\.csv"):
        release.write_file(tmp_path / name)
    assert names_below(tmp_path) == []


@pytest.mark.parametrize("name", ["r.csv", "r.csv.manifest.json"])
def test_a_file_that_is_there_is_not_overwritten(release, tmp_path, name):
    (tmp_path / name).write_text("old")
    with pytest.raises(OutputError, match="exists and is not empty"):
        release.write_file(tmp_path / "r.csv")
    assert (tmp_path / name).read_text() == "old"
    assert names_below(tmp_path) == [name]


# A frame


def test_records_can_be_asked_for_any_number_of_times(release, tmp_path):
    first = release.frame()
    assert first.height == 300
    assert first.equals(release.frame())
    release.write(tmp_path / "one")
    release.write(tmp_path / "two")
    assert hash_files(tmp_path / "one") == hash_files(tmp_path / "two")
    assert pl.read_csv(tmp_path / "one" / "synthetic.csv").height == 300


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_records_of_real_seeds_are_kept_and_can_be_asked_for_again(
    small_table, small_schema, tmp_path, mode
):
    """They cannot be drawn again: their randomness is secret. Values within bins stay too."""
    release = synthesize(small_table, small_schema, records=200, mode=mode, k=20, epsilon=math.inf)
    first = release.frame()
    release.write(tmp_path / "out", file_format="parquet")
    assert first.equals(release.frame())
    assert first.equals(pl.read_parquet(tmp_path / "out" / "synthetic.parquet"))


def test_the_records_are_a_frame_of_the_kind_that_came_in(small_table, small_schema):
    pd = pytest.importorskip("pandas")
    release = synthesize(small_table.to_pandas(), small_schema, records=50, epsilon=math.inf)
    assert isinstance(release.records, pd.DataFrame)
    assert release.records is release.records
    pd.testing.assert_frame_equal(release.records, release.frame())


def test_a_release_does_not_show_records_where_it_is_printed(release):
    shown = repr(release)
    assert "blocks" not in shown
    assert "internal=" not in shown
    assert shown == "Release(mode='one-shot', epsilon=inf, delta=0, records=300)"
    assert "histogram" not in shown


def interval(estimate=1.0, low=0.0, high=2.0):
    return Interval(estimate=estimate, low=low, high=high)


def answer(columns, within=None):
    cell = AnswerCell(
        labels=("x",) * len(columns), count=interval(), share=interval(math.nan), within=within
    )
    number = NumberSummary(
        column="a", group="", statistic="mean", value=interval(), text=("1", "0", "2")
    )
    return QueryAnswer(
        columns=columns,
        measured=True,
        basis="b",
        rows=interval(),
        cells=(cell,),
        numbers=(number,),
    )


def test_an_interval_is_clipped_at_both_ends():
    assert interval(-1.0, -2.0, 5.0).clip(0.0, 1.0) == interval(0.0, 0.0, 1.0)


def test_numbers_that_are_not_finite_are_null():
    assert interval(math.nan, -math.inf, math.inf).document() == {
        "estimate": None,
        "low": None,
        "high": None,
    }
    document = json.loads(answer(("a",)).to_json())
    assert document["cells"][0]["share"] == {"estimate": None, "low": 0.0, "high": 2.0}
    assert document["cells"][0]["within"] is None


def test_a_frame_has_a_row_for_each_cell():
    frame = answer(("a", "b"), within=interval()).frame()
    measures = [f"{m}{end}" for m in ("count", "share", "within") for end in ("", "_low", "_high")]
    assert frame.columns == ["a", "b", *measures, "note"]
    assert frame.dtypes == [pl.String] * 2 + [pl.Float64] * 9 + [pl.String]
    assert frame["share"].to_list() == [None]


def test_columns_of_the_table_keep_their_names():
    frame = answer(("count", "note")).frame()
    assert frame.columns[:3] == ["count", "note", "count_"]
    assert frame.columns[-1] == "note_"


def test_means_and_quantiles_have_a_frame_of_their_own():
    frame = answer(("a",)).numbers_frame()
    assert frame.row(0) == ("a", "", "mean", 1.0, 0.0, 2.0, "")
