"""Mode ``tested``: what plausible deniability promises of a seed, and what it does not.

It promises that at least k rows could have been the seed of a record, and that none of them is more
likely than the others. It does not promise that the presence of a row stays hidden: an attacker who
knows k - 1 of the k rows that share a prefix sees from one released record that the k-th is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Codes, Counts, Indices, Reals
from deniable.audit.holdout_rows import packed_rows
from deniable.audit.retraining import AuditedTable, Retrained
from deniable.counting.local import LocalRows
from deniable.counting.prefix_counts import PrefixCounts
from deniable.errors import InvariantError
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.run_plan import Run
from deniable.pipeline.seed_modes import builtin_source, release_candidates
from deniable.release.deniability_test import range_index

# Released records whose posterior is computed.
_POSTERIOR_RECORDS = 5_000
# Releases with and without the last of k rows, and prefixes of which one is left out. Even: each of
# these rows is in half of the releases.
_CONFIRMATIONS, _CONFIRMED_PREFIXES = 6, 200


@dataclass(frozen=True, kw_only=True)
class SeedPosterior:
    """The posterior of the seeds of released records, and the attacker who knows k - 1 of them.

    Confidential.

    Attributes:
        k: The least number of plausible seeds.
        largest: Quantiles (median, 95 %, maximum) of the largest posterior of any seed.
        sharing: The least number of seeds that share the largest posterior of a record.
        at_limit: Share of the seeds whose prefix exactly k of them share.
        proven: Share of the seeds whose presence this release proves to someone who knows the
            k - 1 others; None with several ω, where a prefix may also come about by chance.
        with_row: Times that a k-th row was there and its prefix was seen, and times it was there.
        without_row: The same where it was not there; None if no prefix is shared by exactly k.
    """

    k: int
    largest: tuple[float, float, float]
    sharing: int
    at_limit: float
    proven: float | None
    with_row: tuple[int, int] | None
    without_row: tuple[int, int] | None

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "k": self.k,
            "largest_posterior": list(self.largest),
            "seeds_sharing_largest": self.sharing,
            "seeds_at_limit": self.at_limit,
            "seeds_proven": self.proven,
            "seen_with_row": None if self.with_row is None else list(self.with_row),
            "seen_without_row": None if self.without_row is None else list(self.without_row),
        }

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "SeedPosterior":
        """Read the JSON form."""
        seen = [saved[name] for name in ("seen_with_row", "seen_without_row")]
        with_row, without_row = (None if each is None else (each[0], each[1]) for each in seen)
        low, middle, high = saved["largest_posterior"]
        return cls(
            k=saved["k"],
            largest=(low, middle, high),
            sharing=saved["seeds_sharing_largest"],
            at_limit=saved["seeds_at_limit"],
            proven=saved["seeds_proven"],
            with_row=with_row,
            without_row=without_row,
        )


def measure_seed_posterior(audited: AuditedTable, made: Retrained, number: int) -> SeedPosterior:
    """Compute the posterior of seeds in one release, and repeat it without one of k rows.

    Args:
        audited: The table and the options.
        made: A release of the table in mode ``tested``.
        number: Number of the first further run.
    """
    model, run = made.model, audited.run
    if model is None:
        raise InvariantError("the release was not made of seeds")
    sizes = [attribute.size for attribute in model.network.attributes]
    counts = PrefixCounts.of(made.seeds, model.network.order, model.kept, sizes)
    records = made.records[:_POSTERIOR_RECORDS]
    posterior, sharing = largest_posteriors(model, counts, records, run)
    longest = len(counts.levels) - 1
    shared = counts.of_seeds[longest]
    seen = np.isin(counts.groups[longest], _groups_of(counts, made.records, made.seeds))
    limit = shared == run.config.k
    with_row, without_row = _confirm(audited, made, np.flatnonzero(limit), number)
    quantiles = np.quantile(posterior, (0.5, 0.95, 1.0))
    return SeedPosterior(
        k=run.config.k,
        largest=(float(quantiles[0]), float(quantiles[1]), float(quantiles[2])),
        sharing=int(sharing.min()),
        at_limit=float(limit.mean()),
        proven=float((limit & seen).mean()) if len(model.omegas) == 1 else None,
        with_row=with_row,
        without_row=without_row,
    )


def largest_posteriors(
    model: NetworkModel, counts: PrefixCounts, records: Codes, run: Run
) -> tuple[Reals, Counts]:
    """Largest posterior of any seed of each record, and the number of seeds that have it.

    A seed that shares ℓ attributes with the record made it with probability P_ℓ, if the record
    then passes the test. Under its own ω, a record passes at the lengths that k seeds share.
    """
    log_levels = model.log_levels(records)
    reach = counts.look_up(records)
    of_level = reach - np.hstack([reach[:, 1:], np.zeros((len(reach), 1), dtype=np.int64)])
    weights = np.exp(log_levels - log_levels.max(axis=1, keepdims=True))
    passing = reach >= run.config.k
    if run.config.omega_known or len(model.omegas) == 1:
        # Lengths that too few seeds share add nothing, so seeds beyond the last one are alike.
        last = np.maximum(passing.sum(axis=1) - 1, 0)
        capped = np.minimum(np.arange(reach.shape[1])[None, :], last[:, None])
        weights = np.take_along_axis(weights, capped, axis=1)
    else:
        indices = range_index(log_levels, gamma=run.config.gamma)
        same = indices[:, :, None] == indices[:, None, :]
        weights = weights * ((same * of_level[:, None, :]).sum(axis=2) >= run.config.k)
    possible = weights * (of_level > 0)
    largest = possible.max(axis=1)
    posterior: Reals = largest / (of_level * weights).sum(axis=1)
    sharing = (of_level * (weights >= largest[:, None] * (1 - 1e-12))).sum(axis=1)
    return posterior, sharing


def _groups_of(counts: PrefixCounts, records: Codes, seeds: Codes) -> Indices:
    """Groups of seeds, at the longest length, whose prefix a record has."""
    columns = list(counts.order)
    seen = np.isin(packed_rows(seeds[:, columns]), packed_rows(records[:, columns]))
    return np.unique(counts.groups[len(counts.levels) - 1][seen])


def _confirm(
    audited: AuditedTable, made: Retrained, at_limit: Indices, number: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Release again, from the same model, with and without one row of each prefix of exactly k.

    Returns:
        How often the row's prefix was seen, and of how many times: with the row, and without it.
    """
    model = made.model
    if model is None or not len(at_limit) or len(model.omegas) > 1:
        # With several ω another length may make the same prefix by chance.
        return None, None
    columns = list(model.network.order[: model.kept[0]])
    prefixes, first = np.unique(packed_rows(made.seeds[at_limit][:, columns]), return_index=True)
    prefixes, rows = prefixes[:_CONFIRMED_PREFIXES], at_limit[first[:_CONFIRMED_PREFIXES]]
    seen = {True: [0, 0], False: [0, 0]}
    for repetition in range(_CONFIRMATIONS):
        run = audited.run_number(number + repetition)
        present = (np.arange(len(rows)) + repetition) % 2 == 0
        seeds = np.asfortranarray(np.delete(made.seeds, rows[~present], axis=0))
        source = builtin_source(model, LocalRows(seeds), run, records=audited.records)
        released, _ = release_candidates(source, run, records=audited.records)
        records = np.concatenate(list(released.blocks()))[:, columns]
        found = np.isin(prefixes, packed_rows(records))
        for side, counted in seen.items():
            counted[0] += int(found[present == side].sum())
            counted[1] += int((present == side).sum())
    with_row, without_row = seen[True], seen[False]
    return (with_row[0], with_row[1]), (without_row[0], without_row[1])
