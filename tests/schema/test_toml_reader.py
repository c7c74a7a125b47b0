"""TOML reader: each type of column, its defaults, and its errors."""

import tomllib
from decimal import Decimal

import polars as pl
import pytest

from deniable.errors import SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.grid import Grid
from deniable.schema.toml_reader import parse_column, parse_list, require_keys
from deniable.schema.unmodelled_columns import Computed, Constant, Identifier


def parse(text):
    return parse_column(tomllib.loads(f'name = "x"\n{text}'), 1)


@pytest.mark.parametrize(
    ("text", "kind", "values", "grid"),
    [
        ('type = "categorical"\nvalues = ["b", "a"]', "categorical", ("b", "a"), None),
        ('type = "boolean"', "boolean", ("false", "true"), None),
        ('type = "text"\nvalues = ["a"]\nother = "o"', "text", ("a", "o"), None),
        ('type = "integer"\nmin = -1\nmax = 3', "integer", range(-1, 4), Grid(kind="integer")),
        (
            'type = "real"\nmin = 0\nmax = 0.5\ndecimals = 1',
            "real",
            range(6),
            Grid(kind="real", step=Decimal("0.1")),
        ),
        (
            'type = "real"\nmin = 0\nmax = 1\nstep = 0.25',
            "real",
            range(5),
            Grid(kind="real", step=Decimal("0.25")),
        ),
        (
            'type = "date"\nmin = 1970-01-01\nmax = "1970-01-03"\nformat = "%d/%m/%Y"',
            "date",
            range(3),
            Grid(kind="date", format="%d/%m/%Y"),
        ),
        (
            'type = "datetime"\nmin = 1970-01-01T00:00:00\nmax = 1970-01-01T01:00:00\n'
            "step_seconds = 1800",
            "datetime",
            range(3),
            Grid(kind="datetime", step=Decimal(1800)),
        ),
    ],
)
def test_each_learnt_type_is_parsed(text, kind, values, grid):
    found = parse(text)
    assert isinstance(found, Attribute)
    assert (found.kind, found.values, found.grid) == (kind, values, grid)
    assert (found.missing, found.outside, found.confirmed, found.model) == (
        (),
        "error",
        True,
        "histogram",
    )


def test_integers_may_be_padded_with_zeros():
    found = parse('type = "integer"\nmin = -9\nmax = 900\nformat = "{:05d}"')
    assert isinstance(found, Attribute)
    assert found.grid is not None
    numbers = pl.DataFrame({"x": [7, -5, 900]}).select(found.grid.to_text(pl.col("x")))
    assert numbers["x"].to_list() == ["00007", "-0005", "00900"]
    with pytest.raises(SchemaError, match="padded with zeros"):
        parse('type = "integer"\nmin = 0\nmax = 9\nformat = "P{:05d}"')


def test_common_keys_apply_to_every_learnt_type():
    text = 'missing = ["", "-8"]\noutside = "drop"\nconfirmed = false\nmodel = "normal"'
    found = parse(
        f'type = "integer"\nmin = 0\nmax = 9\n{text}\nbins = {{ width = 5 }}\nheaps = [2]'
    )
    assert isinstance(found, Attribute)
    assert (found.missing, found.outside, found.confirmed) == (("", "-8"), "drop", False)
    assert (found.model, tuple(found.starts), found.heaps) == ("normal", (0, 5), (2,))


def test_unmodelled_types_are_parsed():
    assert parse('type = "identifier"\nrelease = "omit"') == Identifier(name="x", release="omit")
    assert parse('type = "constant"\nvalue = 2.5') == Constant(name="x", value=2.5)
    found = parse('type = "computed"\nformula = "a + 1"\ndecimals = 2')
    assert isinstance(found, Computed)
    assert (found.rule.text, found.decimals) == ("a + 1", 2)


def test_an_error_in_a_formula_names_its_column():
    with pytest.raises(SchemaError, match=r'^attribute "x": formula = "a \+": it cannot be parsed'):
        parse('type = "computed"\nformula = "a +"')


def test_an_unknown_key_is_rejected_with_a_suggestion():
    with pytest.raises(SchemaError, match='unknown key "valeus"; did you mean "values"'):
        require_keys({"valeus": 1}, ("name", "values"), place="here")
    with pytest.raises(SchemaError, match='here: unknown key "zzz"; known keys: name, values'):
        require_keys({"zzz": 1}, ("name", "values"), place="here")
    require_keys({"name": 1}, ("name", "values"), place="here")


def test_a_list_is_flat():
    assert parse_list([1, "a"], "values") == [1, "a"]
    with pytest.raises(SchemaError, match="values must be a list; write it in"):
        parse_list("a", "values")
    with pytest.raises(SchemaError, match="remove the inner brackets"):
        parse_list([["a"]], "values")
