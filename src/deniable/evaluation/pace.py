"""How long learning and generation take, by number of records (Sec. 6.5, Figure 5)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deniable.data.schema import Schema
from deniable.model.generative import GenerativeModel
from deniable.pipeline import synthesize
from deniable.release.whole import Release


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One run: so many records, and the seconds it took to learn and to generate them."""

    records: int
    learning: float
    generation: float

    def document(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return asdict(self)


def measure_pace(
    source: object,
    schema: Schema,
    *,
    records: Sequence[int],
    learn: Callable[[], GenerativeModel] | None = None,
    watch: Callable[[int, int], None] = lambda _done, _of: None,
    **options: Any,
) -> tuple[Instance, ...]:
    """Run the pipeline once for each number of records, and time its two halves.

    Learning is everything until the first block is asked for: reading, noise, tables.

    Args:
        source: A path or a frame.
        schema: What its columns hold.
        records: How many records, run by run.
        learn: Learns a model that is tested by scan; None: the built-in one, by look-up.
        watch: Told how many runs are done.
        options: As in ``Config``.
    """

    def make(number: int) -> Release:
        model = None if learn is None else learn()
        return synthesize(source, schema, records=number, model=model, **options)

    found = []
    for at, number in enumerate(records):
        watch(at, len(records))
        found.append(_time(make, number))
    watch(len(records), len(records))
    return tuple(found)


def _time(make: Callable[[int], Release], number: int) -> Instance:
    start = time.perf_counter()
    release = make(number)
    learnt = time.perf_counter()
    for _ in release.blocks:
        pass
    generated = time.perf_counter()
    return Instance(records=number, learning=learnt - start, generation=generated - learnt)
