"""One-hot design matrices of a fit, and their products, by SciPy's compiled functions.

The products are those of ``scipy.sparse``, to the last bit: always in the same order, so that the
same noisy counts give the same network. Its matrices cannot add to a product that is there, and
would need a transpose of their own: so the two functions behind ``@`` are called directly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Indices

# Fits compute with 32 bits: half the memory traffic.
Floats = NDArray[np.float32]
# Parents are looked up together while they have at most this many joint groups.
_MAX_JOINT_GROUPS = 512


@dataclass(frozen=True, kw_only=True)
class OneHotDesign:
    """A sparse matrix whose entries are all one.

    Attributes:
        row_ends: Where each row ends in ``places``; a zero first.
        places: The columns of the ones, row after row.
        columns: The number of columns.
    """

    row_ends: NDArray[np.int32]
    places: NDArray[np.int32]
    columns: int

    @classmethod
    def of(cls, blocks: Sequence[Indices], *, columns: int) -> "OneHotDesign":
        """Make a matrix, given the columns of each row's ones; blocks of rows are stacked."""
        per_row = np.concatenate([np.full(len(block), block.shape[1]) for block in blocks])
        return cls(
            row_ends=np.concatenate([[0], np.cumsum(per_row)]).astype(np.int32),
            places=np.concatenate([block.ravel() for block in blocks]).astype(np.int32),
            columns=columns,
        )

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.row_ends) - 1

    def times(self, dense: Floats, rows: slice = slice(None), out: Floats | None = None) -> Floats:
        """Multiply some rows by a dense matrix: sum the rows of ``dense`` that each row selects.

        Args:
            dense: One row for each column of this matrix.
            rows: A range of rows.
            out: Where to put the product, one row for each of the ``rows``. By default, it is new.
        """
        part = self._part(rows)
        if out is None:
            out = np.zeros((len(part.lengths), dense.shape[1]), dtype=np.float32)
        else:
            out.fill(0.0)
        _sparsetools().csr_matvecs(
            len(part.lengths), self.columns, dense.shape[1],
            part.ends, part.places, part.ones, dense.ravel(), out.ravel(),
        )  # fmt: skip
        return out

    def transposed_times(self, dense: Floats) -> Floats:
        """Multiply the transpose by a dense matrix: sum its rows by column."""
        total = np.zeros((self.columns, dense.shape[1]), dtype=np.float32)
        self.add_transposed_times(total, dense, np.ones(self.rows, dtype=np.float32))
        return total

    def add_transposed_times(
        self, total: Floats, dense: Floats, weights: Floats, rows: slice = slice(None)
    ) -> None:
        """Add the product of some rows' transpose and a dense matrix with weighted rows.

        Args:
            total: What the product is added to: columns of this matrix by columns of ``dense``.
            dense: One row for each of the ``rows``.
            weights: The factor of each row.
            rows: A range of rows.
        """
        part = self._part(rows)
        factors = np.repeat(weights, part.lengths)
        # The rows of this matrix are the columns of its transpose.
        _sparsetools().csc_matvecs(
            self.columns, len(part.lengths), dense.shape[1],
            part.ends, part.places, factors, dense.ravel(), total.ravel(),
        )  # fmt: skip

    def _part(self, rows: slice) -> "_RowRange":
        """Select a range of rows; each range is prepared once."""
        start, stop, _ = rows.indices(self.rows)
        found = self._parts.get((start, stop))
        if found is None:
            ends = self.row_ends[start : stop + 1]
            places = self.places[ends[0] : ends[-1]]
            ones = np.ones(len(places), dtype=np.float32)
            found = _RowRange(ends - ends[0], places, ones, np.diff(ends))
            self._parts[start, stop] = found
        return found

    @cached_property
    def _parts(self) -> dict[tuple[int, int], "_RowRange"]:
        return {}


class _RowRange(NamedTuple):
    """Some rows: where each ends in the columns of their ones, these, as many ones, and lengths."""

    ends: NDArray[np.int32]
    places: NDArray[np.int32]
    ones: Floats
    lengths: NDArray[np.int32]


def joint_design(
    groups: Sequence[Indices], group_counts: Sequence[int]
) -> tuple[OneHotDesign, OneHotDesign, int]:
    """Number the joint groups of several parents, so that a configuration has few of them.

    Args:
        groups: For each parent, its group in each configuration.
        group_counts: The number of groups of each parent.

    Returns:
        The joint groups of each configuration, and the parents' groups in each joint group, as
        one-hot sparse matrices, whose product is the one-hot design of all parents; and the number
        of joint groups of the first parents.
    """
    columns: list[Indices] = []
    joint_members: list[list[tuple[int, Indices]]] = []
    sizes: list[int] = []
    start = 0
    for in_configurations, number in zip(groups, group_counts, strict=True):
        own = np.arange(number)
        if sizes and sizes[-1] * number <= _MAX_JOINT_GROUPS:
            columns[-1] = columns[-1] * number + in_configurations
            before = [(offset, np.repeat(place, number)) for offset, place in joint_members[-1]]
            joint_members[-1] = [*before, (start, np.tile(own, sizes[-1]))]
            sizes[-1] *= number
        else:
            columns.append(in_configurations)
            joint_members.append([(start, own)])
            sizes.append(number)
        start += number
    offsets = np.cumsum([0, *sizes])
    shifted = [column + offset for column, offset in zip(columns, offsets, strict=False)]
    rows = [np.stack([g + o for o, g in members], axis=1) for members in joint_members]
    joint = OneHotDesign.of([np.stack(shifted, axis=1)], columns=int(offsets[-1]))
    return joint, OneHotDesign.of(rows, columns=start), sizes[0]


@cache
def _sparsetools() -> Any:
    from scipy.sparse import _sparsetools  # noqa: PLC0415 - slow to import; not for a plan

    return _sparsetools
