"""Division of the budget of a private draft: parts of μ² for rows, types, and details of columns.

The parts add up to at most one. The number of rows and the numbers of distinct values get fixed
parts. How the rest is divided follows from noisy answers alone:

- Types need noise that is small compared with the rows, and no less: in a table of many rows they
  take less, and leave more for details.
- Where the rows suffice, texts and fractions are measured twice. A part of their details is held
  back, and goes to the columns in which the first measurement has left most rows undescribed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ROWS_PART = 0.03
DISTINCT_PART = 0.02
# Types get the part that gives this standard deviation, as a share of the rows, within limits.
_TYPES_NOISE_SHARE = 0.012
_MIN_TYPES_PART, _MAX_TYPES_PART = 0.04, 0.40
# The first measurement of details must be this precise, as a share of the rows, for a second one.
_MAX_FIRST_NOISE_SHARE = 0.015


@dataclass(frozen=True, kw_only=True)
class DetailWeight:
    """Weight of a column in the division of details.

    Attributes:
        first: Weight of the first measurement.
        reserved: Weight of what may be held back for a second one.
    """

    first: float
    reserved: float = 0.0


# Unknown texts need most rows.
TEXT_WEIGHT = DetailWeight(first=1.0, reserved=3.0)
FRACTION_WEIGHT = DetailWeight(first=1.0, reserved=2.0)
NUMBER_WEIGHT = DetailWeight(first=1.0)


@dataclass(frozen=True)
class DetailShares:
    """Shares of μ² for details.

    Attributes:
        first: Share of each column.
        reserve: Share held back for second measurements.
    """

    first: tuple[float, ...]
    reserve: float


def types_part(rows: int, *, columns: int, share_of: Callable[[float], float]) -> float:
    """Part of μ² for the types of all columns together.

    Args:
        rows: Noisy number of rows, at least 1.
        columns: Number of columns.
        share_of: Share of μ² at which noise has a given standard deviation.
    """
    needed = columns * share_of(_TYPES_NOISE_SHARE * rows)
    return min(max(needed, _MIN_TYPES_PART), _MAX_TYPES_PART)


def divide_details(
    weights: Sequence[DetailWeight], part: float, *, rows: int, sigma_of: Callable[[float], float]
) -> DetailShares:
    """Divide the part of details among columns, and hold back a reserve if rows suffice.

    Args:
        weights: Weights of the columns.
        part: Part of μ² for details.
        rows: Noisy number of rows.
        sigma_of: Standard deviation of the noise at a share of μ².
    """
    total = sum(weight.first + weight.reserved for weight in weights)
    first = tuple(part * weight.first / total for weight in weights)
    if sigma_of(min(first)) <= _MAX_FIRST_NOISE_SHARE * rows:
        return DetailShares(first, part * sum(weight.reserved for weight in weights) / total)
    whole = tuple(part * (weight.first + weight.reserved) / total for weight in weights)
    return DetailShares(whole, 0.0)


def divide_reserve(
    reserve: float, claims: Mapping[str, float], *, threshold_of: Callable[[float], float]
) -> dict[str, float]:
    """Divide the reserve among columns, in proportion to the square roots of their claims.

    Args:
        reserve: Share of μ² held back.
        claims: Noisy number of rows of each column that are still undescribed.
        threshold_of: Rows that a text needs to be named, at a share of μ². A column with a smaller
            claim gets nothing, as nothing could be named in it.
    """
    left = {name: claim for name, claim in claims.items() if claim > 0}
    while left and reserve > 0:
        total = sum(math.sqrt(claim) for claim in left.values())
        shares = {name: reserve * math.sqrt(claim) / total for name, claim in left.items()}
        hopeless = [name for name, share in shares.items() if threshold_of(share) > left[name]]
        if not hopeless:
            return shares
        del left[min(hopeless, key=lambda name: left[name])]
    return {}
