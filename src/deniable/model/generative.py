"""What any generative model must offer, to be released from with plausible deniability."""

from typing import Protocol

from deniable.arrays import Codes, Reals
from deniable.randomness import Rng


class GenerativeModel(Protocol):
    """M: turns a seed into a candidate (Sec. 2). Anything that has these two methods is one.

    The deniability test calls ``log_probability`` and knows nothing else of the model, so
    the guarantee holds for any M, learnt or written by hand. What M itself reveals of the
    data it was learnt from is another matter, and not covered.
    """

    def propose(self, seeds: Codes, rng: Rng) -> Codes:
        """Return one candidate for each seed, with no randomness but ``rng``'s."""

    def log_probability(self, candidates: Codes, seeds: Codes) -> Reals:
        """Return ln Pr{y = M(d)}: one row a candidate y, one column a seed d.

        Minus infinity where d cannot produce y. It must be the law that ``propose`` draws from,
        and depend on y and d alone. For densities it may be positive.
        """
