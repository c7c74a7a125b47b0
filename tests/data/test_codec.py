""""""

from datetime import date, datetime

import numpy as np
import polars as pl
import pytest

from deniable.answers.given_rows import GivenRows
from deniable.arrays import MAX_DOMAIN_SIZE
from deniable.data.cell_faults import FAULT_KINDS, CellFault, find_faults
from deniable.data.codec import Codec
from deniable.data.declared_columns import require_columns
from deniable.data.table_io import read_table
from deniable.errors import DataError, InvariantError, SchemaError
from deniable.schema.attribute import Attribute
from deniable.schema.formula import Formula
from deniable.schema.schema import Schema
from deniable.schema.unmodelled_columns import Computed, Identifier

DECIMAL = pl.Decimal(10, 2)


def codec_of(**options):
    options.setdefault("name", "x")
    options.setdefault("kind", "categorical")
    return Codec(Schema((Attribute(**options),)))


def encode(cells, dtype=None, **options):
    return codec_of(**options).encode(pl.DataFrame({"x": pl.Series(cells, dtype=dtype)}))[:, 0]


def fault(cells, dtype=None, **options):
    with pytest.raises(DataError) as caught:
        encode(cells, dtype, **options)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


def test_codes_are_narrow_and_their_columns_contiguous(people):
    frame = pl.DataFrame({"kids": [0, None], "job": ["a,b", "?"], "age": [17, 96]})
    codes = Codec(people).encode(frame)
    assert codes.dtype == np.uint16
    assert codes.flags.f_contiguous
    assert codes.tolist() == [[0, 2, 0], [79, 3, 10]]


def test_decode_gives_whole_numbers_text_and_null(people):
    decoded = Codec(people).decode(np.array([[0, 2, 0], [79, 3, 10]], dtype=np.uint16))
    assert decoded.schema == {"age": pl.Int64, "job": pl.String, "kids": pl.Int64}
    assert decoded.rows() == [(17, "a,b", 0), (96, None, None)]


def test_decode_of_no_codes_is_a_table_without_records(people):
    decoded = Codec(people).decode(np.empty((0, 3), dtype=np.uint16))
    assert decoded.schema == {"age": pl.Int64, "job": pl.String, "kids": pl.Int64}


def test_invalid_codes_are_a_bug(people):
    with pytest.raises(InvariantError, match="out of range"):
        Codec(people).decode(np.array([[80, 0, 0]], dtype=np.uint16))
    with pytest.raises(InvariantError, match="codes must have 3 columns"):
        Codec(people).decode(np.zeros((5, 2), dtype=np.uint16))


def test_duplicate_attribute_names_are_refused():
    with pytest.raises(SchemaError, match='more than once: "x"'):
        Schema(codec_of(values=(1,)).attributes * 2)


@pytest.mark.parametrize(
    "dtype",
    [pl.Int8, pl.UInt8, pl.Int16, pl.UInt64, pl.Int64, pl.Int128, pl.Float32, pl.Float64, DECIMAL],
)
@pytest.mark.parametrize("values", [(3, 4, 5), (9, 3, 5, 4)])
def test_whole_numbers_of_every_type_are_encoded(dtype, values):
    expected = [values.index(v) for v in (5, 3, 4)]
    assert encode([5, 3, 4], dtype, values=values).tolist() == expected


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["z", "b", "a"])])
def test_text_of_every_type_is_encoded(dtype):
    assert encode(["b", "a", "b"], dtype, values=("a", "b")).tolist() == [1, 0, 1]


def test_null_nan_and_each_declared_number_are_missing():
    number = {"kind": "integer", "values": range(3), "missing": ("", "-8", "-9", "NA")}
    assert encode([0, None, -8, -9, 2], **number).tolist() == [0, 3, 3, 3, 2]
    assert encode([0.0, None, float("nan"), -8.0], **number).tolist() == [0, 3, 3, 3]
    assert encode([None, None], pl.Null, **number).tolist() == [3, 3]


def test_null_and_each_declared_text_are_missing():
    text = {"values": ("", "a"), "missing": ("?", "NA")}
    assert encode(["a", "", "?", "NA", None], **text).tolist() == [1, 0, 2, 2, 2]
    assert encode(["a", "NA", None], pl.Categorical, **text).tolist() == [1, 2, 2]


def test_the_largest_attribute_of_text_keeps_its_last_codes():
    values = tuple(map(str, range(MAX_DOMAIN_SIZE - 1)))
    codes = encode([values[-1], "?", "!", "-", None], values=values, missing=("?", "!", "-"))
    assert codes.tolist() == [MAX_DOMAIN_SIZE - 2] + [MAX_DOMAIN_SIZE - 1] * 4


def test_clip_moves_numbers_to_the_nearest_value():
    clipped = encode(
        [-(2**63), 4, 5, 8, 2**63 - 1], kind="integer", values=range(5, 8), outside="clip"
    )
    assert clipped.tolist() == [0, 0, 0, 2, 2]
    huge = encode([1e300, -1e300], kind="integer", values=range(5, 8), outside="clip")
    assert huge.tolist() == [2, 0]
    wide = encode([2**64 - 1], pl.UInt64, kind="integer", values=range(5, 8), outside="clip")
    assert wide.tolist() == [2]


def test_clip_does_not_apply_to_text_that_is_not_a_number():
    options = {"kind": "integer", "values": range(5, 8), "outside": "clip"}
    assert "not a whole number" in fault([5.0, 5.5], **options)
    assert "not a whole number" in fault([5.0, float("inf")], **options)
    assert "the cell is missing" in fault([5, None], **options)


def test_a_clipped_number_that_means_missing_is_missing():
    codes = encode([-8, -9], kind="integer", values=range(3), missing=("-8",), outside="clip")
    assert codes.tolist() == [3, 0]


def test_drop_leaves_out_the_whole_record_whatever_else_is_wrong_with_it():
    schema = Schema(
        (
            Attribute(name="x", kind="integer", values=range(3), outside="drop"),
            Attribute(name="y", kind="categorical", values=("a", "b")),
        )
    )
    codec = Codec(schema)
    frame = pl.DataFrame({"x": [0, 7, None, 2], "y": ["a", "!", "b", "b"]})
    codes = codec.encode(frame)
    assert codes.tolist() == [[0, 0], [2, 1]]
    assert codes.flags.f_contiguous
    faulty = pl.DataFrame({"x": [7, 7, 1, 2], "y": ["!", "!", "a", "!"]})
    with pytest.raises(DataError, match=r'column "y", row 4 of the table.*1 row has this fault'):
        codec.encode(faulty)


def test_a_lazy_frame_is_encoded_too():
    frame = pl.LazyFrame({"x": [1, 2], "y": [0, 0]}).select("x")
    assert codec_of(values=(1, 2)).encode(frame).tolist() == [[0], [1]]


def test_a_value_outside_a_range_is_a_fault():
    message = fault([20, 5, 7777, -6666], kind="integer", values=range(5, 21))
    assert message == (
        'column "x", row 3 of the table: the value is outside 5..20 (not shown: input records are '
        "confidential). 2 rows have this fault. "
        "Widen min or max if the data dictionary allows the value, or set "
        'outside = "drop" or "clip".'
    )


def test_a_value_that_is_not_listed_is_a_fault():
    message = fault(["a", "SECRET", "b"], values=("a", "b"))
    assert message == (
        'column "x", row 2 of the table: the value is none of the 2 in the schema (not shown: '
        "input records are confidential). 1 row has this fault. If the data dictionary has it, "
        "add it to values, or to missing if it means missing. Otherwise correct it, or set "
        'outside = "drop".'
    )
    assert "none of the 3" in fault([7], values=(9, 3, 5))


def test_a_fraction_is_a_fault():
    message = fault([1.0, 2.0, 2.53125], kind="integer", values=range(9))
    assert 'column "x", row 3 of the table: the value is not a whole number' in message
    assert "2.53125" not in message


def test_a_missing_cell_is_a_fault_where_none_is_declared():
    message = fault(["a", None, None], values=("a",))
    assert message == (
        'column "x", row 2 of the table: the cell is missing, but the schema does not declare '
        'missing. 2 rows have this fault. Declare missing = [""] for this column, or set '
        'outside = "drop".'
    )


def test_every_fault_of_every_column_is_in_one_message(people):
    frame = pl.DataFrame(
        {"age": [1.5, 7777.0, None], "job": ["SECRET", "cook", "cook"], "kids": [0, 1, 88]}
    )
    with pytest.raises(DataError) as caught:
        Codec(people).encode(frame, table_name="people.parquet")
    lines = str(caught.value).splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        'column "age", row 3 of people.parquet',
        'column "age", row 1 of people.parquet',
        'column "age", row 2 of people.parquet',
        'column "job", row 1 of people.parquet',
        'column "kids", row 3 of people.parquet',
    ]
    for cell in ("SECRET", "7777", "88", "1.5"):
        assert cell not in str(caught.value)


def test_a_message_lists_twenty_faults_and_counts_the_rest():
    attributes = [Attribute(name=f"c{i}", kind="integer", values=range(3)) for i in range(25)]
    frame = pl.DataFrame({f"c{i}": [9] for i in range(25)})
    with pytest.raises(DataError) as caught:
        Codec(Schema(tuple(attributes))).encode(frame)
    lines = str(caught.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == "  and 5 more such faults."


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ([7], {"values": ("7",)}, r"type Int64, but the schema describes text.*without quotes"),
        ([True], {"values": (1,)}, r'describes whole numbers.*or describe it as type = "boolean"'),
        ([True], {"values": ("t",)}, 'describes text.*or describe it as type = "boolean"'),
        ([date(2020, 1, 1)], {"values": ("t",)}, 'or describe it as type = "date"'),
        ([datetime(2020, 1, 1)], {"values": (1,)}, 'or describe it as type = "datetime"'),
        ([[1]], {"values": (1,)}, r"a schema cannot describe columns of type List\(Int64\)"),
        ([7], {"kind": "date", "values": range(3)}, 'describes dates.*"integer" or "real"'),
        ([date(2020, 1, 1)], {"kind": "boolean", "values": ("n", "y")}, "true and false"),
    ],
)
def test_a_column_of_the_wrong_type_is_refused(series, options, message):
    with pytest.raises(DataError, match=message):
        encode(series, **options)


def test_columns_must_be_those_of_the_schema():
    attributes = (Attribute(name=name, kind="integer", values=range(3)) for name in "abc")
    codec = Codec(Schema(tuple(attributes)))
    with pytest.raises(DataError, match=r't has no column "b", "c". Correct the header'):
        codec.encode(pl.DataFrame({"a": [1]}), table_name="t")
    with pytest.raises(DataError, match=r'does not describe column "z" of t. Add an \[\[attr'):
        codec.encode(pl.DataFrame({"a": [1], "b": [1], "c": [1], "z": [1]}), table_name="t")
    with pytest.raises(DataError, match="none of the schema's 3 columns") as caught:
        codec.encode(pl.DataFrame({"SECRET": [1]}), table_name="t")
    assert "SECRET" not in str(caught.value)


def test_messages_of_polars_are_not_shown():
    frame = pl.LazyFrame({"x": ["SECRET"]}).with_columns(pl.col("x").cast(pl.Int64))
    with pytest.raises(DataError, match="could not be computed") as caught:
        codec_of(values=(1,)).encode(frame)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__suppress_context__


AGE = Attribute(name="age", kind="integer", values=range(100))
WORD = Attribute(name="word", kind="categorical", values=("oak", "elm"), missing=("NA",))


def test_faults_are_summarized_by_kind_with_their_first_row():
    faults = pl.Series([None, 2, 0, 2, None, 2], dtype=pl.UInt8)
    found = find_faults(AGE, faults)
    assert [(fault.kind, fault.row, fault.count) for fault in found] == [
        ("missing", 2, 1),
        ("outside", 1, 3),
    ]


@pytest.mark.parametrize(
    ("attribute", "kind", "words"),
    [
        (AGE, "missing", "does not declare missing"),
        (AGE, "malformed", "not a whole number"),
        (AGE, "outside", "outside 0..99"),
        (WORD, "missing", 'only "NA" means missing'),
        (WORD, "outside", "none of the 2 in the schema"),
    ],
)
def test_a_fault_is_described_with_its_place_its_number_and_a_fix(attribute, kind, words):
    assert kind in FAULT_KINDS
    fault = CellFault(attribute=attribute, kind=kind, row=4, count=3)
    text = fault.describe(where="line 6 of t.csv", record_noun="line")
    assert text.startswith(f'column "{attribute.name}", line 6 of t.csv: ')
    assert words in text
    assert "3 lines have this fault" in text
    assert 'outside = "drop"' in text


@pytest.mark.parametrize(
    ("read", "fault"),
    [*((read_table, each) for each in ("99,a", "old,a", "1,", "1")), (GivenRows.read, "old,a")],
)
def test_an_error_is_the_same_for_101_faulty_lines_and_for_5000(tmp_path, read, fault):
    """An error ends in logs: it must not tell how many rows there are. A hundred are counted."""
    schema = Schema(
        (Attribute(name="n", kind="integer", values=range(5)), Identifier(name="who")),
        unit="who",
        max_rows_per_unit=2,
    )

    def message(number):
        table = tmp_path / "t.csv"
        table.write_text("n,who\n1,x\n" + number * f"{fault}\n", encoding="utf-8")
        with pytest.raises(DataError) as caught:
            read(table, schema)
        return str(caught.value)

    assert "100 lines have" in message(100) or "100 records do" in message(100)
    assert "More than 100 " in message(101)
    assert message(101) == message(5_000)


COLUMNS = (
    Attribute(name="age", kind="categorical", values=("a",)),
    Attribute(name="income", kind="categorical", values=("a",)),
    Identifier(name="id", release="omit"),
    Computed(name="total", rule=Formula("income")),
)


@pytest.mark.parametrize("names", [("age", "income"), ("total", "income", "id", "age")])
def test_columns_may_be_in_any_order_and_some_may_be_absent(names):
    require_columns(COLUMNS, names, table_name="t.csv")


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (("age", "Incomes"), ['no column "income"', '"Incomes" is like "income"']),
        (("age", "zzz"), ['no column "income"', 'It has "zzz"']),
        (("age",), ['no column "income". Correct']),
        (("age", "income", "agee"), ['does not describe column "agee"', '"agee" is like "age"']),
        (("age", "income", "zzz"), ['does not describe column "zzz" of t.csv. Add']),
        (("x", "y"), ["none of the schema's 4 columns"]),
    ],
)
def test_a_difference_is_named_with_the_nearest_column(names, parts):
    with pytest.raises(DataError) as error:
        require_columns(COLUMNS, names, table_name="t.csv")
    for part in parts:
        assert part in str(error.value)
