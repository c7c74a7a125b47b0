import polars as pl
import pytest

from deniable.errors import ConfigError, InputError, OutputError, SchemaError
from deniable.interchange.authors_tool import read_authors_files, write_authors_files
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

FILES = {
    "attrs": "years,20,21,22,23\ntrade,tinsmith,lacemaker\nboats,0,1\n",
    "grps": "1,1,2,2\n1,2\n1,2\n",
    "dag": "0\n1,3,0.25\n1,0.033552\n",
    "order": "1\n3\n2\n",
    "records": "years,trade,boats\n20,tinsmith,1\n",
    "stats": "years,trade,boats\n23,lacemaker,0\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / f"guild_{name}.csv").write_text(text)
    return tmp_path


def change(folder, name, text):
    (folder / f"guild_{name}.csv").write_text(text)


def test_domains_buckets_graph_and_order_are_read(folder):
    found = read_authors_files(folder)
    assert found.schema == Schema(
        (
            Attribute(
                name="years", kind="categorical", values=(20, 21, 22, 23), groups=(0, 0, 1, 1)
            ),
            Attribute(name="trade", kind="categorical", values=("tinsmith", "lacemaker")),
            Attribute(name="boats", kind="categorical", values=(0, 1)),
        )
    )
    assert found.graph == {"years": [], "trade": ["years", "boats"], "boats": ["years"]}
    assert found.order == ["years", "boats", "trade"]
    assert found.merits == {"years": 0.0, "trade": 0.25, "boats": 0.033552}
    assert found.records == folder / "guild_records.csv"
    assert found.stats == folder / "guild_stats.csv"


def test_what_was_read_is_written_byte_for_byte(folder, tmp_path):
    found = read_authors_files(folder)
    again = tmp_path / "deep" / "again"
    write_authors_files(
        again,
        found.schema,
        found.graph,
        found.order,
        records=pl.read_csv(found.records),
        stats=pl.read_csv(found.stats),
        merits=found.merits,
        prefix="guild",
    )
    assert {path.name: path.read_text() for path in again.iterdir()} == {
        f"guild_{name}.csv": text for name, text in FILES.items()
    }
    for name in ("records", "stats"):  # the rows themselves
        assert (again / f"guild_{name}.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.shared
def test_the_authors_own_files_are_written_byte_for_byte(shared, tmp_path):
    """70,000 of their rows stand in for the records, 30,000 for the stats: we hold them split."""
    folder = shared / "acs13"
    rows = {"records": folder / "acs13_train.csv", "stats": folder / "acs13_test.csv"}
    found = read_authors_files(folder)
    assert found.records is None
    write_authors_files(
        tmp_path,
        found.schema,
        found.graph,
        found.order,
        **{part: pl.read_csv(path) for part, path in rows.items()},
        merits=found.merits,
        prefix="acs13",
    )
    for name in ("attrs", "grps", "dag", "order"):
        written = (tmp_path / f"acs13_{name}.csv").read_bytes()
        assert written == (folder / f"acs13_{name}.csv").read_bytes(), name
    for part, path in rows.items():
        assert (tmp_path / f"acs13_{part}.csv").read_bytes() == path.read_bytes(), part


@pytest.mark.shared
def test_the_authors_domains_and_buckets_are_those_of_the_example(shared, examples):
    found = read_authors_files(shared / "acs13").schema
    example = Schema.read(examples / "acs13" / "schema.toml")
    assert found.names == example.names
    assert [list(a.values) for a in found.attributes] == [
        list(a.values) for a in example.attributes
    ]
    assert [a.groups for a in found.attributes] == [a.groups for a in example.attributes]


def test_a_graph_may_be_absent_and_merits_unknown(folder, tmp_path):
    for name in ("dag", "order", "stats"):
        (folder / f"guild_{name}.csv").unlink()
    found = read_authors_files(folder)
    assert (found.graph, found.order, found.stats) == ({}, [], None)
    rows = pl.read_csv(found.records)
    again = tmp_path / "again"
    write_authors_files(
        again, found.schema, {"trade": ["years"]}, found.schema.names, records=rows, stats=rows
    )
    assert (again / "table_dag.csv").read_text() == "0\n1,0\n0\n"


def test_texts_that_look_like_numbers_stay_as_they_are(folder):
    """007 is not 7: what is written back must be what stood there."""
    change(folder, "attrs", "years,007,8,9,10\ntrade,tinsmith,lacemaker\nboats, 0, 1\n")
    values = [attribute.values for attribute in read_authors_files(folder).schema.attributes]
    assert values == [("007", "8", "9", "10"), ("tinsmith", "lacemaker"), (0, 1)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("grps", "1,1,2,2\n1,2\n", "has 3 lines and guild_grps.csv has 2"),
        ("grps", "1,1,2\n1,2\n1,2\n", 'line 1: 3 buckets for the 4 values of "years"'),
        ("attrs", "years,20,20,22,23\ntrade,a,b\nboats,0,1\n", "listed more than once: 20"),
        ("dag", "0\n0\n", "has 2 lines for 3 attributes"),
        ("dag", "0\n4,0.5\n0\n", "line 2: attributes are numbered from 1 to 3"),
        ("dag", "0\n1,x\n0\n", "line 2: the last cell must be a number"),
        ("order", "1\n2\n2\n", "list each of the 3 attributes once"),
        ("order", "1\n2\nx\n", "line 3: attributes are numbered"),
    ],
)
def test_files_that_contradict_each_other_are_refused(folder, name, text, message):
    change(folder, name, text)
    with pytest.raises(InputError) as refusal:
        read_authors_files(folder)
    assert message in str(refusal.value)


def test_one_set_of_files_is_read_and_another_by_its_prefix(folder):
    change(folder, "x_attrs", "other,1\n")
    with pytest.raises(SchemaError, match=r"2 files end in _attrs\.csv"):
        read_authors_files(folder)
    assert read_authors_files(folder, prefix="guild").order == ["years", "boats", "trade"]


def test_a_file_that_cannot_be_read_is_refused(folder):
    (folder / "guild_grps.csv").unlink()
    with pytest.raises(SchemaError, match=r"guild_grps\.csv: cannot be read"):
        read_authors_files(folder)


def small(**changes):
    return Schema(
        (Attribute(**{"name": "a", "kind": "categorical", "values": ("x", "y")} | changes),)
    )


@pytest.mark.parametrize(
    ("schema", "graph", "order", "message"),
    [
        (small(missing=("?",)), {}, ["a"], "does not support missing cells"),
        (small(values=("x,y", "z")), {}, ["a"], "has a comma"),
        (small(kind="date", values=range(9)), {}, ["a"], "supports lists of values only"),
        (small(), {"b": []}, ["a"], '"b" in the graph'),
        (small(), {}, [], "list each of the 1 attributes once"),
    ],
)
def test_schemas_that_the_files_cannot_express_are_refused(tmp_path, schema, graph, order, message):
    rows = pl.DataFrame({"a": ["x"]})
    with pytest.raises((SchemaError, ConfigError)) as refusal:
        write_authors_files(tmp_path / "new", schema, graph, order, records=rows, stats=rows)
    assert message in str(refusal.value)
    assert not (tmp_path / "new").exists()


def test_an_unwritable_folder_is_an_output_error(tmp_path):
    (tmp_path / "file").write_text("")
    rows = pl.DataFrame({"a": ["x"]})
    with pytest.raises(OutputError, match="cannot be written to"):
        write_authors_files(tmp_path / "file", small(), {}, ["a"], records=rows, stats=rows)
