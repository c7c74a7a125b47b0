"""The distinguishing game: can a learner tell released records from real ones? (Sec. 6.4, Table 5).

Half the answers are right by guessing, so 0.5 is best. Where reals play against other reals the
answer must be 0.5 too: that is the control.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Codes
from deniable.evaluation.baselines import Tables, shuffled
from deniable.evaluation.classifiers import fit_predict
from deniable.evaluation.confidence import Interval, wilson
from deniable.evaluation.effort import Effort
from deniable.randomness import Keyed

PLAYERS = ("forest", "tree")
OPPONENTS = ("released", "marginals", "reals")


@dataclass(frozen=True, kw_only=True)
class Round:
    """One player against one table: how often it was right, over records it had not seen."""

    accuracy: float
    interval: Interval
    trained_on: int
    tested_on: int


@dataclass(frozen=True, kw_only=True)
class Game:
    """The rounds, by player and opponent.

    Attributes:
        rounds: ``rounds["forest"]["released"]``.
        held_out: Whether the real side is made of rows the release was not learnt from.
    """

    rounds: Mapping[str, Mapping[str, Round]]
    held_out: bool

    def document(self) -> dict[str, object]:
        """Return it as metrics.json has it."""
        return {
            "against": "holdout" if self.held_out else "real",
            **{
                player: {
                    opponent: {
                        "accuracy": one.accuracy,
                        "interval": list(one.interval),
                        "trained_on": one.trained_on,
                        "tested_on": one.tested_on,
                    }
                    for opponent, one in rounds.items()
                }
                for player, rounds in self.rounds.items()
            },
        }


def play_game(
    tables: Tables, effort: Effort, *, watch: Callable[[int, int], None] = lambda _done, _of: None
) -> Game:
    """Play every opponent against real rows, with each player."""
    ceiling_first, ceiling_second = tables.ceiling
    opponents: dict[str, tuple[Codes, Codes]] = {
        "released": (tables.reference, tables.released),
        "marginals": (tables.reference, tables.marginals),
        "reals": (ceiling_second, ceiling_first),
    }
    rounds: dict[str, dict[str, Round]] = {player: {} for player in PLAYERS}
    of, done = len(PLAYERS) * len(opponents), 0
    for opponent, (real, other) in opponents.items():
        for player in PLAYERS:
            watch(done, of)
            rounds[player][opponent] = play(player, real, other, effort)
            done += 1
    watch(of, of)
    return Game(rounds=rounds, held_out=tables.held_out)


def play(player: str, real: Codes, other: Codes, effort: Effort) -> Round:
    """Train a player on as many records of each side, and ask it about as many others."""
    number = max(1, min(effort.game, len(real) // 2, len(other) // 2))
    sides = [
        codes[shuffled(len(codes), Keyed(effort.key).at("records", 4 + at))[: 2 * number]]
        for at, codes in enumerate((real, other))
    ]
    answers = [
        fit_predict(
            player,
            "classification",
            train=np.concatenate([side[:number] for side in sides]),
            labels=_labels(number, number),
            test=np.concatenate([side[number:] for side in sides]),
            trees=effort.trees,
            key=effort.key + run,
        )
        for run in range(effort.runs)
    ]
    truth = _labels(*(len(side) - number for side in sides))
    right = float(np.mean([np.mean(answer == truth) for answer in answers])) if len(truth) else 0.5
    return Round(
        accuracy=right,
        interval=wilson(right, len(truth)),
        trained_on=2 * number,
        tested_on=len(truth),
    )


def _labels(real: int, other: int) -> Codes:
    return np.repeat(np.array([0, 1], dtype=np.uint16), [real, other])
