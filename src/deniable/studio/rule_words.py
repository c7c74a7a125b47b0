"""A constraint of a schema in one sentence, for a reader who does not write TOML."""

from collections.abc import Mapping
from typing import Any

from deniable.schema.toml_writer import write_value

# Values of a condition that are listed.
_MAX_LISTED = 8
_BOUNDS = {"below": "below", "at_most": "at most", "above": "above", "at_least": "at least"}


def rule_sentence(table: Mapping[str, Any]) -> str:
    """Describe a ``[[constraint]]`` as a sentence about every record.

    >>> rule_sentence({"forbid": {"sex": ["male"], "age": {"below": 16}}})
    'No record has sex male together with age below 16.'
    >>> rule_sentence({"at_most": ["start", "end"]})
    'start is at most end.'
    """
    if isinstance(forbidden := table.get("forbid"), dict):
        parts = [f"{name} {_condition(value)}" for name, value in forbidden.items()]
        return f"No record has {' together with '.join(parts)}."
    if isinstance(allowed := table.get("allow"), dict):
        names = " and ".join(map(str, allowed.get("columns", ())))
        return f"Of {names}, only the {len(allowed.get('rows', ())):,} listed combinations occur."
    for key, words in (("less", "is below"), ("at_most", "is at most")):
        if key in table and len(table[key]) == 2:
            return f"{table[key][0]} {words} {table[key][1]}."
    # No form that is known here: as the file has it.
    rest = {key: value for key, value in table.items() if key not in ("confirmed", "name")}
    return "; ".join(f"{key} {write_value(value)}" for key, value in rest.items())


def _condition(value: Any) -> str:
    if isinstance(value, dict):
        if "missing" in value:
            return "missing" if value["missing"] else "not missing"
        return " and ".join(f"{_BOUNDS.get(key, key)} {each}" for key, each in value.items())
    listed = [str(each) for each in value] if isinstance(value, list) else [str(value)]
    more = f" or {len(listed) - _MAX_LISTED} more" if len(listed) > _MAX_LISTED else ""
    shown = listed[:_MAX_LISTED]
    if more or len(shown) == 1:
        return ", ".join(shown) + more
    return f"{', '.join(shown[:-1])} or {shown[-1]}"
