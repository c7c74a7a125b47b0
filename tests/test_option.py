"""Options: one description each, from which flags, messages and types follow."""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from deniable.cli.options import with_options
from deniable.config import MAX_COST_GRAPH, MAX_COST_PAIRS, Config, Options, options
from deniable.errors import ConfigError
from deniable.option import Option, without_none


def an_option(**facts: Any) -> Option:
    return Option(
        **{"name": "x", "text": "A.", "section": "Model", "kind": int, "default": 1, **facts}
    )


def test_every_field_is_described_and_every_description_is_a_field():
    assert list(options()) == [each.name for each in fields(Config)]
    assert all(option.text.endswith(".") for option in options().values())


def test_defaults_are_allowed_by_their_own_bounds_and_choices():
    for option in options().values():
        option.require_allowed(option.default)


def test_the_keywords_for_editors_have_the_names_and_types_of_the_options():
    """``Options`` exists for type checkers: it must not drift from ``Config``."""
    hints = get_type_hints(Options)
    assert set(hints) == set(options())
    wider = {"omega", "order", "target"}  # also a number; also a list
    for name, hint in hints.items():
        if name not in wider:
            assert hint == without_none(get_type_hints(Config)[name]), name


def test_every_flag_is_an_option_and_every_option_with_a_flag_has_one():
    @with_options
    def command(**options: Any) -> None: ...

    flags = set(inspect.signature(command).parameters)
    assert flags == {name for name, option in options().items() if option.has_flag} | {"config"}


def test_defaults_in_words_are_the_numbers_in_the_code():
    """Written as words, so that --help loads nothing heavy; compared here."""
    assert Config().max_configurations == MAX_COST_PAIRS
    assert Config(estimator="clip").max_configurations == MAX_COST_GRAPH
    assert options()["max_cost"].default_text.startswith(f"{MAX_COST_PAIRS:,}; {MAX_COST_GRAPH} ")


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (int, 1.5, "x = 1.5: must be a whole number"),
        (int, True, "must be a whole number"),
        (int, "3", "must be a whole number"),
        (float, "much", "must be a number"),
        (float, 10**400, "too large"),
        (bool, 1, "must be true or false"),
        (tuple[str, ...], "abc", "must be a list of attributes' names"),
        (tuple[str, ...], [1], "must be a list of attributes' names"),
        (Mapping[str, list[str]], {"a": "b"}, "must map each name"),
    ],
)
def test_a_value_of_another_type_is_refused(kind, value, message):
    with pytest.raises(ConfigError, match=message):
        an_option(kind=kind).convert(value)


def test_values_are_converted_to_the_type_of_the_option():
    assert an_option(kind=int).convert(3.0) == 3
    assert type(an_option(kind=float).convert(3)) is float
    assert an_option(kind=tuple[str, ...]).convert(["a", "b"]) == ("a", "b")
    assert an_option(kind=str).convert(9) == "9"


def test_bounds_and_choices_are_named_in_the_message():
    with pytest.raises(ConfigError, match="x = 9: must lie between 1 and 5"):
        an_option(bounds=(1, 5)).require_allowed(9)
    with pytest.raises(ConfigError, match='x = "c": must be one of a, b'):
        an_option(kind=Literal["a", "b"]).require_allowed("c")
    with pytest.raises(ConfigError, match="must lie between"):
        an_option(kind=float, bounds=(0, 1)).require_allowed(float("nan"))


def test_a_choice_is_a_literal():
    assert get_origin(options()["mode"].kind) is Literal
    assert options()["mode"].choices == get_args(options()["mode"].kind)
    assert options()["k"].choices == ()
