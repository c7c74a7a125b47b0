"""One-way marginals of real and released records, binned and labelled for bar charts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.schema.attribute import Attribute

# Limits for a readable chart: numbers are binned, the rarest categories are combined.
_MAX_NUMERIC_BARS = 40
_MAX_CATEGORICAL_BARS = 14
OTHER_VALUES = "all others"
_MISSING_LABEL, _OUTSIDE_LABEL = "missing", "not in the schema"
_MAX_LABEL_LENGTH = 40
_RANGE_SEPARATOR = " to "


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """Distribution of one column over the bars of a chart.

    Attributes:
        name: Name of the attribute.
        is_number: Whether the attribute is numeric; its bars are then in increasing order.
        labels: Value or range of values of each bar.
        released: Share of released records in each bar.
        real: Share of real rows in each bar.
    """

    name: str
    is_number: bool
    labels: tuple[str, ...]
    released: tuple[float, ...]
    real: tuple[float, ...]

    def document(self) -> dict[str, object]:
        """Return the JSON form used in metrics.json."""
        return {
            "attribute": self.name,
            "labels": list(self.labels),
            "released": list(self.released),
            "real": list(self.real),
        }


def measure_marginals(
    attributes: Sequence[Attribute], released: Codes, real: Codes
) -> tuple[Marginal, ...]:
    """Compute the marginal of every attribute."""
    return tuple(
        _marginal(attribute, released[:, j], real[:, j]) for j, attribute in enumerate(attributes)
    )


def _marginal(attribute: Attribute, released: Codes, real: Codes) -> Marginal:
    is_number = attribute.is_numeric
    if is_number:
        bars, labels = _numeric_bars(attribute)
    else:
        bars, labels = _categorical_bars(attribute, np.bincount(real, minlength=attribute.size))

    def shares(codes: Codes) -> tuple[float, ...]:
        counts = np.bincount(bars[codes], minlength=len(labels))
        return tuple((counts / max(1, len(codes))).tolist())

    return Marginal(
        name=attribute.name,
        is_number=is_number,
        labels=labels,
        released=shares(released),
        real=shares(real),
    )


def _numeric_bars(attribute: Attribute) -> tuple[Indices, tuple[str, ...]]:
    """Assign the codes of a numeric attribute to equally wide bars, and label the bars."""
    numbers = attribute.bins
    width = -(-numbers // _MAX_NUMERIC_BARS)
    bars = np.arange(attribute.size) // width
    labels = [
        _range_label(attribute, at, min(at + width, numbers)) for at in range(0, numbers, width)
    ]
    for code in range(numbers, attribute.size):
        bars[code] = len(labels)
        labels.append(value_label(attribute, code))
    return bars.astype(np.intp), tuple(labels)


def _range_label(attribute: Attribute, first: int, beyond: int) -> str:
    """Label the codes from ``first`` to ``beyond`` - 1 as one range."""
    low, high = value_label(attribute, first), value_label(attribute, beyond - 1)
    if low == high:
        return low
    start, end = low.partition(_RANGE_SEPARATOR)[0], high.rpartition(_RANGE_SEPARATOR)[2]
    return f"{start}{_RANGE_SEPARATOR}{end}"


def _categorical_bars(attribute: Attribute, counts: Counts) -> tuple[Indices, tuple[str, ...]]:
    """Assign codes to bars, one per value; if there are too many, combine all but the commonest."""
    if attribute.size <= _MAX_CATEGORICAL_BARS:
        return np.arange(attribute.size), tuple(
            value_label(attribute, code) for code in range(attribute.size)
        )
    order = np.argsort(-counts, kind="stable")[: _MAX_CATEGORICAL_BARS - 1]
    bars = np.full(attribute.size, _MAX_CATEGORICAL_BARS - 1, dtype=np.intp)
    bars[order] = np.arange(len(order))
    return bars, (*(value_label(attribute, int(code)) for code in order), OTHER_VALUES)


def value_label(attribute: Attribute, code: int) -> str:
    """Format the value, or the range of values, of a code."""
    if code == attribute.missing_code:
        return _MISSING_LABEL
    if code >= attribute.bins:
        return _OUTSIDE_LABEL
    if attribute.grid is None:
        text = str(attribute.values[code])
    else:
        inside = attribute.positions(code)
        first, last = (
            attribute.grid.format_position(inside[0]),
            attribute.grid.format_position(inside[-1]),
        )
        text = first if first == last else f"{first}{_RANGE_SEPARATOR}{last}"
    return text if len(text) <= _MAX_LABEL_LENGTH else text[: _MAX_LABEL_LENGTH - 1] + "…"
