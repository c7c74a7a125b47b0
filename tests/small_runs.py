"""Runs on the small table of conftest.py: options of each mode that suit it, and checks."""

import math
from collections import Counter

import deniable
from deniable.data.codec import Codec
from deniable.randomness import Keyed

INF = math.inf
NOISE = Keyed(17)
MODES = {
    "one-shot": {"k": 20, "omega": "3"},
    "seedless": {},
    "tested": {"k": 20, "omega": "3"},
    "randomized": {"k": 400, "omega": "3", "delta": 1e-6},
}
# The most records that the budget of a mode allows.
MOST = {"randomized": 5}


def synthesize(table, schema, mode, records=40, **more):
    """Synthesize in ``mode`` with its options; fewer records where the mode allows no more."""
    records = min(records, MOST.get(mode, records))
    return deniable.synthesize(table, schema, records=records, mode=mode, **{**MODES[mode], **more})


def assert_fits(frame, schema, records):
    """Check the number of records, and that the schema allows each of them."""
    assert frame.height == records
    assert frame.columns == list(schema.names)
    assert len(Codec(schema).encode(frame)) == records


def row_counts(codes, columns):
    """Count the combinations of values in ``columns``."""
    return Counter(map(tuple, codes[:, list(columns)].tolist()))
