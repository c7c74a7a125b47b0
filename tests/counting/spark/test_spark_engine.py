"""One contract for both engines, on a cluster of separate processes: the same bytes and faults.

Rows are compared, not summaries: artefacts without noise, or with a test's keyed noise, are equal
file by file; parts of a release too, after an executor was killed in the middle.
"""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from deniable.counting.contingency import QueryAxis
from deniable.counting.spark import spark_engine, spark_rows
from deniable.counting.spark.blob_kernels import TallyKernel
from deniable.counting.spark.code_blobs import BLOB_TYPES, PartItem
from deniable.counting.spark.spark_engine import list_items
from deniable.errors import DataError, InvariantError
from deniable.pipeline import api
from deniable.randomness import Keyed
from deniable.release import generation, record_parts
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Identifier
from deniable.verification.verify import verify
from spark_cluster import kill_own_executor, written_files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.usefixtures("engine"),
    pytest.mark.filterwarnings("ignore"),
]

INF = float("inf")
NO_HOUSEBOATS = """
[[constraint]]
forbid = { "home" = ["houseboat"], "pet" = ["axolotl"] }
"""
# Cells that no log may show: a person's name, a value that is not in the schema, and in a message.
PERSON, ODD, RAISED = "zanzibar-violet", "heliotrope-marsh", "cobalt-thistle"


@pytest.fixture(scope="module")
def people(small_schema):
    """The small table's schema, with a person that has several rows."""
    columns = (Identifier(name="person"), *small_schema.columns)
    return Schema(columns, rows_max=10_000, unit="person", max_rows_per_unit=2)


@pytest.fixture(scope="module")
def table(small_table):
    names = [f"{PERSON}-{at % 700}" for at in range(len(small_table))]
    return small_table.with_columns(pl.col("trade").fill_null("?"), person=pl.Series(names))


@pytest.fixture(scope="module")
def parts(tmp_path_factory, table):
    """A folder for each number of parts: 1, 2 and 7, some of Parquet."""
    folders = {}
    for number, suffix in ((1, "csv"), (2, "parquet"), (7, "csv")):
        folder = folders[number] = tmp_path_factory.mktemp("parts") / "t"
        folder.mkdir()
        size = -(-len(table) // number)
        for at in range(number):
            part = table[at * size : (at + 1) * size]
            path = folder / f"part-{at}.{suffix}"
            part.write_csv(path) if suffix == "csv" else part.write_parquet(path)
    return folders


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def saved(artefact, folder):
    artefact.save(folder)
    return files_of(folder)


def learn(source, schema, folder, **options):
    return saved(api.learn(source, schema, **{"k": 20, **options}), folder)


def test_without_noise_the_artefact_is_the_same(parts, small_schema, tmp_path):
    schema = Schema((Identifier(name="person"), *small_schema.columns), rows_max=10_000)
    expected = learn(parts[1], schema, tmp_path / "local", epsilon=INF)
    for number in (1, 2, 7):
        folder = tmp_path / f"{number}"
        assert learn(parts[number], schema, folder, epsilon=INF, engine="spark") == expected


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (2, {"data_use": "split", "estimator": "norm-sub", "epsilon": 5.0}),
        (7, {"mode": "seedless", "data_use": "split", "estimator": "clip", "omega": None}),
        (7, {"omega": "2", "epsilon": 3.0}),
    ],
)
def test_with_keyed_noise_units_and_splits_are_the_same(parts, people, tmp_path, number, options):
    """Each person has two or three rows, of which two are used: in other parts each."""
    expected = learn(parts[1], people, tmp_path / "local", noise=Keyed(6), **options)
    found = learn(
        parts[number], people, tmp_path / "spark", noise=Keyed(6), engine="spark", **options
    )
    assert found == expected


def test_rows_of_units_and_splits_are_the_same_rows(engine, parts, people):
    """Row by row: the prefixes of all columns, with their counts, of every part."""
    rows = engine.read(parts[7], people).rows.limit_per_unit(Keyed(4), max_rows=2)
    local = api.read_rows(parts[1], _run(people, Keyed(4))).rows
    assert rows.number == local.number == 1400
    shares = {"seeds": 0.5, "structure": 0.3}
    order, sizes = range(5), people.sizes
    for part, mine in rows.split(shares, Keyed(4)).items():
        [ours] = local.split(shares, Keyed(4))[part].frequent_prefixes(order, [5], sizes, floor=1)
        [found] = mine.frequent_prefixes(order, [5], sizes, floor=1)
        assert found.prefixes.tolist() == ours.prefixes.tolist()
        assert found.counts.tolist() == ours.counts.tolist()
        assert mine.number == int(ours.counts.sum())
    assert rows.empty().frequent_prefixes(order, [5], sizes, floor=1)[0].counts.tolist() == []


def _run(schema, noise):
    from deniable.config import Config  # noqa: PLC0415
    from deniable.pipeline.run_plan import Run, plan_run  # noqa: PLC0415

    config = Config.assemble({})
    return Run(schema=schema, config=config, plan=plan_run(schema, config), randomness=noise)


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (7, {"omega": "2-5", "data_use": "split", "estimator": "norm-sub", "epsilon": 5.0}),
        (2, {"omega": "3"}),
    ],
)
def test_records_of_real_seeds_are_the_same(parts, people, tmp_path, number, options):
    """Rows of units, constraints: file by file."""
    schema = Schema.parse(people.text() + NO_HOUSEBOATS)
    options = {"records": 40, "noise": Keyed(6), "k": 20, "mode": "tested", **options}
    local = api.synthesize(parts[1], schema, **options)
    local.write(tmp_path / "local", parts=True)
    cluster = api.synthesize(parts[number], schema, engine="spark", **options)
    cluster.write(tmp_path / "spark")
    assert files_of(tmp_path / "spark") == files_of(tmp_path / "local")
    assert files_of(tmp_path / "spark.internal") == files_of(tmp_path / "local.internal")


def test_tested_records_of_a_secret_run_are_written_in_parts(parts, people, tmp_path):
    """The driver draws them; tasks chose the rows of each unit, as the sentence states."""
    records = generation.BLOCK + 40
    release = api.synthesize(
        parts[7], people, records=records, mode="tested", k=20, omega="4", engine="spark"
    )
    assert release.guarantee.count("SHAKE-256") == 2
    release.write(tmp_path / "r", file_format="parquet")
    one, two = (pl.read_parquet(tmp_path / "r" / f"part-0000{at}.parquet") for at in (0, 1))
    assert (len(one), len(two)) == (generation.BLOCK, 40)
    assert pl.DataFrame(release.frame().toArrow()).equals(pl.concat([one, two]))
    report = verify(tmp_path / "r", against=parts[1])
    assert report.passed, report


def test_a_secret_run_states_that_tasks_drew(parts, people, tmp_path):
    release = api.synthesize(parts[2], people, records=50, engine="spark", k=20)
    assert "SHAKE-256" in release.guarantee
    release.write(tmp_path / "r")
    report = verify(tmp_path / "r")
    assert report.passed, report
    assert not api.synthesize(parts[2], people, records=5, k=20).guarantee.count("SHAKE")


def test_a_data_frame_is_a_table(engine, table, small_schema, tmp_path):
    """Typed cells by Arrow; the records come back as a DataFrame of Spark. Names may be odd."""
    odd = {"home": "ho.me", "pet": "p`et"}
    table = table.drop("person").rename(odd)
    columns = [replace(c, name=odd.get(c.name, c.name)) for c in small_schema.columns]
    schema = Schema(tuple(columns), rows_max=10_000)
    frame = engine.session.createDataFrame(table.to_arrow()).repartition(3)
    expected = learn(table, schema, tmp_path / "local", epsilon=INF)
    release = api.synthesize(frame, schema, records=300, key=3, epsilon=INF, k=20)
    assert saved(release.artefact, tmp_path / "spark") == expected
    local = api.generate(tmp_path / "local", 300, key=3).frame()
    made = pl.DataFrame(release.frame().toArrow())
    assert made.columns == local.columns
    assert made.equals(local.cast(made.schema))


@pytest.fixture(scope="module")
def many(artefact):
    """Three parts and some: half a million records and 300."""
    return artefact, 2 * generation.BLOCK + 300


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_parts_are_those_of_the_local_engine(many, tmp_path, file_format):
    artefact, records = many
    local = api.generate(artefact, records, key=2)
    local.write(tmp_path / "local", parts=True, file_format=file_format)
    cluster = api.generate(artefact, records, key=2, engine="spark")
    cluster.write(tmp_path / "spark", file_format=file_format)
    assert files_of(tmp_path / "spark") == files_of(tmp_path / "local")


def dying(marker):
    """A kernel that kills its executor the first time: sent by value, as tasks lack this file."""

    class Dying(TallyKernel):
        def run(self, batches):
            if not os.path.exists(marker):  # noqa: PTH110 - no import of this module
                with open(marker, "w"):  # noqa: PTH123
                    pass
                kill_own_executor()
            yield from super().run(batches)

    return Dying


@pytest.fixture
def sent_by_value():
    """Let tasks have the helpers of tests, which are not installed on executors."""
    from pyspark import cloudpickle  # noqa: PLC0415

    import spark_cluster  # noqa: PLC0415

    cloudpickle.register_pickle_by_value(spark_cluster)
    yield
    cloudpickle.unregister_pickle_by_value(spark_cluster)


@pytest.mark.usefixtures("sent_by_value")
def test_an_executor_may_die_while_pairs_are_counted(parts, people, tmp_path, monkeypatch):
    """Splits and units, too: what is drawn again is the same."""
    marker = tmp_path / "died"
    options = {
        "noise": Keyed(6),
        "data_use": "split",
        "estimator": "norm-sub",
        "epsilon": 5.0,
    }
    expected = learn(parts[1], people, tmp_path / "local", **options)
    monkeypatch.setattr(spark_rows, "TallyKernel", dying(str(marker)))
    found = learn(parts[7], people, tmp_path / "spark", engine="spark", **options)
    assert marker.exists()
    assert found == expected


@pytest.mark.usefixtures("sent_by_value")
def test_an_executor_may_die_while_parts_are_written(engine, many, tmp_path, monkeypatch):
    """Before it writes, and after it has written half of a part: same bytes, no stray file."""
    artefact, records = many
    marker = tmp_path / "died"
    api.generate(artefact, records, key=2).write(tmp_path / "local", parts=True)

    def write_then_die(kernel):
        def run(part):
            if part == 1 and not os.path.exists(marker):  # noqa: PTH110
                with open(marker, "w"), open(f"{kernel.folder}/.partial.x.part", "w"):  # noqa: PTH123
                    pass
                kill_own_executor()
            return kernel(part)

        return run

    run_blocks = type(engine).run_blocks
    monkeypatch.setattr(
        type(engine),
        "run_blocks",
        lambda self, kernel, blocks: run_blocks(self, write_then_die(kernel), blocks),
    )
    api.generate(artefact, records, key=2, engine="spark").write(tmp_path / "spark")
    assert marker.exists()
    assert files_of(tmp_path / "spark") == files_of(tmp_path / "local")


def test_the_commands_run_on_the_cluster(deniable, parts, people, tmp_path):
    """As a user types them; the session is there already, so that no master is needed."""
    people.write(tmp_path / "people.toml")
    options = ["--engine", "spark", "--quiet"]
    learnt, out = tmp_path / "learnt", tmp_path / "made"
    learn = ("learn", parts[7], "--schema", tmp_path / "people.toml", "--mode", "seedless")
    assert deniable(*learn, "--out", learnt, *options).code == 0
    made = deniable("generate", learnt, "--records", 40, "--out", out, "--key", 3, *options)
    assert made.code == 0, made.err
    assert deniable("verify", out).code == 0
    out = tmp_path / "tested"
    made = deniable(
        "synthesize", parts[1], "--schema", tmp_path / "people.toml", "--records", 5, "--out", out,
        "--mode", "tested", "--k", 20, "--omega", 4, *options,
    )  # fmt: skip
    assert made.code == 0, made.err
    assert deniable("verify", out).code == 0


# Faults


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("faulty") / "t"
    folder.mkdir()
    wrong = table.with_columns(
        pet=pl.when(pl.int_range(pl.len()) % 400 == 7).then(pl.lit(ODD)).otherwise("pet"),
        boats=pl.when(pl.int_range(pl.len()) == 1300).then(99).otherwise("boats"),
    )
    for at in range(4):
        wrong[at * 500 : (at + 1) * 500].write_csv(folder / f"part-{at}.csv")
    return folder


def message_of(source, schema, **options):
    with pytest.raises(DataError) as caught:
        api.learn(source, schema, **options)
    return str(caught.value)


def test_faults_are_those_of_the_local_engine(faulty, people):
    local = message_of(faulty, people)
    assert message_of(faulty, people, engine="spark") == local
    assert "line 309 of part-1.csv" in local
    assert ODD not in local


def test_faults_of_row_groups_are_those_of_the_file(table, people, tmp_path, monkeypatch):
    wrong = table.with_columns(boats=pl.when(pl.int_range(pl.len()) > 900).then(99).otherwise(1))
    wrong.write_parquet(tmp_path / "t.parquet", row_group_size=300)
    monkeypatch.setattr(spark_engine, "_MAX_BYTES_PER_TASK", 1)
    assert len(list_items(tmp_path / "t.parquet")) == 7
    local = message_of(tmp_path / "t.parquet", people)
    assert message_of(tmp_path / "t.parquet", people, engine="spark") == local


def test_row_groups_are_the_file(engine, table, people, tmp_path, monkeypatch):
    table.write_parquet(tmp_path / "t.parquet", row_group_size=300)
    monkeypatch.setattr(spark_engine, "_MAX_BYTES_PER_TASK", 1)
    items = list_items(tmp_path / "t.parquet")
    assert [(item.start, item.rows) for item in items][-2:] == [(1500, 300), (1800, 200)]
    rows = engine.read(tmp_path / "t.parquet", people).rows
    assert rows.number == 2000


def test_a_file_that_changed_is_found(engine, table, small_schema, tmp_path):
    """A blob that is computed again must be the one first read: here its source is another."""
    path = tmp_path / "t.csv"
    table.drop("person").write_csv(path)
    rows = engine.read(path, small_schema).rows
    rows.blobs.unpersist(blocking=True)
    table.drop("person").reverse().write_csv(path)
    with pytest.raises(DataError, match="other rows when it is computed again"):
        rows.frequent_prefixes(range(5), [2], small_schema.sizes, floor=1)
    path.unlink()
    with pytest.raises(DataError, match="other rows when it is computed again"):
        rows.count(small_schema.attributes, [(QueryAxis(0),)])


def test_rows_that_no_task_sees_are_noticed(engine, parts, people):
    """As if a partition were computed again without its blobs."""
    rows = engine.read(parts[2], people).rows
    fewer = replace(rows, blobs=rows.blobs.where(f"blob <> {max(rows.rows)}"))
    asked = {
        "count": lambda: fewer.count(people.attributes, [(QueryAxis(0),)]),
        "prefixes": lambda: fewer.frequent_prefixes(range(5), [2], people.sizes, floor=1),
        "units": lambda: fewer.limit_per_unit(Keyed(4), max_rows=2),
    }
    for name, ask in asked.items():
        with pytest.raises(DataError, match="other rows when it is computed again"):
            pytest.fail(f"{name}: {ask()}")
    rows.close()


def test_a_bug_while_a_data_frame_is_drawn_quotes_no_cell():
    def kernel(_block):
        raise KeyError(RAISED)

    batch = pl.DataFrame({"id": [0]}).to_arrow().to_batches()[0]
    with pytest.raises(InvariantError, match=r"KeyError at .* in a task") as caught:
        list(spark_engine._draw_frames(kernel)(iter([batch])))
    assert RAISED not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_part_item_is_named_by_its_file():
    assert PartItem("/a/b/part-1.csv").name == "part-1.csv"
    assert "fault" in BLOB_TYPES.names
    assert record_parts.count_parts(1) == 1
    assert replace(PartItem("x"), rows=3).rows == 3


# Last: logs of all that ran before


def test_the_secret_is_in_no_command_line(engine):
    """Everyone on the machine can read these."""
    secret = engine.session.sparkContext.getConf().get("spark.authenticate.secret").encode()
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            lines.append((process / "cmdline").read_bytes())
    assert any(b"CoarseGrainedExecutorBackend" in line for line in lines)
    assert not any(secret in line for line in lines)


def test_no_log_and_no_spilled_block_has_a_cell(  # noqa: PLR0917 - it looks at all of them
    engine, cluster_folder, faulty, parts, people, monkeypatch
):
    """In success, in a fault, and in a bug whose message is a cell, raised in a task."""
    rows = engine.read(parts[7], people).rows.limit_per_unit(Keyed(4), max_rows=2)
    assert rows.number == 1400
    assert ODD not in message_of(faulty, people, engine="spark")

    class Raising(TallyKernel):
        def run(self, batches):
            yield from batches if RAISED == "" else ()
            raise KeyError(RAISED)

    monkeypatch.setattr(spark_rows, "TallyKernel", Raising)
    with pytest.raises(InvariantError, match=r"KeyError at .* in a task") as caught:
        rows.count(people.attributes, [(QueryAxis(0),)])
    rows.close()
    assert RAISED not in str(caught.value)
    found = written_files(cluster_folder)
    assert any(path.name == "stderr" and path.stat().st_size for path in found)
    cells = [cell.encode() for cell in (PERSON, ODD, RAISED)]
    leaks = [path for path in found if any(cell in path.read_bytes() for cell in cells)]
    assert leaks == []
