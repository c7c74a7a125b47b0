"""Membership of seeds at the threshold, for an attacker who knows all other seeds.

Modes ``tested`` and ``randomized`` release records of real seeds. The presence of a row shows where
about k seeds share its prefix: with the row, records of that prefix pass the test more often. With
a split, which rows are seeds is secret; this attacker knows them all but one, which is more than
(ε, δ) assumes. So the attack has no limit, and no verdict.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.arrays import Codes, Indices, Mask
from deniable.audit.attack_success import AttackTrials
from deniable.audit.holdout_rows import packed_rows
from deniable.audit.membership import KnownRows, prefix_visibility, released_prefix_ratios
from deniable.audit.retraining import AuditedTable, Retrained, pass_probability
from deniable.counting.local import LocalRows
from deniable.errors import InvariantError
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.seed_modes import builtin_source, release_candidates
from deniable.randomness import Keyed

# Seeds that are attacked, at most, and releases with each of them in or out by a coin.
_TARGETS, _RELEASES = 100, 40
# Seeds that are far less visible than the most visible one are left out.
_MIN_SHARE = 0.1


def attack_known_seeds(audited: AuditedTable, made: Retrained, number: int) -> dict[str, Any]:
    """Release again from the same model, the most visible seeds in or out by a coin each.

    Args:
        audited: The table and the options.
        made: A release of a mode with real seeds.
        number: Number of the first further run.

    Returns:
        For each release, the coins and the log likelihood ratio of each target, for a checkpoint.
    """
    model, seeds = made.model, made.seeds
    if model is None:
        raise InvariantError("the release was not made of seeds")
    passes = pass_probability(audited.run)
    targets = most_visible_seeds(seeds, model, passes, records=audited.records)
    found: dict[str, Any] = {"present": [], "ratios": []}
    for at in range(number, number + _RELEASES if len(targets) else number):
        run = audited.run_number(at)
        coins = Keyed(at).at("split").random(len(targets)) < 0.5
        rest = LocalRows(np.asfortranarray(np.delete(seeds, targets[~coins], axis=0)))
        source = builtin_source(model, rest, run, records=audited.records)
        released, _ = release_candidates(source, run, records=audited.records)
        records = np.concatenate(list(released.blocks()))
        ratios = released_prefix_ratios(records, model, _known(seeds, targets, coins), passes)
        found["present"].append(coins.tolist())
        found["ratios"].append(ratios.tolist())
    return found


def most_visible_seeds(
    seeds: Codes, model: NetworkModel, passes: Callable[[float], float], *, records: int
) -> Indices:
    """Choose seeds whose presence changes the released prefixes most; one of those with equal ones.

    A seed of a prefix that far fewer than k share is never released; one of many changes little.
    """
    everyone = np.arange(len(seeds))
    known = _known(seeds, everyone, np.ones(len(seeds), dtype=bool))
    visibility = prefix_visibility(model, known, passes, records=records)
    columns = list(model.network.order[: max(model.kept)])
    _, first = np.unique(packed_rows(seeds[:, columns]), return_index=True)
    order = np.argsort(-visibility[first], kind="stable")[:_TARGETS]
    chosen: Indices = first[order][visibility[first[order]] > _MIN_SHARE * visibility.max()]
    return chosen


def _known(seeds: Codes, targets: Indices, present: Mask) -> KnownRows:
    weights = np.ones(len(seeds))
    weights[targets] = present
    return KnownRows(codes=seeds, weights=weights, targets=targets, shares={"seeds": 1.0})


def seed_trials(saved: dict[str, Any]) -> AttackTrials | None:
    """Read the trials of a checkpoint; None if no seed was worth attacking."""
    if not saved["present"]:
        return None
    scores = np.array(saved["ratios"], dtype=np.float64)
    runs, targets = np.indices(scores.shape)
    return AttackTrials(
        scores=scores.ravel(),
        present=np.array(saved["present"], dtype=bool).ravel(),
        targets=targets.ravel(),
        runs=runs.ravel(),
    )
