"""What a code is called in a report: the value that the schema gives it. No cell is looked at."""

from deniable.data.attributes import Attribute

MISSING = "missing"
_LONGEST = 40


def caption(attribute: Attribute, code: int) -> str:
    """Return the value, or the range of values, that a code stands for."""
    if code == attribute.missing_code:
        return MISSING
    if attribute.unit is None:
        text = str(attribute.values[code])
    else:
        inside = attribute.positions(code)
        first, last = attribute.unit.show(inside[0]), attribute.unit.show(inside[-1])
        text = first if first == last else f"{first} to {last}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
