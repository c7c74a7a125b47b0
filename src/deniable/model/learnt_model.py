"""A learnt model: the network, the noisy counts behind it, and the costs of learning it."""

from dataclasses import dataclass, field

from deniable.model.bayesian_network import Network
from deniable.model.pairwise.measure import PairwiseMeasurements
from deniable.model.paper.parameters import TableCounts
from deniable.privacy.ledger import Spend


@dataclass(frozen=True, kw_only=True)
class LearntModel:
    """A model learnt with noise. The seed histogram is learnt after it.

    Attributes:
        network: The distribution of a record.
        evidence: The noisy counts that the network was estimated from.
        seed_count: The noisy number of seeds.
        spends: The privacy costs of learning it.
    """

    network: Network
    evidence: TableCounts | PairwiseMeasurements = field(repr=False)
    seed_count: int
    spends: tuple[Spend, ...]
