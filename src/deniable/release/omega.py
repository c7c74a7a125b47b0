"""--omega auto: how many attributes to keep, from public facts and the noisy model alone."""

import numpy as np

from deniable.model.network import Network, empty_codes
from deniable.randomness import Keyed
from deniable.release.counts import PrefixCounts

# Records drawn from the model to see how its prefixes spread, under a key that is public: the
# answer is a function of the artefact.
_RECORDS = 2**15
_KEY = 1
# The share of seeds that should have enough others beside them.
_ENOUGH = 0.9


def choose_omega(network: Network, *, records: int, threshold: int) -> int:
    """Return ω that keeps as many attributes as most seeds can share with enough others.

    Records are drawn from the model; of each prefix length, those count whose prefix would have
    twice ``threshold`` records in a table of ``records`` rows. The longest length at which 9 in 10
    do is kept; at least one attribute is.

    Privacy:
        Covers: reads the noisy model and noisy totals only, so it costs nothing.
    """
    m = len(network.order)
    if m == 1:
        return 1
    drawn = empty_codes(_RECORDS, network.attributes)
    network.draw(drawn, Keyed(_KEY).at("candidates"), kept=0)
    lengths = range(1, m)
    sizes = [attribute.size for attribute in network.attributes]
    shared = PrefixCounts.of(drawn, network.order, lengths, sizes)
    expected = [of_seeds * (max(records, 1) / _RECORDS) for of_seeds in shared.of_seeds]
    enough = [float(np.mean(rows >= 2 * threshold)) >= _ENOUGH for rows in expected]
    longest = max((length for length, good in zip(lengths, enough, strict=True) if good), default=1)
    return m - longest
