"""The first look at a table is remembered until the file changes."""

import os

import pytest

from deniable.errors import DataError
from deniable.schema.schema import Schema
from deniable.studio import table_facts as table_facts_module
from deniable.studio.table_facts import (
    Remembered,
    count_rows,
    frequent_texts,
    size_text,
    table_facts,
    table_hash,
)


def test_facts_follow_the_file(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    assert table_facts(path).columns == ("a", "b")
    assert table_facts(path).first_rows == (("1", "2"),)
    assert count_rows(path) == 1
    before = table_hash(path)
    path.write_text("a,c\n1,2\n3,\n")
    assert table_facts(path).columns == ("a", "c")
    assert table_facts(path).first_rows == (("1", "2"), ("3", ""))
    assert count_rows(path) == 2
    assert table_hash(path) != before


def test_a_fact_is_made_once_and_few_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(table_facts_module, "_MAX_KEPT", 32)
    made = []

    def make(path):
        made.append(path)
        return len(made)

    kept = Remembered()
    paths = [tmp_path / str(number) for number in range(40)]
    for path in paths:
        path.touch()
        assert kept.get(path, make) == kept.get(path, make)
    assert made == paths
    assert kept.get(paths[-1], make) == 40
    assert kept.get(paths[0], make) == 41  # forgotten: only the last ones are kept
    os.utime(paths[-1], ns=(1, 1))
    assert kept.get(paths[-1], make) == 42


def test_long_cells_and_wide_tables_are_cut(tmp_path):
    path = tmp_path / "t.csv"
    names = [f"c{i}" for i in range(100)]
    path.write_text(",".join(names) + "\n" + ",".join(["x" * 99] * 100) + "\n")
    facts = table_facts(path)
    assert facts.is_cut
    assert len(facts.columns) == 100
    assert len(facts.shown_columns) == len(facts.first_rows[0]) == 60
    assert facts.first_rows[0][0] == "x" * 39 + "…"


def test_texts_that_few_rows_have_are_not_frequent(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("pet\n" + "cat\n" * 10 + "dog\n" * 9)
    assert frequent_texts(path, "pet") == {"cat"}
    with pytest.raises(DataError, match="no column of this name"):
        frequent_texts(path, "home")


@pytest.mark.parametrize(
    "content", ["34,Utrecht,7\n41,Zwolle,8\n", "a,b,a\nc,d,e\n", "a,,b\nc,d,e\n"]
)
def test_a_first_line_that_may_be_a_record_is_shown_as_one(tmp_path, content):
    path = tmp_path / "t.csv"
    path.write_text(content)
    facts = table_facts(path)
    assert facts.may_lack_header
    assert facts.columns == ("column_1", "column_2", "column_3")
    assert (len(facts.first_rows), count_rows(path)) == (2, 2)
    said = table_facts(path, "no")
    assert (said.may_lack_header, said.first_rows) == (False, facts.first_rows)
    if content.startswith("34"):
        assert table_facts(path, "yes").columns == ("34", "Utrecht", "7")
        assert count_rows(path, "yes") == 1


def test_frequent_texts_of_a_table_without_a_header_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("1,cat\n" * 10 + "2,dog\n" * 9)
    schema = Schema.parse(
        "format = 1\nheader = false\n"
        '[[attribute]]\nname = "n"\ntype = "integer"\nmin = 1\nmax = 2\n'
        '[[attribute]]\nname = "pet"\ntype = "categorical"\nvalues = ["cat", "dog"]\n'
    )
    assert frequent_texts(path, "pet", schema) == {"cat"}


def test_what_is_no_table_is_an_error(tmp_path):
    (tmp_path / "t.parquet").write_text("kelpfarmer")
    with pytest.raises(DataError) as caught:
        table_facts(tmp_path / "t.parquet")
    assert "kelpfarmer" not in str(caught.value)


def test_sizes_in_words():
    assert [size_text(size) for size in (5, 1_500, 2_000_000, 3_210_000_000)] == [
        *("5 bytes", "1.5 kB", "2.0 MB", "3.2 GB")
    ]


def test_a_file_that_is_swapped_while_it_is_read_is_refused(tmp_path):
    """By a link to a file elsewhere, or by another file."""
    path, other = tmp_path / "t.csv", tmp_path / "other.csv"

    def swap_for_link(_):
        path.unlink()
        path.symlink_to(other)

    for swap, words in ((swap_for_link, "is a link"), (lambda _: other.rename(path), "replaced")):
        path.unlink(missing_ok=True)
        path.write_text("a\n1\n")
        other.write_text("b\n2\n")
        with pytest.raises(DataError, match=words):
            Remembered().get(path, swap)
