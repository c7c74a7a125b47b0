"""The form of the plan: its fields are made from the descriptions of the options in ``Config``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from deniable.config import Config, options
from deniable.errors import ConfigError
from deniable.option import Option

# Options that every plan asks for. The one under "More options" is ``target``; the command line has
# all others.
MAIN = ("epsilon", "delta", "k", "mode")
_OPTIONS = (*MAIN, "target")
# Positions of the sliders: round numbers from very strict to very loose.
SLIDERS: dict[str, tuple[float, ...]] = {
    "epsilon": (0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 7, 10),
    "k": (2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500),
    "records": (100, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 500_000, 1_000_000),
}
DEFAULT_RECORDS = 10_000
MAX_RECORDS = 2**40
# Digits of a whole number in a field; larger ones mean nothing here.
_MAX_DIGITS = 18
# Names of fields in the words of a page.
LABELS = {
    "epsilon": "Privacy budget ε",
    "delta": "Failure probability δ",
    "k": "Rows behind a copied combination, k",
    "mode": "Mode",
}

# How to choose, for those who have not met these options.
_HINTS = {
    "epsilon": "Smaller is more private, and less exact. Up to 1 is usual.",
    "delta": "Leave it as it is, unless a rule of yours asks for another.",
    "k": "Larger is stricter: less is copied, and more is drawn from the model.",
    "mode": "One-shot suits almost always. Seedless copies no combination of values. Tested and "
    "randomized test each candidate, as the paper does.",
}


@dataclass(frozen=True, kw_only=True)
class PlanField:
    """One field of the form.

    Attributes:
        option: The description of the option.
        label: Its name on the page.
        text: What is in the field.
        hint: How to choose.
        slider: The position of its slider; None without one.
        positions: The number of positions of the slider.
    """

    option: Option
    label: str
    text: str
    hint: str
    slider: int | None = None
    positions: int = 0


@dataclass(frozen=True, kw_only=True)
class PlanForm:
    """What a plan was asked for, as texts by name. Empty texts are defaults."""

    texts: Mapping[str, str]

    @classmethod
    def sent(cls, form: Mapping[str, str], *, moved: str = "") -> "PlanForm":
        """Read the form of a page.

        Args:
            form: The texts by name.
            moved: The slider that was moved, such as ``epsilon_slider``; its value wins.
        """
        names = ("records", "rows", "format", "accept_drafted_schema", *_OPTIONS)
        texts = {name: form[name].strip() for name in names if form.get(name, "").strip()}
        name = moved.removesuffix("_slider")
        if moved.endswith("_slider") and name in SLIDERS:
            texts[name] = _position_value(name, form.get(moved, ""))
        return cls(texts=texts)

    @property
    def records(self) -> int:
        """The number of records.

        Raises:
            ConfigError: It is not a whole number, or too small or large.
        """
        text = self.texts.get("records", str(DEFAULT_RECORDS)).replace(",", "").replace("_", "")
        number = _whole_number(text)
        if number is None or not 1 <= number <= MAX_RECORDS:
            raise ConfigError(f"records: write a whole number from 1 to {MAX_RECORDS:,}")
        return number

    @property
    def rows(self) -> int | None:
        """The number of rows for the forecast; None for the schema's guess."""
        text = self.texts.get("rows", "").replace(",", "").replace("_", "")
        return _whole_number(text) or None

    @property
    def file_format(self) -> str:
        """The format of the records."""
        return "parquet" if self.texts.get("format") == "parquet" else "csv"

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name.

        Raises:
            ConfigError: A text is not what its option needs.
        """
        found: dict[str, Any] = {}
        for name in _OPTIONS:
            text = self.texts.get(name, "")
            if text:
                option = options()[name]
                value = option.convert(_parse(option, text))
                if value != option.default and text != option.default_label:
                    found[name] = value
        if "accept_drafted_schema" in self.texts:
            found["accept_drafted_schema"] = True
        return found

    def config(self) -> Config:
        """The options of the run.

        Raises:
            ConfigError: They are not allowed.
        """
        return Config.assemble(self.given())

    def flags(self) -> list[str]:
        """The flags of the command line that mean the same."""
        flags: list[str] = []
        for name, value in self.given().items():
            flag = options()[name].flag
            if value is True:
                flags.append(flag)
            elif isinstance(value, tuple):
                flags += [f"{flag}={each}" for each in value]
            else:
                flags += [flag, _number_text(value)]
        return flags + (["--format", "parquet"] if self.file_format == "parquet" else [])

    @property
    def main_fields(self) -> list[PlanField]:
        """Fields that every plan asks for."""
        found = []
        for name in MAIN:
            option = options()[name]
            text = self.texts.get(
                name, "" if option.default is None else _number_text(option.default)
            )
            steps = SLIDERS.get(name, ())
            slider = nearest_position(name, text) if steps else None
            found.append(
                PlanField(
                    option=option,
                    label=LABELS[name],
                    text=text,
                    hint=_HINTS[name],
                    slider=slider,
                    positions=len(steps),
                )
            )
        return found

    @property
    def has_more(self) -> bool:
        """Whether something was given that is under "More options"."""
        return bool(self.texts.keys() & {"rows", "format", "target"})


def nearest_position(name: str, text: str) -> int:
    """The position of a slider that is nearest to a number, on a logarithmic scale."""
    steps = SLIDERS[name]
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = steps[0]
    if not 0 < number < math.inf:
        return len(steps) - 1 if number > 0 else 0
    return min(range(len(steps)), key=lambda at: abs(math.log(steps[at] / number)))


def _position_value(name: str, position: str) -> str:
    steps = SLIDERS[name]
    at = _whole_number(position) or 0
    return (
        f"{steps[min(at, len(steps) - 1)]:g}"
        if name == "epsilon"
        else str(steps[min(at, len(steps) - 1)])
    )


def _whole_number(text: str) -> int | None:
    """Read a whole number that is not negative; None if the text is none, or far too long."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if is_number else None


def _number_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _parse(option: Option, text: str) -> Any:
    """Read the text of an option as what it needs."""
    if option.kind in (int, float):
        try:
            number = option.kind(text.replace("_", ""))
        except ValueError:
            number = math.nan
        if option.kind is int and len(text) > _MAX_DIGITS:
            number = math.nan  # too long for a number of anything
        if math.isnan(number):
            kind = "whole number" if option.kind is int else "number"
            example = _number_text(option.default)
            raise ConfigError(f"{LABELS[option.name]}: write a {kind}, such as {example}")
        return number
    if get_origin(option.kind) is tuple:
        return [line for line in text.replace("\r", "").split("\n") if line]
    return text
