"""Nice numbers: 1, 2 and 5 times a power of ten; and coarse bounds of numbers and dates.

A bound rounded outward discloses less about the row with the extreme value.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

# Units of dates and times, from fine to coarse: what of a time is set to its lowest value, and a
# time that leads from the start of one into the next.
_UNITS: tuple[tuple[dict[str, int], timedelta], ...] = (
    ({"minute": 0, "second": 0, "microsecond": 0}, timedelta(hours=1)),
    ({"hour": 0}, timedelta(days=1)),
    ({"day": 1}, timedelta(days=32)),
    ({"month": 1}, timedelta(days=366)),
)
# Points of a grid that are tried before those of a coarser one.
_POINTS_PER_GRID = 10


def nice_above(number: float) -> int:
    """Round up to one of 1, 2, 5, 10, 20, … ."""
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power >= number:
                return step * power
        power *= 10


def nice_below(number: float) -> int:
    """Round down to one of 1, 2, 5, 10, 20, …; at least 1."""
    found = 1
    while (more := nice_above(found + 1)) <= number:
        found = more
    return found


def nice_near(number: float) -> int:
    """Round to the nearest of 1, 2, 5, 10, 20, … on a logarithmic scale."""
    below, above = nice_below(number), nice_above(number)
    return above if number * number > above * below else below


def round_outward(low: int, high: int) -> tuple[int, int]:
    """Round the ends of a range outward; a short range stays as it is.

    The ends of a short range are usually public: a scale from 1 to 5, the months.

    >>> round_outward(17, 90)
    (15, 90)
    >>> round_outward(1, 12)
    (1, 12)
    """
    if high - low <= 30:
        return low, high
    step = nice_above((high - low) / 25)
    return low // step * step, -(-high // step) * step


def nice_edges(low: int, high: int) -> list[int]:
    """List 0 and ±1, ±2, ±5, ±10, … between ``low`` and ``high``, ascending."""
    found, power = [0], 1
    while power <= max(high, -low):
        found += [sign * step * power for step in (1, 2, 5) for sign in (-1, 1)]
        power *= 10
    return sorted(edge for edge in found if low <= edge <= high)


def coarser_numbers(
    number: Decimal, *, span: Decimal, unit: Decimal, up: bool
) -> Iterator[Decimal]:
    """Round a bound down, or up, to points of ever coarser grids: of each the next ten.

    The first grid has two significant digits of the bound, or of the column's range if that is
    shorter, as that of years is.

    Args:
        number: The bound.
        span: The length of the column's range.
        unit: The smallest difference of its numbers; no grid is finer.
        up: Whether to round up.

    >>> found = coarser_numbers(Decimal(1987), span=Decimal(5000), unit=Decimal(1), up=False)
    >>> [int(each) for each in found][:11]
    [1900, 1800, 1700, 1600, 1500, 1400, 1300, 1200, 1100, 1000, 1800]
    """
    rounding, sign = (ROUND_CEILING, 1) if up else (ROUND_FLOOR, -1)
    power = Decimal(1).scaleb(min(abs(number), span).adjusted() - 1)
    while power <= span:
        for step in (power, 2 * power, 5 * power):
            if step >= unit:
                rounded = (number / step).to_integral_value(rounding) * step
                yield from (rounded + sign * step * k for k in range(_POINTS_PER_GRID))
        power *= 10


def coarser_times(moment: date, *, up: bool) -> Iterator[date]:
    """Round a date, or a time, as ``coarser_numbers`` does: to hours, days, months and years.

    >>> found = coarser_times(date(2024, 5, 17), up=True)
    >>> [str(each) for each in found][9:12]
    ['2024-05-26', '2024-06-01', '2024-07-01']
    """
    is_date = not isinstance(moment, datetime)
    time = datetime.fromisoformat(moment.isoformat())
    for unit in range(int(is_date), len(_UNITS)):
        longer = _UNITS[unit][1] if up else timedelta(microseconds=-1)
        rounded = _start_of(time, unit)
        try:
            if up and rounded < time:
                rounded = _start_of(rounded + longer, unit)
            for _ in range(_POINTS_PER_GRID):
                yield rounded.date() if is_date else rounded
                rounded = _start_of(rounded + longer, unit)
        except OverflowError:  # before the year 1, or after 9999
            continue


def _start_of(time: datetime, unit: int) -> datetime:
    """Return the start of the hour, day, month or year of a time."""
    cleared = {name: value for parts, _ in _UNITS[: unit + 1] for name, value in parts.items()}
    return time.replace(**cleared)  # type: ignore[arg-type]
