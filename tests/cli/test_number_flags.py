"""Flags with a number: what is parsed, and how a mistake is explained."""

import math

import pytest

from deniable.cli.number_flags import decimal_number, whole_number
from deniable.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "number"), [("3000", 3_000), ("+5", 5), ("-1", -1), (" 7 ", 7), (str(2**128), 2**128)]
)
def test_a_whole_number_is_parsed(text, number):
    assert whole_number("--records")(text) == number


@pytest.mark.parametrize(
    ("text", "example"),
    [
        *((text, "3000") for text in ("3,000", "3.000", "3 000", "3'000", "3_000")),
        ("12,345,678", "12345678"),
        *((text, "1000") for text in ("many", "3e3", "1.5", "", "1,00", "0x10", "٣", "9" * 5_000)),
    ],
)
def test_what_is_no_whole_number_is_explained_with_an_example(text, example):
    with pytest.raises(ConfigError) as error:
        whole_number("--records")(text)
    assert str(error.value).startswith(f"--records {text}: not a whole number")
    assert str(error.value).endswith(f"such as --records {example}")


def test_a_number_can_have_a_minimum():
    assert whole_number("--runs", least=1)("1") == 1
    with pytest.raises(ConfigError, match="--runs 0: must be at least 1"):
        whole_number("--runs", least=1)("0")


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1.0), ("0.5", 0.5), ("1e-9", 1e-9), ("inf", math.inf), ("-2", -2)]
)
def test_a_decimal_number_is_parsed(text, number):
    assert decimal_number("--epsilon")(text) == number


@pytest.mark.parametrize(
    ("text", "example"),
    [("1,5", "1.5"), ("one", "0.5"), ("nan", "0.5"), ("", "0.5"), ("1,", "0.5")],
)
def test_what_is_no_number_is_explained_with_an_example(text, example):
    with pytest.raises(ConfigError) as error:
        decimal_number("--epsilon")(text)
    assert str(error.value).startswith(f"--epsilon {text}: not a number")
    assert str(error.value).endswith(f"such as --epsilon {example}")
