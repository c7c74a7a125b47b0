"""Pair masks: which combinations of the codes of two attributes the constraints allow.

A record is drawn attribute by attribute. With these masks, a value that contradicts an earlier one
is redrawn at once, before the rest of the record depends on it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deniable.arrays import CODE, Codes, Mask, Reals
from deniable.schema.attribute import Attribute
from deniable.schema.constraint_solver import ConstraintSolver
from deniable.schema.constraints import Constraint

# Masks of more cells are left out: records are still checked against all constraints at the end.
_MAX_MASK_CELLS = 2**20
# Implied masks are worked out for at most this many changes of a mask; later ones are left out.
_MAX_IMPLIED_CHANGES = 20_000

# Allowed combinations of codes, by the indices i < j of two attributes.
PairMasks = Mapping[tuple[int, int], Mask]
NO_MASKS: PairMasks = {}


def find_pair_masks(
    attributes: Sequence[Attribute], constraints: Sequence[Constraint]
) -> dict[tuple[int, int], Mask]:
    """Compute the masks of all pairs of attributes that constraints of two columns name.

    A combination of codes is allowed if some values in their bins satisfy the constraints. The
    masks follow from the schema alone.
    """
    at = {attribute.name: i for i, attribute in enumerate(attributes)}
    by_pair: dict[tuple[int, int], list[Constraint]] = {}
    for constraint in constraints:
        if len(constraint.columns) == 2:
            one, other = sorted(at[name] for name in constraint.columns)
            by_pair.setdefault((one, other), []).append(constraint)
    masks = {}
    for (i, j), among in by_pair.items():
        both = attributes[i], attributes[j]
        if both[0].size * both[1].size <= _MAX_MASK_CELLS:
            masks[i, j] = _allowed_codes(both, among)
    return _with_implied(masks, [attribute.size for attribute in attributes])


class MaskClosure:
    """Masks between items, and those that follow from them: path consistency.

    If no value of c goes with both x of a and y of b, then x and y exclude each other.

    Args:
        sizes: The number of values of each item.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = tuple(sizes)
        self._allowed: dict[tuple[int, int], Mask] = {}
        self._neighbours: dict[int, set[int]] = {}
        self._changes = 0

    def allowed(self, i: int, j: int) -> Mask:
        """Return the allowed combinations of values of items ``i`` and ``j``."""
        if (i, j) in self._allowed:
            return self._allowed[i, j]
        if (j, i) in self._allowed:
            return self._allowed[j, i].T
        return np.ones((self._sizes[i], self._sizes[j]), dtype=bool)

    def pairs(self) -> list[tuple[int, int]]:
        """List the pairs that exclude some combination, each once, with i < j."""
        return sorted(self._allowed)

    def restrict(self, i: int, j: int, mask: Mask) -> None:
        """Allow only combinations in ``mask``, and work out what follows from it."""
        waiting = [(i, j)] if self._intersect(i, j, mask) else []
        while waiting and self._changes < _MAX_IMPLIED_CHANGES:
            one, other = waiting.pop()
            for a, b in ((one, other), (other, one)):
                own = self.allowed(a, b).astype(np.float32)
                for k in sorted(self._neighbours.get(b, set()) - {a}):
                    implied = own @ self.allowed(b, k).astype(np.float32) > 0
                    if self._intersect(a, k, implied):
                        waiting.append((a, k))

    def _intersect(self, i: int, j: int, mask: Mask) -> bool:
        """Intersect one pair's mask with another; return whether it has changed."""
        before = self.allowed(i, j)
        after: Mask = before & mask
        if np.array_equal(before, after):
            return False
        self._allowed[min(i, j), max(i, j)] = after if i < j else after.T
        self._neighbours.setdefault(i, set()).add(j)
        self._neighbours.setdefault(j, set()).add(i)
        self._changes += 1
        return True


def _with_implied(
    masks: Mapping[tuple[int, int], Mask], sizes: Sequence[int]
) -> dict[tuple[int, int], Mask]:
    """Add the masks that follow from those given.

    Codes that the masks do not distinguish are merged first, so that matrices are small.
    """
    atoms = []
    for i, size in enumerate(sizes):
        own = [mask if a == i else mask.T for (a, b), mask in masks.items() if i in (a, b)]
        if not own:
            atoms.append(np.zeros(size, dtype=np.intp))
            continue
        rows = np.packbits(np.concatenate(own, axis=1), axis=1)
        atoms.append(np.unique(rows, axis=0, return_inverse=True)[1].ravel())
    firsts = [np.unique(atom, return_index=True)[1] for atom in atoms]
    closure = MaskClosure([len(first) for first in firsts])
    for (i, j), mask in masks.items():
        closure.restrict(i, j, mask[np.ix_(firsts[i], firsts[j])])
    found = {
        (i, j): closure.allowed(i, j)[np.ix_(atoms[i], atoms[j])]
        for i, j in closure.pairs()
        if sizes[i] * sizes[j] <= _MAX_MASK_CELLS
    }
    return dict(masks) | found


def masked_with(
    new: int, earlier: Iterable[int], masks: Mapping[tuple[int, int], Any]
) -> list[int]:
    """List the ``earlier`` attributes that share a mask with ``new``, in their order."""
    return [other for other in earlier if (min(new, other), max(new, other)) in masks]


def contradictions(records: Codes, new: int, earlier: Sequence[int], masks: PairMasks) -> Mask:
    """Mark the records whose code of attribute ``new`` contradicts an earlier attribute."""
    wrong: Mask = np.zeros(len(records), dtype=bool)
    for other in earlier:
        if (mask := masks.get((min(new, other), max(new, other)))) is not None:
            first, second = (new, other) if new < other else (other, new)
            wrong |= ~mask[records[:, first], records[:, second]]
    return wrong


def allowed_codes(records: Codes, new: int, earlier: Sequence[int], masks: PairMasks) -> Mask:
    """Mark the codes of attribute ``new`` that earlier attributes allow: records by codes.

    At least one of the earlier attributes must share a mask with ``new``.
    """
    found: list[Mask] = []
    for other in earlier:
        if (mask := masks.get((min(new, other), max(new, other)))) is not None:
            found.append((mask.T if new < other else mask)[records[:, other]])
    allowed: Mask = np.logical_and.reduce(found)
    return allowed


def restrict_to_allowed(probabilities: Reals, allowed: Mask) -> Reals:
    """Condition each row of probabilities on the values that are allowed.

    If none of them has a probability above 0, they are equally likely. A row without any is 0.
    """
    found = np.where(allowed, probabilities, 0.0)
    found = np.where(found.any(axis=1, keepdims=True), found, allowed)
    # Summed one after the other: NumPy's own sum may have other digits on another computer.
    total = np.cumsum(found, axis=1)[:, -1:]
    restricted: Reals = np.divide(found, total, out=np.zeros_like(found), where=total > 0)
    return restricted


def _allowed_codes(both: tuple[Attribute, Attribute], constraints: Sequence[Constraint]) -> Mask:
    shape = both[0].size, both[1].size
    codes = np.stack([index.ravel() for index in np.indices(shape)], axis=1).astype(CODE)
    return ConstraintSolver(both, constraints).feasible(codes).reshape(shape)
