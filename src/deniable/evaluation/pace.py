"""How long learning and generation take, by number of records (Sec. 6.5, Figure 5)."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deniable.data.schema import Schema
from deniable.pipeline import synthesize


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
    watch: Callable[[int, int], None] = lambda _done, _of: None,
    **options: Any,
) -> tuple[Instance, ...]:
    """Run the pipeline once for each number of records, and time its two halves.

    Learning is everything until the first block is asked for: reading, noise, tables.
    """
    found = []
    for at, number in enumerate(records):
        watch(at, len(records))
        start = time.perf_counter()
        release = synthesize(source, schema, records=number, **options)
        learnt = time.perf_counter()
        for _ in release.blocks:
            pass
        found.append(
            Instance(
                records=number,
                learning=learnt - start,
                generation=time.perf_counter() - learnt,
            )
        )
    watch(len(records), len(records))
    return tuple(found)
