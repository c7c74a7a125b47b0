"""The tolerance for a model of another platform: its form, its distance, and what it permits."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import VerificationError
from deniable.model.bayesian_network import ConditionalTable, Network
from deniable.model.graph import Graph
from deniable.model.loglinear_conditional import LogLinearConditional
from deniable.model.pairwise.bin_masks import Pieces
from deniable.model.pairwise.fit import refit_network
from deniable.pipeline.api import learn
from deniable.randomness import Keyed
from deniable.release.artefact_arrays import describe_computer
from deniable.verification.refit import (
    compare_fit,
    compare_tables,
    is_this_platform,
    require_near_distribution,
    require_near_table,
)
from worlds import plain_attribute

SHAPE = [2, 3]
BINS = np.array([0, 0, 1, 2])
WITHIN = np.array([0.25, 0.75, 1.0, 1.0])
# No mask divides a bin; one that distinguishes the two codes of the first bin.
PIECES = Pieces.of(BINS, np.ones(4), [])
DIVIDED = Pieces.of(BINS, np.ones(4), [np.array([[True], [False], [True], [True]])])


def refused(passes: object = None) -> AbstractContextManager:
    """Expect that what is inside passes, or that it is refused."""
    if passes:
        return nullcontext()
    return pytest.raises(VerificationError, match="noisy counts")


def fitted(key: int, size: float = 1.0) -> np.ndarray:
    """A table of two parents' effects, with values in bins; equal keys give equal effects."""
    rng = np.random.default_rng(key)
    one, two = rng.normal(size=(2, 1, 3)), rng.normal(size=(1, 3, 3))
    logits = (size * (one + two)).reshape(6, 3)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return shares[:, BINS] * WITHIN


def test_this_platform_has_a_valid_name():
    assert is_this_platform(describe_computer())
    assert not is_this_platform("numpy 2.0.1, scipy 1.14.0, aarch64 NEON ASIMD, BLAS neoversen1")
    for text in ("an abacus", "numpy 2, scipy 1, x\n", "numpy 2, scipy 1, a;b"):
        with pytest.raises(VerificationError, match="platform"):
            is_this_platform(text)


@pytest.mark.parametrize(("far", "exact", "passes"), [(0, True, True), (1e-15, True, False)])
def test_tables_of_this_platform_are_compared_exactly(far, exact, passes):
    table = fitted(1)
    if passes:
        assert compare_tables(table, table + far, exact=exact)
        return
    with refused():
        compare_tables(table, table + far, exact=exact)
    assert not compare_tables(table, table + far, exact=False)


def test_a_table_with_slightly_other_effects_passes():
    require_near_table(fitted(1), fitted(1, 1.001), shape=SHAPE, bins=BINS, pieces=PIECES)


@pytest.mark.parametrize(
    "other",
    [
        fitted(2),
        fitted(1, 1.5),
        fitted(1)[:, :3],
        np.where(np.arange(4) == 0, 0.0, fitted(1)),
        np.where(np.arange(6)[:, None] == 3, fitted(2), fitted(1)),
        np.full((6, 4), np.nan),
    ],
)
def test_a_table_with_other_effects_is_refused(other):
    with refused():
        require_near_table(fitted(1), other, shape=SHAPE, bins=BINS, pieces=PIECES)


@pytest.mark.parametrize("cells", [(0, 1), (2, 3), (0, 2)])
@pytest.mark.parametrize("row", [0, 5])
def test_a_single_moved_cell_is_refused(row, cells):
    """Between values of a bin, and between bins: the table loses the form of the model."""
    moved = fitted(1)
    moved[row, cells[0]] += 1e-4
    moved[row, cells[1]] -= 1e-4
    with refused():
        require_near_table(fitted(1), moved, shape=SHAPE, bins=BINS, pieces=PIECES)


def test_where_constraints_divide_a_bin_its_pieces_may_have_other_shares():
    """The same for all configurations: anything else is not the form of the model."""
    moved = fitted(1) * np.array([1.03, 0.99, 1.0, 1.0])
    require_near_table(fitted(1), moved, shape=SHAPE, bins=BINS, pieces=DIVIDED)
    with refused():
        require_near_table(fitted(1), moved, shape=SHAPE, bins=BINS, pieces=PIECES)
    moved[2] = fitted(1)[2]
    with refused():
        require_near_table(fitted(1), moved, shape=SHAPE, bins=BINS, pieces=DIVIDED)


@pytest.mark.parametrize(("factor", "passes"), [(2.0, True), (2.5, False), (1e-6, False)])
def test_a_piece_that_almost_vanishes_or_multiplies_is_refused(factor, passes):
    """A rare value: distances hardly show it, so its share is bounded by itself."""
    own = fitted(1) * np.array([0.01, 1.0, 1.0, 1.0])
    own /= own.sum(axis=1, keepdims=True)
    moved = own.copy()
    moved[:, 0] *= factor
    moved[:, 1] += own[:, 0] - moved[:, 0]
    with refused(passes):
        require_near_table(own, moved, shape=SHAPE, bins=BINS, pieces=DIVIDED)


def test_an_attribute_without_parents_has_a_form_too():
    table = fitted(1)[:1]
    require_near_table(table, table, shape=[], bins=BINS, pieces=PIECES)
    moved = table.copy()
    moved[0, :2] += [1e-4, -1e-4]
    with refused():
        require_near_table(table, moved, shape=[], bins=BINS, pieces=PIECES)


def three_parents(*, pairs: float, all_three: float = 0.0) -> np.ndarray:
    """A table of three parents, with effects of pairs of them and of all three."""
    rng = np.random.default_rng(4)
    logits = sum(rng.normal(size=(*shape, 3)) for shape in ((2, 1, 1), (1, 3, 1), (1, 1, 2)))
    of_pairs = [rng.normal(size=(*shape, 3)) for shape in ((2, 3, 1), (1, 3, 2), (2, 1, 2))]
    logits = logits + pairs * sum(of_pairs) + all_three * rng.normal(size=(2, 3, 2, 3))
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return shares.reshape(12, 3)[:, BINS] * WITHIN


@pytest.mark.parametrize(
    ("pairs", "all_three", "order", "passes"),
    [
        (0.501, 0.0, 2, True),
        (0.501, 0.0, 1, False),
        (0.5, 1e-4, 2, False),
        (0.7, 0.0, 2, False),
    ],
)
def test_effects_of_two_parents_are_allowed_where_three_way_interactions_are(
    pairs, all_three, order, passes
):
    own = three_parents(pairs=0.5)
    other = three_parents(pairs=pairs, all_three=all_three)
    with refused(passes):
        require_near_table(own, other, shape=[2, 3, 2], bins=BINS, pieces=PIECES, order=order)


# Log-linear distributions


def network_of(own: ConditionalTable | LogLinearConditional) -> Network:
    """Two parents, uniform in three values each, and a child of four values."""
    attributes = tuple(plain_attribute(f"x{i}", size) for i, size in enumerate((3, 3, 4)))
    uniform = ConditionalTable(np.full((1, 3), 1 / 3))
    groups = ((), (), (np.array([0, 1, 1]), np.arange(3)))
    return Network(attributes, Graph(((), (), (0, 1))), (0, 1, 2), (uniform, uniform, own), groups)


def log_linear(key: int = 1, size: float = 1.0) -> LogLinearConditional:
    rng = np.random.default_rng(key)
    effects = [size * rng.normal(size=(2, 3)), size * rng.normal(size=(3, 3))]
    return LogLinearConditional.of(np.zeros(3), effects, BINS, WITHIN)


@pytest.mark.parametrize("size", [1.0, 0.999, 1.001])
def test_a_log_linear_distribution_with_slightly_other_effects_passes(size):
    require_near_distribution(
        network_of(log_linear()), network_of(log_linear(size=size)), 2, PIECES
    )


@pytest.mark.parametrize(("key", "size"), [(2, 1.0), (1, 1.5), (1, 0.0)])
def test_a_log_linear_distribution_with_other_effects_is_refused(key, size):
    with refused():
        require_near_distribution(
            network_of(log_linear()), network_of(log_linear(key, size)), 2, PIECES
        )


def test_one_group_with_other_effects_is_refused():
    """A third of the records have it: far in one configuration, near on average elsewhere."""
    own = log_linear()
    moved = own.effects[1].copy()
    moved[2, 0] += 2**12
    other = replace(own, effects=(own.effects[0], moved))
    with refused():
        require_near_distribution(network_of(own), network_of(other), 2, PIECES)


@pytest.mark.parametrize(("step", "passes"), [(4, True), (8, False), (2**20, False)])
def test_other_shares_within_a_bin_are_refused(step, passes):
    """Far less than a distance between distributions would show."""
    own = log_linear()
    other = replace(own, within=own.within + np.array([step, -step, 0, 0]))
    with refused(passes):
        require_near_distribution(network_of(own), network_of(other), 2, PIECES)


def test_where_constraints_divide_a_bin_shares_within_it_may_differ_a_little():
    own = log_linear()
    for step, passes in ((2**26, True), (2**30, False)):
        other = replace(own, within=own.within + np.array([step, -step, 0, 0]))
        with refused(passes):
            require_near_distribution(network_of(own), network_of(other), 2, DIVIDED)


@pytest.mark.parametrize(("factor", "passes"), [(1.4, True), (1.6, False), (0.0, False)])
def test_a_rare_piece_keeps_about_its_share(factor, passes):
    """Far too rare for a distance between distributions."""
    share = 2**22  # a thousandth of the bin
    own = replace(log_linear(), within=np.array([share, 2**32 - share, 2**32, 2**32]))
    step = int(factor * share) - share
    other = replace(own, within=own.within + np.array([step, -step, 0, 0]))
    with refused(passes):
        require_near_distribution(network_of(own), network_of(other), 2, DIVIDED)


def test_a_table_is_not_near_a_log_linear_distribution():
    table = network_of(ConditionalTable(fitted(1)))
    own = network_of(log_linear())
    for one, two in ((table, own), (own, table)):
        with refused():
            require_near_distribution(one, two, 2, PIECES)


# A whole network


def bins_of(measured, i):
    """The bins of an attribute that no constraint divides."""
    return Pieces.of(measured.bins[i], np.ones(len(measured.bins[i])), [])


@pytest.fixture(scope="module")
def learnt(small_table, small_schema):
    """A network with tables and log-linear distributions, and its noisy counts."""
    artefact = learn(small_table, small_schema, mode="seedless", max_cost=5, noise=Keyed(3))
    kinds = {type(table) for table in artefact.network.tables}
    assert kinds == {ConditionalTable, LogLinearConditional}
    return replace(artefact.evidence, fitted_with="numpy 1.0, scipy 1.0, abacus"), artefact.network


def test_a_network_is_near_itself_when_it_is_fitted_again(learnt):
    """Given its own distributions, each is fitted to the records that it was fitted to."""
    measured, network = learnt
    near = refit_network(measured, network, max_cost=5)
    for i, table in enumerate(network.tables):
        again = near.tables[i]
        if isinstance(table, LogLinearConditional):
            require_near_distribution(near, network, i, bins_of(measured, i))
        else:
            assert isinstance(again, ConditionalTable)
            assert np.abs(again.probabilities - table.probabilities).max() < 1e-3
    assert compare_fit(measured, network, max_cost=5)


def test_groups_of_another_computer_are_the_same(learnt):
    """A value moved to the group of its neighbour: the shapes still fit."""
    measured, network = learnt
    i, place, groups = next(
        (i, place, groups)
        for i, chosen in enumerate(network.groups)
        for place, groups in enumerate(chosen)
        if (np.bincount(groups) > 1).any()
    )
    moved = groups.copy()
    shared = np.flatnonzero(np.bincount(groups) > 1)[0]
    moved[np.flatnonzero(groups == shared)[0]] = (shared + 1) % (groups.max() + 1)
    chosen = (*network.groups[i][:place], moved, *network.groups[i][place + 1 :])
    other = replace(network, groups=(*network.groups[:i], chosen, *network.groups[i + 1 :]))
    with pytest.raises(VerificationError, match="groups of parents' values"):
        compare_fit(measured, other, max_cost=5)


def test_another_order_of_another_computer_is_refused(learnt):
    measured, network = learnt
    bare = replace(network, graph=Graph(((),) * 5), groups=(), tables=tuple(
        ConditionalTable(np.full((1, attribute.size), 1 / attribute.size))
        for attribute in network.attributes
    ))  # fmt: skip
    with pytest.raises(VerificationError, match="graph or order"):
        compare_fit(measured, bare, max_cost=5)
