"""Generate records from an artefact: kept prefixes in place of seeds, no deniability test.

Records are drawn in numbered blocks. A block depends on nothing but its number and the key, so any
number of workers draws the same records. They are decoded block by block too.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import polars as pl

from deniable.arrays import Codes, Indices, Mask
from deniable.data.codec import Codec
from deniable.data.complete_records import decode_records, record_bytes
from deniable.data.dataframes import Foreign, FrameKind, PolarsKind
from deniable.data.spooled_codes import CodeSpool, row_batches
from deniable.errors import InvariantError, OutputError, SchemaError
from deniable.model.bayesian_network import DrawMethod, Network, empty_codes
from deniable.privacy.plan import require_record_count
from deniable.randomness import Randomness, Rng
from deniable.release.prefix_distribution import PrefixDistribution
from deniable.schema.pair_masks import PairMasks, allowed_codes, contradictions
from deniable.schema.schema import Schema
from deniable.workers import (
    Progress,
    count_cores,
    free_memory,
    keep_freed_memory,
    map_in_order,
    no_progress,
)

# The kernel of a block: from its number to the records it releases.
Kernel = Callable[[int], Codes]

# Marks the records that satisfy the schema's constraints. It reads the records, never the table.
Feasible = Callable[[Codes], Mask]

# Records per block: large enough to make contention for the interpreter lock negligible.
BLOCK = 2**18
# Redraws of one value that contradicts an earlier value of its record. A value that is allowed with
# probability 0.1 is found with probability 0.995; then the allowed values' probabilities are
# computed, for this many records at once.
_MAX_VALUE_REDRAWS = 50
_RECORDS_PER_BATCH = 4096
# Generation fails if fewer than one draw in _MAX_DRAWS_PER_RECORD is feasible. This is tested after
# enough draws that _MIN_EXPECTED_RECORDS feasible records would be expected.
_MAX_DRAWS_PER_RECORD = 1_000
_MIN_EXPECTED_RECORDS = 25


def always_feasible(records: Codes) -> Mask:
    """Accept every record: there are no constraints."""
    return np.ones(len(records), dtype=bool)


class Records(Protocol):
    """Encoded records of a release. Every reading yields the same records."""

    @property
    def number(self) -> int:
        """The number of records."""

    def blocks(self) -> Iterator[Codes]:
        """Yield all records, block by block."""


class BlockRecords(Records, Protocol):
    """Records of which any block can be drawn alone."""

    def draw_block(self, block: int) -> Codes:
        """Draw one block of ``BLOCK`` records; the last may have more than are needed."""


@dataclass(frozen=True)
class KeptRecords:
    """Records that cannot be drawn again, and are kept: in memory, or in a file if many."""

    codes: Codes = field(repr=False)

    @classmethod
    def collect(cls, blocks: Iterable[Codes], *, columns: int) -> "KeptRecords":
        """Keep the records of all blocks."""
        spool = CodeSpool(columns)
        for block in blocks:
            spool.add(block)
        return cls(spool.codes())

    @property
    def number(self) -> int:
        """The number of records."""
        return len(self.codes)

    def blocks(self) -> Iterator[Codes]:
        """Yield the records in blocks of equal size, unrelated to those they were drawn in."""
        return row_batches(self.codes, BLOCK)

    def draw_block(self, block: int) -> Codes:
        """Return the records of one block."""
        codes: Codes = self.codes[block * BLOCK : (block + 1) * BLOCK]
        return codes


@dataclass(frozen=True, kw_only=True)
class GeneratedRecords:
    """Records of an artefact and a key, drawn again at every reading.

    Where prefixes were kept, a record's prefix is drawn from the combined distribution of kept
    prefixes and model; then the model draws the other attributes.

    Records that fit one block are drawn by systematic sampling, so their frequencies match the
    model more closely than those of independent draws. With more, beyond a quarter of a million,
    sampling error is far below all other noise.

    Attributes:
        network: The distribution of the drawn attributes.
        randomness: Addressed by a key.
        number: The number of records.
        feasible: The constraints of the schema.
        pair_masks: The constraints on two attributes, as allowed combinations of codes.
        prefixes: The combined distribution of kept prefixes and model, if there is one.
        workers: Threads; None: one for each core.
    """

    network: Network
    randomness: Randomness = field(repr=False)
    number: int
    feasible: Feasible = field(default=always_feasible, repr=False)
    pair_masks: PairMasks = field(default_factory=dict, repr=False)
    prefixes: PrefixDistribution | None = field(default=None, repr=False)
    workers: int | None = None

    def __post_init__(self) -> None:
        require_record_count(self.number)

    def blocks(self) -> Iterator[Codes]:
        """Yield all records, block by block."""
        workers, left = self.workers or count_cores(), self.number
        self.network.prepare(workers)
        keep_freed_memory()
        for block in map_in_order(
            self.draw_block, range(-(-self.number // BLOCK)), workers=workers
        ):
            yield block[:left]
            left -= len(block)

    def draw_block(self, block: int) -> Codes:
        """Draw the records of one block."""
        rng = self.randomness.at("records", block)
        is_single = self.number <= BLOCK
        method: DrawMethod = "systematic" if is_single else "independent"
        number = self.number if is_single else BLOCK
        return draw_feasible(partial(self._draw, method=method), number, rng, self.feasible)

    def _draw(self, number: int, rng: Rng, *, method: DrawMethod) -> Codes:
        """Draw records: their prefix, if prefixes were kept, then the rest from the network."""
        records, length = empty_codes(number, self.network.attributes), 0
        if self.prefixes is not None:
            length = self.prefixes.length
            columns = list(self.network.order[:length])
            stratified = method == "systematic"
            records[:, columns] = self.prefixes.draw(number, rng, stratified=stratified)
        self.draw_rest(records, rng, length, method)
        return records

    def draw_rest(self, records: Codes, rng: Rng, kept: int, method: DrawMethod) -> None:
        """Draw, in place, the attributes from ``kept`` on of σ, subject to pair masks.

        A value that contradicts an earlier one is redrawn given the same earlier values, so their
        distribution stays as learnt. Redrawing whole records would make the earlier values rarer
        where the model has not learnt the constraint well.
        """
        end, drawn = len(self.network.order), kept
        for position in range(kept, end):
            among = self.masked_with(position)
            if not among:
                continue
            if drawn < position:
                self.network.draw(records, rng, kept=drawn, until=position, method=method)
            self.network.draw(records, rng, kept=position, until=position + 1, method=method)
            drawn = position + 1
            self._redraw_value(records, rng, position, among)
        if drawn < end:
            self.network.draw(records, rng, kept=drawn, method=method)

    def masked_with(self, position: int) -> list[int]:
        """List the earlier attributes that share a pair mask with the one at ``position``."""
        return self._masked_with.get(position, [])

    @cached_property
    def _masked_with(self) -> dict[int, list[int]]:
        """For each position of σ with any, the earlier attributes that share a pair mask."""
        order = self.network.order
        place = {attribute: position for position, attribute in enumerate(order)}
        found: dict[int, list[int]] = {}
        for pair in self.pair_masks:
            earlier, later = sorted(place[attribute] for attribute in pair)
            found.setdefault(later, []).append(earlier)
        return {later: [order[e] for e in sorted(earlier)] for later, earlier in found.items()}

    def _redraw_value(self, records: Codes, rng: Rng, position: int, among: list[int]) -> None:
        """Redraw the values at ``position`` that contradict earlier ones.

        After some rounds, values are drawn from those that are allowed, in proportion to their
        probabilities: the same law. A record in which none is allowed is left to ``draw_feasible``.
        """
        new = self.network.order[position]
        wrong = np.flatnonzero(contradictions(records, new, among, self.pair_masks))
        for _ in range(_MAX_VALUE_REDRAWS):
            if not len(wrong):
                break
            part = records[wrong]
            self.network.draw(part, rng, kept=position, until=position + 1, method="independent")
            records[wrong, new] = part[:, new]
            wrong = wrong[contradictions(part, new, among, self.pair_masks)]
        for start in range(0, len(wrong), _RECORDS_PER_BATCH):
            rows = wrong[start : start + _RECORDS_PER_BATCH]
            records[rows, new] = self._draw_allowed(records[rows], rng, new, among)

    def _draw_allowed(self, records: Codes, rng: Rng, new: int, among: list[int]) -> Indices:
        """Draw values of attribute ``new`` given that they contradict no earlier value."""
        allowed = allowed_codes(records, new, among, self.pair_masks)
        weights = self.network.distribution(records, new, allowed)
        cumulative = np.cumsum(weights, axis=1)
        threshold = rng.random(len(records)) * cumulative[:, -1]
        below = np.count_nonzero(cumulative <= threshold[:, None], axis=1)
        drawn: Indices = np.minimum(below, weights.shape[1] - 1)
        return drawn


def draw_feasible(
    draw: Callable[[int, Rng], Codes], number: int, rng: Rng, feasible: Feasible
) -> Codes:
    """Draw records that satisfy the constraints; redraw the others as a whole.

    Raises:
        SchemaError: The model draws hardly any feasible record.
    """
    records = draw(number, rng)
    wrong = np.flatnonzero(~feasible(records))
    tried, found = number, number - len(wrong)
    while len(wrong):
        if tried > _MAX_DRAWS_PER_RECORD * (found + _MIN_EXPECTED_RECORDS):
            raise SchemaError(
                f"the constraints allow less than one in {_MAX_DRAWS_PER_RECORD:,} of the records "
                "that the model draws; check that they do not contradict each other, or relax them"
            )
        records[wrong] = draw(len(wrong), rng)
        tried += len(wrong)
        left = wrong[~feasible(records[wrong])]
        found += len(wrong) - len(left)
        wrong = left
    return records


def draw_seedless(
    network: Network, number: int, rng: Rng, *, method: DrawMethod = "independent"
) -> Codes:
    """Draw records from the model alone: all attributes anew."""
    records = empty_codes(number, network.attributes)
    network.draw(records, rng, kept=0, method=method)
    return records


def collect_records(
    frames: Iterable[pl.DataFrame], number: int, schema: Schema, kind: FrameKind
) -> Foreign:
    """Collect decoded records in one data frame; refuse, before one is drawn, what does not fit.

    Args:
        frames: The records, block by block; drawn when they are read.
        number: Their number.
        schema: Their schema.
        kind: The kind of data frame. Others than polars are copied from it.

    Raises:
        OutputError: The free memory is too small.
    """
    copies = 1 if isinstance(kind, PolarsKind) else 2
    needed, free = copies * number * record_bytes(schema.columns), free_memory()
    if free is not None and needed > free:
        raise OutputError(
            f"{number:,} records need about {format_size(needed)} of memory, and "
            f"{format_size(free)} are free. Write them to a file, which takes no more memory for "
            "more records: deniable generate ARTEFACT --records N --out FILE, or in Python "
            'dn.generate(artefact, records).write_file("records.parquet")'
        )
    return kind.restore(pl.concat(frames))


def format_size(number: int) -> str:
    """A number of bytes in words.

    >>> format_size(40), format_size(24_000_000_000_000)
    ('40 bytes', '24 TB')
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number = round(number / 1000)
    return f"{number:,} {unit}"


def decode_blocks(
    records: Records, schema: Schema, randomness: Randomness, progress: Progress = no_progress
) -> Iterator[pl.DataFrame]:
    """Decode records block by block: complete records, numbered from 1.

    Args:
        records: The encoded records.
        schema: Their schema.
        randomness: Draws values within bins and salts identifiers. Bins are public, so it matters
            for repeatability only.
        progress: Called after each block.
    """
    codec, done = Codec(schema), 0
    salt = randomness.at("identifiers").words(2).tobytes()
    progress("records", 0, records.number)
    for number, block in enumerate(records.blocks()):
        rng = randomness.at("values", number)
        yield decode_records(codec, block, rng, first_record=done + 1, salt=salt)
        done += len(block)
        progress("records", done, records.number)
    if done != records.number:
        raise InvariantError(f"{done:,} records were generated, not {records.number:,}")
