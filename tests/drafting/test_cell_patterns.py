"""Classes of text cells: each text has exactly one."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.drafting.cell_patterns import (
    CLASS_INDEX,
    CLASS_NAMES,
    classify_cells,
    classify_columns,
    split_name,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "missing "),
        ("NA", "missing NA"),
        ("?", "missing ?"),
        ("NONE", "text"),
        ("0", "bit"),
        (" 7 ", "decimals 0"),
        ("-8", "decimals 0"),
        ("15400.0", "point"),
        ("15400.", "point"),
        ("1.50", "decimals 1"),
        ("007", "zeros"),
        ("30.795847750865054", "long"),
        ("1e5", "long"),
        ("inf", "text"),
        ("12345678901234567890", "text"),
        ("yes", "pair no/yes"),
        ("Y", "pair N/Y"),
        ("2020-02-28", "date %Y-%m-%d"),
        ("2020-02-30", "text"),
        ("31/12/2020", "date %d/%m/%Y"),
        ("12/31/2020", "date %m/%d/%Y"),
        ("1/2/2020", "date %d/%m/%Y or %m/%d/%Y"),
        ("2020-01-01 10:00", "datetime %Y-%m-%d %H:%M"),
        ("2020/03/11 01:48:14", "datetime %Y/%m/%d %H:%M:%S"),
        ("31.12.2020 10:00", "datetime %d.%m.%Y %H:%M"),
        ("1/2/2020 10:00", "datetime %d/%m/%Y %H:%M or %m/%d/%Y %H:%M"),
        ("0020-01-01", "text"),
        ("axolotl", "text"),
    ],
)
def test_a_text_has_the_expected_class(text, name):
    assert CLASS_NAMES[classify_cells(pl.Series([text]))[0]] == name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=8))
def test_the_class_of_a_text_does_not_depend_on_other_texts(texts):
    together = classify_cells(pl.Series(texts, dtype=pl.String))
    alone = [classify_cells(pl.Series([text]))[0] for text in texts]
    assert together.tolist() == alone
    assert len(CLASS_INDEX) == len(CLASS_NAMES)


def test_columns_are_classified_as_each_alone():
    columns = [pl.Series("a", ["1", "oak", ""]), pl.Series("b", [], dtype=pl.String)]
    columns.append(pl.Series("c", ["2020-01-01", "yes"]))
    together = classify_columns(columns)
    assert [t.tolist() for t in together] == [classify_cells(c).tolist() for c in columns]
    assert classify_columns([]) == []


def test_a_name_is_split_at_capitals_and_punctuation():
    assert split_name("patientId") == {"patient", "id"}
    assert split_name("ZIP-code_2") == {"zip", "code"}
    assert "id" not in split_name("humidity")
