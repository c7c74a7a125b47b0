"""How often the model's best guess of an attribute is right (Sec. 6.2, Figures 1 and 2)."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deniable.arrays import Codes
from deniable.data.attributes import Attribute
from deniable.evaluation.classifiers import fit_predict
from deniable.evaluation.confidence import Interval, spread
from deniable.evaluation.effort import Effort
from deniable.model.network import Network

# What a forest may take of memory: a leaf holds the share of every class.
_MOST_BYTES = 2**30


@dataclass(frozen=True, kw_only=True)
class Guess:
    """How often one attribute is told rightly from all others.

    Attributes:
        attribute: Its name.
        guessing: By chance alone: one in the number of values.
        marginals: By always saying the commonest value.
        forest: By a random forest.
    """

    attribute: str
    guessing: float
    marginals: float
    forest: float

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ModelGuess:
    """How often models learnt alike tell each attribute: the mean over them, and their spread."""

    mean: tuple[float, ...]
    spread: tuple[Interval, ...]
    models: int

    def improvement(self, guesses: Sequence[Guess]) -> tuple[float, ...]:
        """Return the share of the marginals' errors that the model does not make (Figure 1)."""
        return tuple(
            (found - guess.marginals) / max(1 - guess.marginals, 1e-12)
            for found, guess in zip(self.mean, guesses, strict=True)
        )


def model_accuracy(network: Network, records: Codes) -> tuple[float, ...]:
    """Return, by attribute, how often its most likely value given all others is the right one."""
    return tuple(
        float(np.mean(network.most_likely(records, i) == records[:, i]))
        for i in range(records.shape[1])
    )


def measure_models(learn: Callable[[int], Network], records: Codes, *, models: int) -> ModelGuess:
    """Learn so many models, each with noise of its own, and return how well they guess."""
    found = [model_accuracy(learn(at), records) for at in range(models)]
    by_attribute = list(zip(*found, strict=True))
    return ModelGuess(
        mean=tuple(float(np.mean(of)) for of in by_attribute),
        spread=tuple(spread(of) for of in by_attribute),
        models=models,
    )


def measure_guesses(
    attributes: Sequence[Attribute], train: Codes, test: Codes, effort: Effort
) -> tuple[Guess, ...]:
    """Return what a model is compared with: chance, the commonest value, a forest."""
    guesses = []
    for i, attribute in enumerate(attributes):
        commonest = np.bincount(train[:, i], minlength=attribute.size).argmax()
        answer = fit_predict(
            "forest",
            "classification",
            train=np.delete(train, i, axis=1),
            labels=train[:, i],
            test=np.delete(test, i, axis=1),
            trees=_trees(len(train), attribute.size, effort.trees),
            key=effort.key,
        )
        guesses.append(
            Guess(
                attribute=attribute.name,
                guessing=1 / attribute.size,
                marginals=float(np.mean(test[:, i] == commonest)),
                forest=float(np.mean(answer == test[:, i])),
            )
        )
    return tuple(guesses)


def _trees(rows: int, classes: int, wanted: int) -> int:
    return max(5, min(wanted, _MOST_BYTES // (16 * max(1, rows) * classes)))
