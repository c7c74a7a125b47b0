"""Errors and panics of polars become errors of the package; their messages are not shown."""

import polars as pl
import pytest

from deniable.data.polars_errors import polars_errors_as
from deniable.errors import ArtefactError, DataError


def panic():
    """Make polars panic: no calendar has this date."""
    cells = pl.Series("SECRET", [2**31 - 1], dtype=pl.Int32).cast(pl.Date)
    cells.to_frame().select(pl.col("SECRET").dt.to_string("%Y"))


def test_polars_panics_with_an_exception_that_no_handler_of_exception_catches():
    with pytest.raises(BaseException, match="out-of-range") as caught:
        panic()
    assert isinstance(caught.value, pl.exceptions.PanicException)
    assert not isinstance(caught.value, Exception)


@pytest.mark.parametrize("error", [DataError, ArtefactError])
@pytest.mark.parametrize(
    ("fail", "cause"),
    [
        (panic, "PanicException"),
        (lambda: pl.Series(["SECRET"]).cast(pl.Int64), "InvalidOperationError"),
        (lambda: pl.DataFrame({"a": [1]})["SECRET"], "ColumnNotFoundError"),
    ],
)
def test_an_error_or_panic_is_converted_without_its_message(error, fail, cause):
    with (
        pytest.raises(error) as caught,
        polars_errors_as(error, "t.csv cannot be read", fix="Check it."),
    ):
        fail()
    assert str(caught.value) == f"t.csv cannot be read (polars: {cause}). Check it."
    assert caught.value.__suppress_context__


def test_other_exceptions_pass_unless_they_are_listed():
    with pytest.raises(OSError, match="mine"), polars_errors_as(DataError, "no", fix=""):
        raise OSError("mine")
    with (
        pytest.raises(DataError, match="OSError"),
        polars_errors_as(DataError, "", OSError, fix=""),
    ):
        raise OSError("mine")
    with polars_errors_as(DataError, "no", fix=""):
        assert True
