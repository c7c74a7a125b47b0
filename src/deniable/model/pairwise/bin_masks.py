"""What the constraints allow in the records of a fit's pool, so that fits take it into account.

A value of a record is drawn among those that its earlier values allow (``schema/pair_masks.py``).
A fit that did not know of this would match the noisy counts only before the constraints apply, and
they would shift every column that has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deniable.arrays import Indices, Mask, Reals
from deniable.model.pairwise.one_way import sum_blocks
from deniable.model.pairwise.shrinkage import rake
from deniable.schema.pair_masks import PairMasks, masked_with

# In a fit, a bin that is not allowed has this weight instead of 0. So a model that prefers such
# bins fits worse, and most values are drawn at the first try.
_LEAST_SHARE_IN_FIT = 0.01
# Rounds in which the counts of a table are limited, then its margins fitted again.
_LIMITING_ROUNDS = 5


@dataclass(frozen=True)
class Pieces:
    """Pieces of an attribute's bins: codes of one bin that no mask distinguishes.

    Attributes:
        of_code: The piece of each code.
        first_code: The first code of each piece.
        bins: The bin of each piece, ascending.
        shares: The share of each piece in its bin.
    """

    of_code: Indices
    first_code: Indices
    bins: Indices
    shares: Reals

    @classmethod
    def of(cls, bins: Indices, values: Reals, masks: Sequence[Mask]) -> "Pieces":
        """Divide bins by the rows of masks; ``bins`` and ``values`` are those of the codes."""
        row, rows = np.zeros(len(bins), dtype=np.intp), 1
        if masks:
            packed = np.packbits(np.concatenate(masks, axis=1), axis=1)
            distinct, row = np.unique(packed, axis=0, return_inverse=True)
            row, rows = row.ravel(), len(distinct)
        _, first, of_code = np.unique(bins * rows + row, return_index=True, return_inverse=True)
        of_piece = bins[first]
        weights = np.bincount(of_code, values)
        return cls(of_code, first, of_piece, weights / np.bincount(of_piece, weights)[of_piece])

    def within_bins(self, values: Reals) -> Reals:
        """Compute the share of each code in its bin; ``values`` are the frequencies of the codes.

        Codes of a piece keep their ratios.
        """
        in_piece = values / np.bincount(self.of_code, values)[self.of_code]
        within: Reals = in_piece * self.shares[self.of_code]
        return within


@dataclass(frozen=True)
class AllowedPieces:
    """The pieces of an attribute that the constraints allow in the records of a pool.

    Attributes:
        pieces: The pieces.
        allowed: Whether each piece is allowed, by class of records.
        classes: The class of each record.
    """

    pieces: Pieces
    allowed: Mask
    classes: Indices

    @property
    def excludes_some(self) -> bool:
        """Whether some piece is not allowed in some record."""
        return not self.allowed.all()

    @cached_property
    def of_bins(self) -> Reals:
        """The share of each bin that is allowed, by class."""
        return self.sum_bins(self.allowed * self.pieces.shares)

    def in_fit(self, classes: Indices) -> Reals | None:
        """What is added to the logits when a model is fitted, by ``classes``; None if nothing."""
        if not self.excludes_some:
            return None
        return np.log(np.maximum(self.of_bins, _LEAST_SHARE_IN_FIT))[classes]

    def restrict(self, distributions: Reals, classes: Indices) -> Reals:
        """Compute the distributions of the pieces that are allowed from those of all bins."""
        plain = self.pieces.shares * self.allowed[classes]
        own = distributions[:, self.pieces.bins] * plain
        # Effects may be so large that no allowed bin has a probability above 0.
        restricted: Reals = np.where(own.any(axis=1, keepdims=True), own, plain)
        restricted /= restricted.sum(axis=1, keepdims=True)
        return restricted

    def sum_bins(self, by_piece: Reals) -> Reals:
        """Sum the pieces of each bin: records by bins."""
        return _sum_bins(by_piece, self.pieces.bins)


@dataclass(frozen=True)
class BinMasks:
    """The pair masks between pieces of bins.

    Attributes:
        pieces: The pieces of each attribute.
        masks: The allowed combinations of pieces, by attributes i < j.
    """

    pieces: tuple[Pieces, ...]
    masks: PairMasks

    @classmethod
    def of(cls, masks: PairMasks, bins: Sequence[Indices], values: Sequence[Reals]) -> "BinMasks":
        """Divide the bins of all attributes; ``values`` are the distributions of their codes."""
        own: list[list[Mask]] = [[] for _ in bins]
        for (i, j), mask in masks.items():
            own[i].append(mask)
            own[j].append(mask.T)
        pieces = tuple(map(Pieces.of, bins, values, own))
        between = {
            (i, j): mask[np.ix_(pieces[i].first_code, pieces[j].first_code)]
            for (i, j), mask in masks.items()
        }
        return cls(pieces, between)

    def masked_with(self, child: int, earlier: Sequence[int]) -> list[int]:
        """List the ``earlier`` attributes that share a mask with ``child``, ascending."""
        return masked_with(child, sorted(earlier), self.masks)

    def independent(self, pair: tuple[int, int], rows: Reals, columns: Reals) -> Reals:
        """Compute the two-way table of two attributes that depend on each other by masks alone.

        Statisticians call it quasi-independence.

        Args:
            pair: Two attributes i < j.
            rows: The count of each bin of i.
            columns: The count of each bin of j.
        """
        table: Reals = np.outer(rows, columns) / rows.sum()
        if pair not in self.masks:
            return table
        one, other = (self.pieces[i] for i in pair)
        weights = np.outer(one.shares, other.shares) * self.masks[pair]
        return rake(table * sum_blocks(one.bins, other.bins, weights), rows, columns)

    def limit(self, pair: tuple[int, int], table: Reals) -> Reals:
        """Limit the counts of a two-way table to those that its masks leave; keep its margins.

        A bin of one attribute goes with some pieces of a bin of the other. These have about as many
        records as their share of their bin.
        """
        if pair not in self.masks:
            return table
        rows, columns = table.sum(axis=1), table.sum(axis=0)
        one, other = (self.pieces[i] for i in pair)
        mask = self.masks[pair]
        of_columns = _sum_bins(other.shares * _any_of_bins(mask, one.bins), other.bins) * columns
        of_rows = _sum_bins(one.shares * _any_of_bins(mask.T, other.bins), one.bins) * rows
        limits = np.minimum(of_columns, of_rows.T)
        for _ in range(_LIMITING_ROUNDS):
            table = rake(np.minimum(table, limits), rows, columns)
        return table

    def allowed(self, child: int, earlier: Sequence[int], pool: Indices) -> AllowedPieces:
        """Find the pieces of ``child`` that the ``earlier`` pieces of a pool's records allow.

        A record that allows none is given all: when records are released, it is drawn again.
        """
        pieces = self.pieces[child]
        classes = np.zeros(len(pool), dtype=np.intp)
        allowed = np.ones((1, len(pieces.bins)), dtype=bool)
        for j in self.masked_with(child, earlier):
            mask = self.masks[j, child] if j < child else self.masks[child, j].T
            rows, row_of_piece = np.unique(mask, axis=0, return_inverse=True)
            numbers = classes * len(rows) + row_of_piece.ravel()[pool[:, j]]
            distinct, classes = np.unique(numbers, return_inverse=True)
            before, row = np.divmod(distinct, len(rows))
            allowed = allowed[before] & rows[row]
        allowed[~(allowed @ (pieces.shares > 0))] = True
        allowed, merged = np.unique(allowed, axis=0, return_inverse=True)
        return AllowedPieces(pieces, allowed, merged.ravel()[classes])


def _sum_bins(by_piece: Reals, bins: Indices) -> Reals:
    """Sum the columns of a table by the bins of pieces, which ascend."""
    sums: Reals = np.add.reduceat(by_piece, np.flatnonzero(np.diff(bins, prepend=-1)), axis=1)
    return sums


def _any_of_bins(mask: Mask, bins: Indices) -> Mask:
    """Mark what some piece of each bin goes with: the rows of a mask, merged by bin."""
    found: Mask = np.logical_or.reduceat(mask, np.flatnonzero(np.diff(bins, prepend=-1)), axis=0)
    return found
