"""Errors and panics of polars: raise errors of this package instead, without their messages.

polars quotes cells in its messages. A panic of polars is a ``BaseException``, which handlers of
``Exception`` let pass.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from deniable.errors import InputError

# Everything that polars raises. Messages may quote cells, so they are never passed on.
POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# Errors on columns of pandas or Arrow that polars cannot import. They may quote cells, too.
IMPORT_ERRORS = (*POLARS_ERRORS, TypeError, ValueError, OverflowError, NotImplementedError)


@contextmanager
def polars_errors_as(
    error: type[InputError], what: str, *also: type[BaseException], fix: str
) -> Iterator[None]:
    """Raise ``error`` where polars fails on data that came from outside.

    The message is ``what``, the class of the cause, and ``fix``. The message of the cause is left
    out, and so is the cause itself, since a traceback would show it.

    Args:
        error: The class of the error.
        what: What could not be done.
        also: More exceptions to convert.
        fix: What to do about it.
    """
    causes: tuple[type[BaseException], ...] = (*POLARS_ERRORS, *also)
    try:
        yield
    except causes as cause:
        raise error(f"{what} (polars: {type(cause).__name__}). {fix}") from None
