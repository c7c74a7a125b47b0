"""Round numbers: 1, 2 and 5 times a power of ten, and ladders made of them.

A bound that was rounded outward tells less about the row that had the extreme value; an edge at
a round number tells nothing.
"""

# Ten steps to a factor of ten, each about as wide as the last in proportion.
_STEPS = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)


def nice_above(number: float) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, … that is at least ``number``."""
    power = 1
    while True:
        for step in (1, 2, 5):
            if step * power >= number:
                return step * power
        power *= 10


def nice_below(number: float) -> int:
    """Return the largest of 1, 2, 5, 10, 20, … that is at most ``number``; at least 1."""
    found = 1
    while (more := nice_above(found + 1)) <= number:
        found = more
    return found


def nice_near(number: float) -> int:
    """Return the one of 1, 2, 5, 10, 20, … that is nearest to ``number``, in proportion."""
    below, above = nice_below(number), nice_above(number)
    return above if number * number > above * below else below


def outward(low: int, high: int) -> tuple[int, int]:
    """Return a range of round ends that holds ``low`` … ``high``; a short one stays as it is.

    The ends of a short range are mostly known: a scale from 1 to 5, the months.

    >>> outward(17, 90)
    (15, 90)
    >>> outward(1, 12)
    (1, 12)
    """
    if high - low <= 30:
        return low, high
    step = nice_above((high - low) / 25)
    return low // step * step, -(-high // step) * step


def ladder(low: int, high: int, *, first: int, last: int | None = None) -> list[int]:
    """Return inner edges for low … high whose bins grow in proportion to the numbers in them.

    Zero has a bin of its own, and so has what is below ``first``. From there on there are ten
    edges to a factor of ten; or, where most numbers lie within a factor of fifty, equal steps up
    to ``last``. Negative numbers mirror the positive ones.

    >>> ladder(0, 60, first=10)
    [1, 10, 12, 15, 20, 25, 30, 40, 50, 60]
    >>> ladder(0, 200, first=10, last=14)
    [1, 10, 11, 12, 13, 14, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 150, 200]
    """
    far = max(high, -low, 1)
    if last is None or last > 50 * first:
        rising = _rising(first, far)
    else:
        step = nice_near((last - first) / 50)
        even = range(first // step * step, last + step, step)
        rising = [*even, *_rising(even[-1] + 1, far)]
    edges = {0, 1, *rising, *(-edge for edge in rising)}
    return [edge for edge in sorted(edges) if low < edge <= high]


def _rising(first: int, last: int) -> list[int]:
    found, power = [], 1
    while power <= last * 10:
        found += [step * power // 10 for step in _STEPS if step * power % 10 == 0]
        power *= 10
    return [edge for edge in found if max(first, 2) <= edge <= last]


def powers(low: int, high: int) -> list[int]:
    """Return 0, and ±1, ±2, ±5, ±10, … up to ``high`` and down to ``low``, ascending."""
    found, power = [0], 1
    while power <= max(high, -low):
        found += [sign * step * power for step in (1, 2, 5) for sign in (-1, 1)]
        power *= 10
    return sorted(edge for edge in found if low <= edge <= high)
