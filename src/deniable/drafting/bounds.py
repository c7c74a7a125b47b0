"""Round numbers: 1, 2 and 5 times a power of ten.

A bound that was rounded outward tells less about the row that had the extreme value; an edge at
a round number tells nothing.
"""


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


def powers(low: int, high: int) -> list[int]:
    """Return 0, and ±1, ±2, ±5, ±10, … up to ``high`` and down to ``low``, ascending."""
    found, power = [0], 1
    while power <= max(high, -low):
        found += [sign * step * power for step in (1, 2, 5) for sign in (-1, 1)]
        power *= 10
    return sorted(edge for edge in found if low <= edge <= high)
