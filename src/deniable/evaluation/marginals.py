"""The distribution of every column, real beside released, as it will be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes, Counts, Indices
from deniable.data.attributes import Attribute
from deniable.evaluation.captions import caption
from deniable.evaluation.erm import NUMERIC

# More bars than these cannot be read: numbers are drawn in wider steps, the rarest values as one.
_MOST_STEPS = 40
_MOST_BARS = 14
OTHERS = "all others"
_TO = " to "


@dataclass(frozen=True, kw_only=True)
class Marginal:
    """One column's distribution.

    Attributes:
        name: The attribute.
        is_number: Whether the bars have an order, from the least number to the greatest.
        labels: What each bar stands for.
        released: The share of released records in each bar.
        real: The share of real rows; None in a public edition.
    """

    name: str
    is_number: bool
    labels: tuple[str, ...]
    released: tuple[float, ...]
    real: tuple[float, ...] | None

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        found: dict[str, object] = {
            "attribute": self.name,
            "labels": list(self.labels),
            "released": list(self.released),
        }
        return found if self.real is None else found | {"real": list(self.real)}


def measure_marginals(
    attributes: Sequence[Attribute], released: Codes, real: Codes | None
) -> tuple[Marginal, ...]:
    """Return the distribution of every attribute. Without real rows, nothing of theirs is used."""
    return tuple(
        _marginal(attribute, released[:, j], None if real is None else real[:, j])
        for j, attribute in enumerate(attributes)
    )


def _marginal(attribute: Attribute, released: Codes, real: Codes | None) -> Marginal:
    is_number = attribute.kind in NUMERIC
    basis = np.bincount(released if real is None else real, minlength=attribute.size)
    if is_number:
        bars, labels = _steps(attribute)
    else:
        bars, labels = _commonest(attribute, basis)

    def shares(codes: Codes) -> tuple[float, ...]:
        counts = np.bincount(bars[codes], minlength=len(labels))
        return tuple((counts / max(1, len(codes))).tolist())

    return Marginal(
        name=attribute.name,
        is_number=is_number,
        labels=labels,
        released=shares(released),
        real=None if real is None else shares(real),
    )


def _steps(attribute: Attribute) -> tuple[Indices, tuple[str, ...]]:
    """Return the bar of each code of a number, and what the bars are called."""
    numbers = attribute.size - bool(attribute.missing)
    width = -(-numbers // _MOST_STEPS)
    bars = np.arange(attribute.size) // width
    labels = [_range(attribute, at, min(at + width, numbers)) for at in range(0, numbers, width)]
    if attribute.missing_code is not None:
        bars[attribute.missing_code] = len(labels)
        labels.append(caption(attribute, attribute.missing_code))
    return bars.astype(np.intp), tuple(labels)


def _range(attribute: Attribute, first: int, beyond: int) -> str:
    """Return the numbers of some consecutive codes, as one range."""
    low, high = caption(attribute, first), caption(attribute, beyond - 1)
    if low == high:
        return low
    return f"{low.partition(_TO)[0]}{_TO}{high.rpartition(_TO)[2]}"


def _commonest(attribute: Attribute, counts: Counts) -> tuple[Indices, tuple[str, ...]]:
    """Return the bar of each code, the commonest values first if there are too many for all."""
    if attribute.size <= _MOST_BARS:
        return np.arange(attribute.size), tuple(
            caption(attribute, code) for code in range(attribute.size)
        )
    order = np.argsort(-counts, kind="stable")[: _MOST_BARS - 1]
    bars = np.full(attribute.size, _MOST_BARS - 1, dtype=np.intp)
    bars[order] = np.arange(len(order))
    return bars, (*(caption(attribute, int(code)) for code in order), OTHERS)
