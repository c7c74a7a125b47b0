"""The first screen: tables are found, looked at and drafted; what is in them is inert."""

import re
import shutil

import pytest

from deniable.schema.schema import Schema
from studio_client import StudioClient, text_of

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'


def test_tables_and_folders_are_listed_links_are_not_followed(studio, folder, tmp_path):
    (folder / "more").mkdir()
    (folder / "notes.txt").write_text("x")
    (folder / "link.csv").symlink_to(tmp_path)
    words = text_of(studio.get("/", folder=""))
    assert "table.csv" in words
    assert "more/" in words
    assert "a link: not followed" in words
    assert "notes.txt" not in words
    assert ".deniable-studio" not in words
    assert "parent folder" in text_of(studio.get("/", folder="more"))


def test_a_table_shows_its_columns_its_size_and_its_first_rows(studio):
    words = text_of(studio.get("/table", path="table.csv"))
    for name in ("years", "trade", "home", "boats", "pet"):
        assert name in words
    assert "houseboat" in words
    assert "kB" in words


def test_rows_are_counted_as_a_part_of_the_page_or_without_scripts(studio):
    assert "2,000 rows" in studio.get("/table/rows", path="table.csv")
    assert "2,000 rows" in studio.get("/table", path="table.csv", count="1")


def test_script_in_names_and_cells_is_text(studio, folder):
    header = f'"{SCRIPT}","{IMAGE.replace(chr(34), chr(34) * 2)}"\n'
    cells = f'"{SCRIPT}","{IMAGE.replace(chr(34), chr(34) * 2)}"\n'
    (folder / "evil<b>.csv").write_text(header + cells * 3)
    page = studio.get("/table", path="evil<b>.csv")
    assert SCRIPT not in page
    assert IMAGE not in page
    assert "<b>.csv" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "evil<b>" not in studio.get("/", folder="")


def test_the_command_follows_the_form(studio):
    form = {"path": "table.csv", "owner": "unit", "unit": "-pet's", "max_rows_per_unit": "3"}
    page = studio.post("/draft/command", **form, how="private", draft_epsilon="0.2")
    assert "deniable init table.csv --out table.schema.toml --draft-epsilon 0.2" in page
    assert "--max-rows-per-unit 3" in page
    plain = studio.post("/draft/command", path="table.csv", unit="pet", how="plain")
    assert plain.count("--") == 1


@pytest.mark.parametrize(
    "form",
    [
        {"owner": "unit", "unit": ""},
        {"how": "private", "draft_epsilon": ""},
        {"how": "private", "draft_epsilon": "-1"},
        {"how": "private", "draft_epsilon": "inf"},
    ],
)
def test_a_draft_that_cannot_start_shows_the_form_again(studio, form):
    reply = studio.client.post("/draft", data={"path": "table.csv", **form})
    assert reply.status_code == 422
    assert "Not started." in reply.text
    assert studio.space.store.all() == []


@pytest.mark.slow
def test_a_draft_is_the_file_that_the_command_writes(studio, folder):
    page = studio.post("/draft", path="table.csv", owner="row", how="plain")
    assert "deniable init table.csv --out table.schema.toml" in page
    assert studio.follow() == "done"
    schema = Schema.read(folder / "table.schema.toml")
    assert [column.name for column in schema.columns] == ["years", "trade", "home", "boats", "pet"]
    assert schema.drafted
    assert (folder / "table.schema.toml").stat().st_mode & 0o077 == 0
    again = text_of(studio.get("/table", path="table.csv"))
    assert "table.schema-2.toml" in again


@pytest.mark.parametrize("path", ["absent.csv", "../x.csv", "schema.toml", "", "."])
def test_a_table_that_is_none_is_a_clear_page(studio, path):
    reply = studio.client.get("/table", params={"path": path})
    assert reply.status_code in (403, 404, 422)
    assert "bug" not in reply.text


def test_a_broken_table_shows_no_cell(studio, folder):
    (folder / "odd.csv").write_bytes(b"a,b\n1\nkelpfarmer,2,3\n\xff\xfe,1\n")
    (folder / "odd.parquet").write_bytes(b"kelpfarmer")
    for name in ("odd.csv", "odd.parquet"):
        reply = studio.client.get("/table", params={"path": name})
        assert reply.status_code in (200, 422)
        if reply.status_code == 422:
            assert "kelpfarmer" not in reply.text


def test_a_missing_header_line_is_asked_about_before_a_draft(studio, folder):
    (folder / "rows.csv").write_text("34,Utrecht,7\n41,Zwolle,8\n")
    page = studio.get("/table", path="rows.csv")
    assert "Is the header line missing?" in page
    assert "column_3" in page
    reply = studio.client.post("/draft", data={"path": "rows.csv"})
    assert reply.status_code == 422
    assert "Say first whether the first line holds the names" in reply.text
    said = studio.get("/table", path="rows.csv", header="no")
    assert "Is the header line missing?" not in said
    assert "--no-header" in said
    assert "--header" in studio.get("/table", path="rows.csv", header="yes")
    assert "--header" not in studio.get("/table", path="table.csv")


def test_the_table_that_the_studio_was_started_with_is_first(folder):
    studio = StudioClient(folder, folder / "table.csv")
    assert studio.client.get("/").url.path == "/table"
    assert str(studio.client.get("/").url).endswith("/table?path=table.csv")


def test_files_next_to_the_table_can_be_picked_as_its_schema(studio, folder):
    (folder / "broken.toml").write_text("= [\n")
    (folder / "below").mkdir()
    shutil.copy(folder / "table.csv", folder / "below")
    page = studio.get("/table", path="table.csv")
    offered = page.partition("Is it described already?")[2].partition("</ul>")[0]
    assert re.findall('schema=([^"]*)', offered) == ["broken.toml", "schema.toml"]
    picked = studio.client.get("/schema", params={"table": "table.csv", "schema": "broken.toml"})
    assert picked.status_code == 200
    assert "bug" not in picked.text
    assert "described already" not in studio.get("/table", path="below/table.csv")
