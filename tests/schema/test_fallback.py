"""The fallback of a column: parsed, written back, and refused where it means nothing."""

from datetime import date

import pytest

from deniable.errors import SchemaError
from deniable.schema.fallback import fallback_value, parse_fallback
from deniable.schema.schema import Schema


def parse(description: str):
    schema = Schema.parse(f'format = 1\n[[attribute]]\nname = "x"\n{description}')
    assert Schema.parse(schema.text()) == schema
    return schema.attributes[0]


@pytest.mark.parametrize(
    ("description", "code", "value"),
    [
        ('type = "categorical"\nvalues = ["a", "b"]\nfallback = "b"', 1, "b"),
        ('type = "categorical"\nvalues = [3, 7]\nfallback = 7', 1, 7),
        ('type = "categorical"\nvalues = ["a"]\nmissing = ["", "NA"]\nfallback = "NA"', 1, ""),
        ('type = "boolean"\nfallback = true', 1, "true"),
        ('type = "text"\nvalues = ["a"]\nother = "other"\nfallback = "other"', 1, "other"),
        ('type = "integer"\nmin = 3\nmax = 9\nfallback = 5', 2, 5),
        ('type = "integer"\nmin = 0\nmax = 99\nbins = { width = 10 }\nfallback = 57', 5, 50),
        ('type = "real"\nmin = 0\nmax = 9\ndecimals = 1\nfallback = 0.3', 3, 0.3),
        (
            'type = "date"\nmin = 2020-01-01\nmax = 2020-12-31\nfallback = 2020-01-03',
            2,
            date(2020, 1, 3),
        ),
    ],
)
def test_a_fallback_is_a_code_and_is_written_as_a_value(description, code, value):
    attribute = parse(description)
    assert attribute.fallback == code
    assert fallback_value(attribute) == value


@pytest.mark.parametrize("fallback", ['"c"', "1", '""', "true", "[1]", "2020-01-01"])
def test_a_fallback_that_is_no_value_is_refused(fallback):
    with pytest.raises(SchemaError, match="fallback replaces invalid cells"):
        parse(f'type = "categorical"\nvalues = ["a", "b"]\nfallback = {fallback}')


def test_a_fallback_outside_the_range_is_refused():
    with pytest.raises(SchemaError, match="fallback replaces invalid cells"):
        parse('type = "integer"\nmin = 3\nmax = 9\nfallback = 10')


def test_rows_are_dropped_or_their_cells_replaced_but_not_both():
    with pytest.raises(SchemaError, match="remove fallback"):
        parse('type = "integer"\nmin = 3\nmax = 9\noutside = "drop"\nfallback = 5')


def test_no_fallback_is_the_default():
    attribute = parse('type = "boolean"')
    assert fallback_value(parse_fallback(attribute, None)) is None


def test_an_identifier_has_none():
    with pytest.raises(SchemaError, match='unknown key "fallback"'):
        Schema.parse('format = 1\n[[attribute]]\nname = "x"\ntype = "identifier"\nfallback = 1')


def test_a_unit_has_none():
    """Two people in the fallback would share their rows."""
    head = 'format = 1\nunit = "x"\n[[attribute]]\nname = "x"\n'
    with pytest.raises(SchemaError, match="unit"):
        Schema.parse(head + 'type = "categorical"\nvalues = [3, 7]\nfallback = 7')
