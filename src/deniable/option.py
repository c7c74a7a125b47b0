"""Option: the description of one option of a run, and the checks of its value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from deniable.errors import ConfigError

Section = Literal["Common", "Privacy", "Model", "The paper's modes", "Execution"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option: what flags, help texts, documents and messages need to know of it.

    Attributes:
        name: The field of ``Config``, the Python keyword and the configuration key.
        text: One sentence for ``--help`` and the documents.
        section: The panel of ``--help``.
        kind: The type of its value, without None.
        default: The default value.
        default_label: The default in words, where it is computed.
        bounds: The least and the largest number.
        applies_to: The modes or estimators it matters for.
        has_flag: Whether the command line has it; else Python and the configuration file only.
    """

    name: str
    text: str
    section: Section
    kind: Any
    default: Any
    default_label: str = ""
    bounds: tuple[float, float] | None = None
    applies_to: str = "all"
    has_flag: bool = True

    @property
    def flag(self) -> str:
        """The flag of the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed texts; empty for other types."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def default_text(self) -> str:
        """The default, for a reader."""
        plain = {True: "yes", False: "no"}
        is_switch = isinstance(self.default, bool)
        return self.default_label or (plain[self.default] if is_switch else f"{self.default}")

    def require_allowed(self, value: Any) -> None:
        """Refuse a number out of bounds, or a text that is not one of the choices."""
        if value is None:
            return
        if self.choices and value not in self.choices:
            choices = ", ".join(self.choices)
            raise ConfigError(f'{self.name} = "{value}": must be one of {choices}')
        if self.bounds is not None and not self.bounds[0] <= value <= self.bounds[1]:
            low, high = self.bounds
            raise ConfigError(f"{self.name} = {value}: must lie between {low:g} and {high:g}")

    def convert(self, value: Any) -> Any:
        """Convert a value to the type of the option, or refuse it."""
        if self.kind in (int, float):
            return self._number(value)
        if self.kind is str:
            return str(value)
        if self.kind is bool and not isinstance(value, bool):
            raise ConfigError(f"{self.name} = {value!r}: must be true or false")
        if get_origin(self.kind) is tuple:
            if not _is_list_of_names(value):
                raise ConfigError(f"{self.name} = {value!r}: must be a list of attributes' names")
            return tuple(value)
        if get_origin(self.kind) is Mapping and not _is_graph(value):
            raise ConfigError(
                f"{self.name} = {value!r}: must map each name to a list of parents' names"
            )
        return value

    def _number(self, value: Any) -> int | float:
        kind = "whole number" if self.kind is int else "number"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{self.name} = {value!r}: must be a {kind}")
        try:
            real = float(value)
        except OverflowError:
            raise ConfigError(f"{self.name} = …: the number is too large") from None
        if self.kind is float:
            return real
        if not real.is_integer():
            raise ConfigError(f"{self.name} = {value!r}: must be a {kind}")
        return int(value)


def option_field(default: Any, text: str, section: Section, **facts: Any) -> Any:
    """Declare a field of a dataclass together with the description of its option."""
    return field(default=default, metadata={"text": text, "section": section, **facts})


def without_none(kind: Any) -> Any:
    """The type of an optional value, without None."""
    left = [each for each in get_args(kind) if each is not type(None)]
    return left[0] if type(None) in get_args(kind) else kind


def _is_graph(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and _is_list_of_names(parents) for name, parents in value.items()
    )


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
