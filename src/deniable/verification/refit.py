"""Fit an artefact's model again, and compare: exactly, or within a tolerance for another platform.

The last digits of a fit depend on libraries and processor, and decide when the optimiser stops. So
a model of another platform cannot be compared digit by digit. Its bins, groups, order, parents and
choice of pairs must be the same. Each distribution must have the form of the fitted model and be
near the one that is fitted here to the same noisy counts and earlier distributions.
"""

import re
from itertools import chain, combinations, starmap
from typing import Any

import numpy as np

from deniable.arrays import Codes, Indices, Reals
from deniable.model.bayesian_network import Conditional, ConditionalTable, Network, empty_codes
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.bin_masks import BinMasks, Pieces
from deniable.model.pairwise.fit import fit_network, refit_network
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.randomness import Keyed
from deniable.release.artefact_arrays import describe_computer
from deniable.schema.pair_masks import NO_MASKS, PairMasks
from deniable.verification.manifest_spend import require

# What `fitted_with` can be; nothing else depends on it if the tables are equal.
_PLATFORM = re.compile(
    r"numpy [\w.+]{1,24}, scipy [\w.+]{1,24}, \w{1,16}( \w{1,24}){0,40}(, BLAS \w{1,24}){0,4}"
)
# Largest difference of probabilities computed by a closed formula on two platforms.
_MAX_ROUNDING = 1e-9
# Largest distances (total variation) of a fitted table: in one configuration, and on average over
# configurations. Three to four times those between OpenBLAS's and NumPy's kernels for processors
# with and without AVX2, AVX-512 and FMA: 0.024 and 0.0064.
_MAX_DISTANCE, _MAX_MEAN_DISTANCE = 0.1, 0.02
# Largest deviation of a ratio of two fitted tables from the form of the model, as a logarithm.
_MAX_FORM_ERROR = 1e-6
# Where constraints divide a bin, the largest factor between the shares of a piece fitted on two
# platforms, and what rounding adds to it, in units of 2^-32.
_MAX_PIECE_FACTOR, _PIECE_ROUNDING = 1.5, 2.0**12
# Records on which log-linear distributions are compared.
_COMPARED_RECORDS, _COMPARED_KEY = 2**12, 3
_OTHER_TABLE = "a conditional table does not follow from its noisy counts"


def is_this_platform(fitted_with: str) -> bool:
    """Test whether a model was fitted on a platform like this one; refuse an invalid name."""
    require(_PLATFORM.fullmatch(fitted_with), "fitted_with does not name a platform")
    return fitted_with == describe_computer()


def compare_tables(again: Reals, table: Reals, *, exact: bool) -> bool:
    """Require equal tables, up to rounding if not ``exact``; return whether they are equal."""
    require(again.shape == table.shape, _OTHER_TABLE)
    difference = float(np.abs(again - table).max())
    require(difference == 0 or (difference <= _MAX_ROUNDING and not exact), _OTHER_TABLE)
    return difference == 0


def compare_fit(
    measured: PairwiseMeasurements,
    network: Network,
    *,
    max_cost: int,
    prefixes: Codes | None = None,
    pair_masks: PairMasks = NO_MASKS,
) -> bool:
    """Fit a pairwise model again, and require the same; return whether it is exactly the same.

    On another platform than that of the model, a tolerance is allowed.

    Args:
        measured: The noisy counts.
        network: The model.
        max_cost: The largest number of parent configurations of a conditional table.
        prefixes: Values of the first attributes that later ones were fitted to.
        pair_masks: The combinations of two values that records are drawn with.
    """
    here = is_this_platform(measured.fitted_with)
    again = fit_network(
        measured, network.attributes, max_cost=max_cost, prefixes=prefixes, pair_masks=pair_masks
    )
    difference = _find_difference(again, network)
    if difference is None:
        return True
    # Rounding does not change graph, order or groups, which are compared first.
    require(difference == _OTHER_TABLE and not here, difference)
    near = refit_network(
        measured, network, max_cost=max_cost, prefixes=prefixes, pair_masks=pair_masks
    )
    masks = BinMasks.of(pair_masks, measured.bins, [np.ones(len(bins)) for bins in measured.bins])
    for i, (bins, pieces) in enumerate(zip(measured.bins, masks.pieces, strict=True)):
        one, two = near.tables[i], network.tables[i]
        if isinstance(one, ConditionalTable) and isinstance(two, ConditionalTable):
            shape = [int(groups.max()) + 1 for groups in network.groups[i]]
            order = 1 if measured.three_way is None else 2
            tables = one.probabilities, two.probabilities
            require_near_table(*tables, shape=shape, bins=bins, pieces=pieces, order=order)
        else:
            require_near_distribution(near, network, i, pieces)
    return False


def require_near_distribution(again: Network, network: Network, i: int, pieces: Pieces) -> None:
    """Require a log-linear distribution near the one that was fitted here.

    Shares within pieces of bins follow from the noisy counts by a closed formula; those of pieces
    are fitted where the constraints divide a bin.

    Compared on records that the network draws with a public key, since the configurations of many
    parents are too many to compare all.
    """
    fitted, own = again.tables[i], network.tables[i]
    is_log_linear = isinstance(fitted, LogLinearConditional)
    require(is_log_linear and isinstance(own, LogLinearConditional), _OTHER_TABLE)
    weights = fitted.within, own.within  # type: ignore[union-attr]
    sums = [np.bincount(pieces.of_code, each) for each in weights]
    for less, more in (sums, sums[::-1]):
        near_pieces = more <= _MAX_PIECE_FACTOR * less + _PIECE_ROUNDING
        require(bool(near_pieces.all()), _OTHER_TABLE)
    factors = (sums[1] / np.maximum(sums[0], 1.0))[pieces.of_code]
    moved = np.abs(weights[0] * factors - weights[1]) / np.maximum(factors, 1.0)
    require(bool(moved.max() <= _MAX_ROUNDING * 2**32), _OTHER_TABLE)
    codes = empty_codes(_COMPARED_RECORDS, network.attributes)
    network.draw(codes, Keyed(_COMPARED_KEY).at("records"), kept=0, method="precise")
    _require_near(*(np.exp(each.log_distribution(codes, i)) for each in (again, network)))


def _require_near(one: Reals, two: Reals) -> None:
    """Require distributions, one in each row, that are near to each other in total variation."""
    distances = np.abs(one - two).sum(axis=1) / 2
    near = distances.max() <= _MAX_DISTANCE and distances.mean() <= _MAX_MEAN_DISTANCE
    require(bool(near), _OTHER_TABLE)


def _find_difference(again: Network, network: Network) -> str | None:
    """Describe the first difference of two networks; None if they are equal."""
    if (again.graph, again.order) != (network.graph, network.order):
        return "graph or order do not follow from the noisy counts"
    groups = zip(chain(*again.groups), chain(*network.groups), strict=True)
    if not all(starmap(np.array_equal, groups)):
        return "groups of parents' values do not follow from the noisy counts"
    if not all(map(_are_equal, again.tables, network.tables)):
        return _OTHER_TABLE
    return None


def _are_equal(one: Conditional, two: Conditional) -> bool:
    """Test whether two conditional distributions are the same, digit by digit."""
    if isinstance(one, ConditionalTable) and isinstance(two, ConditionalTable):
        return np.array_equal(one.probabilities, two.probabilities)
    if isinstance(one, LogLinearConditional) and isinstance(two, LogLinearConditional):
        parts = [_list_parts(each) for each in (one, two)]
        return len(parts[0]) == len(parts[1]) and all(map(np.array_equal, *parts))
    return False


def _list_parts(table: LogLinearConditional) -> list[Any]:
    """List all numbers of a log-linear distribution."""
    parts: list[Any] = [table.base, table.bins, table.within, *table.effects]
    for each in table.joint:
        parts += [(each.first, each.second), each.first_groups, each.second_groups, each.effects]
    return parts


def require_near_table(
    again: Reals,
    table: Reals,
    *,
    shape: list[int],
    bins: Indices,
    pieces: Pieces,
    order: int = 1,
) -> None:
    """Require a table of the fitted model's form, near the one that was fitted here.

    Both are log-linear: their logarithms are sums of effects of few parents, and values in one bin
    have the same shares of it for all configurations, which are fixed within a piece. So is their
    ratio. This leaves a forger the effects and, within a factor, shares of pieces; not every cell.

    Args:
        again: The table fitted here: configurations of the parents by values.
        table: The table of the artefact.
        shape: The number of groups of each parent.
        bins: The bin of each value.
        pieces: The pieces of the bins.
        order: The largest number of parents that an effect is of: 1, or 2 with three-way
            interactions.
    """
    require(again.shape == table.shape and (table > 0).all(), _OTHER_TABLE)
    _require_near(again, table)
    ratio = np.log(table) - np.log(again)
    ratio = ratio - ratio[:, :1]
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    shares = ratio - ratio[:, first[bins]]
    of_pieces = shares[0, pieces.first_code]
    # Of two pieces of a bin, one may have a larger share and the other a smaller one.
    near_pieces = np.abs(of_pieces).max() <= 2 * np.log(_MAX_PIECE_FACTOR)
    require(bool(near_pieces), _OTHER_TABLE)
    in_bins = np.abs(shares - of_pieces[pieces.of_code]).max()
    effects = ratio[:, first].reshape(*shape, len(first))
    form_error = _largest_interaction(effects, order)
    require(max(in_bins, form_error) <= _MAX_FORM_ERROR, _OTHER_TABLE)


def _largest_interaction(table: Reals, order: int) -> float:
    """Find the largest interaction of more than ``order`` parents; the last axis is the values.

    A table is a sum of effects of up to ``order`` parents each if, and only if, every mixed
    difference over more of them is 0, from their first groups to any others.
    """
    largest = 0.0
    for axes in combinations(range(table.ndim - 1), order + 1):
        mixed = table
        for axis in axes:
            mixed = mixed - mixed.take([0], axis=axis)
        largest = max(largest, float(np.abs(mixed).max()))
    return largest
