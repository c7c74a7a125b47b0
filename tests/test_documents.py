"""What documents show works: every schema in them can be read, and so can the configuration."""

import re
import tomllib
from pathlib import Path

import pytest

import make_option_table
from deniable.config import Config
from deniable.errors import SchemaError
from deniable.schema.schema import Schema

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```toml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def toml_blocks(text: str) -> list[str]:
    return BLOCK.findall(text)


def schemas_in(text: str) -> list[str]:
    return [block for block in toml_blocks(text) if block.startswith("format")]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


CASES = [
    pytest.param(block, id=f"{name}-{number}")
    for name in ("README.md", "docs/schema.md")
    for number, block in enumerate(schemas_in(read(name)), start=1)
]


@pytest.mark.parametrize("block", CASES)
def test_a_schema_in_a_document_is_one_and_reads_back_equal(block):
    schema = Schema.parse(block)
    assert Schema.parse(schema.text()) == schema


def test_every_block_of_toml_in_these_documents_is_a_schema():
    for name in ("README.md", "docs/schema.md"):
        text = read(name)
        assert toml_blocks(text)
        assert toml_blocks(text) == schemas_in(text)


def test_every_type_constraint_and_model_is_shown():
    """What can be written in a schema stands in one of the examples."""
    text = read("docs/schema.md")
    tables = [tomllib.loads(block) for block in schemas_in(text)]
    attributes = [attribute for table in tables for attribute in table["attribute"]]
    kinds = {"categorical", "ordered", "boolean", "integer", "real", "date", "datetime", "text"}
    beside = {"identifier", "constant", "computed"}
    assert {attribute["type"] for attribute in attributes} == kinds | beside
    constraints = [rule for table in tables for rule in table.get("constraint", [])]
    assert {"forbid", "allow", "at_most"} <= {key for rule in constraints for key in rule}
    assert {"unit", "max_rows_per_unit", "draft"} <= {key for table in tables for key in table}
    keys = {key for attribute in attributes for key in attribute}
    assert {"bins", "buckets", "missing", "outside", "confirmed", "model", "step"} <= keys


def test_the_configuration_files_of_the_options_page_can_be_assembled():
    plain, structured = (tomllib.loads(block) for block in toml_blocks(read("docs/options.md")))
    assert Config.assemble(plain).mode == "seedless"
    config = Config.assemble(structured)
    assert config.graph is not None
    assert config.chosen_estimator == "norm-sub"


def test_the_options_page_is_made_from_the_options():
    """Run tools/make_option_table.py after a change of an option."""
    assert read("docs/options.md") == make_option_table.page()


def test_the_story_lists_twelve_files_that_exist():
    files = re.findall(r"^\*\*(\d+)\. `(\S+)`\*\*", read("docs/story.md"), re.MULTILINE)
    assert [int(number) for number, _ in files] == list(range(1, 13))
    assert all((ROOT / "src" / "deniable" / name).is_file() for _, name in files)


def test_a_block_that_is_no_schema_is_caught():
    text = 'before\n```toml\nformat = 1\n[[attribute]]\nname = "x"\ntype = "reall"\n```\nafter\n'
    [block] = schemas_in(text)
    with pytest.raises(SchemaError, match="type"):
        Schema.parse(block)
