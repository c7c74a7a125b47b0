"""Nice numbers: 1, 2 and 5 times a power of ten.

A bound rounded outward discloses less about the row with the extreme value.
"""


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
