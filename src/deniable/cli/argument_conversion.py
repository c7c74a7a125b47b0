"""Conversion of command line arguments without pydantic, whose import takes as long as a plan.

The command line library converts every argument by pydantic, even one that is not given. A number
has a parser of ours; a text, a path and one of a few words need none. Everything else is left to
the library, which converts it or reports an error.
"""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

# Instead of a value: the argument is left to the library.
_NOT_PLAIN = object()


def use_plain_conversion(parameters: Iterable[Any]) -> None:
    """Make parameters of a command convert their plain arguments themselves."""
    for parameter in parameters:
        by_library = parameter.process_value
        parameter.process_value = partial(_process_value, parameter, by_library)


def _process_value(parameter: Any, by_library: Any, ctx: Any, value: Any) -> Any:
    """Convert an argument and call the parameter's callback, as the library does."""
    converted = _convert(parameter, value)
    is_missing = parameter.required and parameter.value_is_missing(converted)
    if converted is _NOT_PLAIN or is_missing:
        return by_library(ctx, value)
    if parameter.callback is not None:
        return parameter.callback(ctx, parameter, converted)
    return converted


def _convert(parameter: Any, value: Any) -> Any:
    """Convert an argument; None or no values if it is not given, ``_NOT_PLAIN`` if not plain."""
    kind, settings = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    if settings.parser is not None:
        return _NOT_PLAIN if parameter.multiple else settings.parser(value)
    is_choice = get_origin(kind) is Literal and value in get_args(kind)
    if is_choice or (kind in (str, bool) and isinstance(value, kind)):
        return value
    if kind is Path and isinstance(value, (str, Path)) and _may_be_read(value):
        return Path(value)
    if kind == list[str] and isinstance(value, (list, tuple)):
        return list(value)
    return _NOT_PLAIN


def _may_be_read(path: str | Path) -> bool:
    """Whether the library would accept a path: it is absent, or may be read."""
    return not os.access(path, os.F_OK) or os.access(path, os.R_OK)
