"""Toy artefacts: a small table, learnt once; its noisy counts, measured under many keys."""

from dataclasses import replace
from functools import cache

import numpy as np

import deniable
from deniable.config import Config
from deniable.counting.local import LocalRows
from deniable.data.codec import Codec
from deniable.pipeline.learn_model import measure_counts
from deniable.pipeline.run_plan import Run, plan_run
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

ROWS = 800
SCHEMA = Schema(
    (
        Attribute(name="size", kind="integer", values=range(40)).with_bucket_width(10),
        Attribute(name="colour", kind="categorical", values=("red", "green", "blue", "grey")),
        Attribute(name="sold", kind="boolean", values=("no", "yes")),
        Attribute(name="price", kind="integer", values=range(1, 13), missing=("",)),
    ),
    rows_max=1_000,
)
OPTIONS = {"mode": "seedless", "epsilon": 2.0}


@cache
def toy_codes():
    """800 rows: price depends on size and colour, sold on colour."""
    rng = np.random.default_rng(5)
    size = rng.integers(40, size=ROWS)
    colour = np.where(rng.random(ROWS) < 0.7, size // 12, rng.integers(4, size=ROWS))
    sold = rng.random(ROWS) < 0.2 + 0.2 * (colour == 1)
    price = np.where(rng.random(ROWS) < 0.1, 12, np.minimum(size // 4 + colour, 11))
    return np.asfortranarray(np.stack([size, colour, sold, price], axis=1).astype(np.uint16))


@cache
def toy_artefact(**options) -> Artefact:
    """An artefact of the toy table."""
    frame = Codec(SCHEMA).decode(toy_codes())
    return deniable.learn(frame, SCHEMA, **{**OPTIONS, **options})


@cache
def _plan():
    config = Config.assemble(OPTIONS)
    return config, plan_run(SCHEMA, config)


def measure(key, codes=None):
    """Measure the noisy counts of the toy table, by the code of ``learn``, under a key."""
    config, plan = _plan()
    run = Run(schema=SCHEMA, config=config, plan=plan, randomness=Keyed(key))
    rows = LocalRows(toy_codes() if codes is None else codes)
    return measure_counts(rows, run, plan.privacy.pairs)[0]


def artefact_of(measured) -> Artefact:
    """An artefact with these noisy counts."""
    return replace(toy_artefact(), evidence=measured)


@cache
def many(number=300):
    """Many artefacts of the toy table, each with noise of its own."""
    return tuple(artefact_of(measure(1_000 + key)) for key in range(number))


def true_table(columns, bands, codes=None):
    """Count the rows in the bands of columns."""
    rows = toy_codes() if codes is None else codes
    shape = tuple(len(own) for own in bands)
    at = tuple(own.band_of[rows[:, column]] for column, own in zip(columns, bands, strict=True))
    return np.bincount(np.ravel_multi_index(at, shape), minlength=np.prod(shape)).reshape(shape)
