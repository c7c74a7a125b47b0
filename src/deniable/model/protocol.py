"""Protocol of seed-based generative models that the deniability tests accept."""

from typing import Protocol

from deniable.arrays import Codes, Reals
from deniable.randomness import Rng


class GenerativeModel(Protocol):
    """M: a generative model that turns a seed into a candidate (Sec. 2).

    Any class with these two methods qualifies. The deniability test uses ``log_probability`` and
    nothing else of the model, so the guarantee holds for any M, learnt or written by hand. It does
    not cover what M itself reveals about the data it was learnt from.
    """

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Draw one candidate for each seed, using no randomness other than ``rng``."""

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Compute ln Pr{y = M(d)}: one row per candidate y, one column per seed d.

        Minus infinity if d cannot produce y. It must be the law that ``propose`` draws from, and
        depend on y and d alone. Log densities may be positive.
        """
