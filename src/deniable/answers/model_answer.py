"""Answers of the model alone, for questions that no noisy count answers: no intervals.

Counted in records that the model draws with a public key, as many as make their own sampling error
small. They are a function of the artefact: the same answer on every computer.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from deniable.answers.cell_bands import Bands
from deniable.arrays import Codes, Reals
from deniable.randomness import Keyed
from deniable.release.artefact import Artefact
from deniable.release.query_answer import AnswerCell, Interval

MODEL_ONLY = "model only, no interval"
# Records that are drawn, and their key: any public number.
_MODEL_RECORDS = 200_000
_MODEL_KEY = 17


def model_cells(
    artefact: Artefact,
    columns: Sequence[int],
    bands: Sequence[Bands],
    shares: Mapping[int, Reals],
    *,
    rows: float,
) -> tuple[Interval, list[AnswerCell]]:
    """Count the model's records in each cell; return those that satisfy the condition, and cells.

    Args:
        artefact: The artefact.
        columns: The columns.
        bands: Their bands.
        shares: By column of the condition, the share of each code's values that satisfies it:
            roundness levels by codes (``BinValues.shares``), one row without roundness.
        rows: The number of rows of the table, estimated.
    """
    codes = draw_model(artefact)
    weights = np.ones(len(codes))
    for column, share in shares.items():
        # Roundness is the attribute before its column.
        levels = codes[:, column - 1] if len(share) > 1 else 0
        weights *= share[levels, codes[:, column]]
    shape = tuple(len(own) for own in bands)
    at = np.ravel_multi_index(
        tuple(own.band_of[codes[:, column]] for own, column in zip(bands, columns, strict=True)),
        shape,
    )
    table = np.bincount(at, weights, minlength=math.prod(shape)).reshape(shape)
    allowed = [own_allowed(own, shares.get(c)) for own, c in zip(bands, columns, strict=True)]
    cells = []
    for bands_of_cell in product(*map(range, shape)):
        if all(own[band] for own, band in zip(allowed, bands_of_cell, strict=True)):
            labels = [own.labels[band] for own, band in zip(bands, bands_of_cell, strict=True)]
            within = table[bands_of_cell[0]].sum() if len(shape) > 1 else None
            cells.append(
                _model_cell(
                    tuple(labels),
                    float(table[bands_of_cell]),
                    table.sum(),
                    within,
                    rows / len(codes),
                )
            )
    return without_interval(float(table.sum()) * rows / len(codes)), cells


def own_allowed(bands: Bands, shares: Reals | None) -> list[bool]:
    """Test which bands hold a value that satisfies the condition, at some roundness level."""
    if shares is None:
        return [True] * len(bands)
    found = np.zeros(len(bands), dtype=bool)
    np.logical_or.at(found, bands.band_of, (shares > 0).any(axis=0))
    return [bool(each) for each in found]


def draw_model(artefact: Artefact) -> Codes:
    """Draw the model's records, encoded."""
    generated = artefact.records(_MODEL_RECORDS, Keyed(_MODEL_KEY))
    return np.concatenate(list(generated.blocks()))


def without_interval(estimate: float) -> Interval:
    """An estimate without an interval."""
    return Interval(estimate=estimate, low=math.nan, high=math.nan)


def _model_cell(
    labels: tuple[str, ...], count: float, total: float, within: float | None, scale: float
) -> AnswerCell:
    return AnswerCell(
        labels=labels,
        count=without_interval(count * scale),
        share=without_interval(count / total if total else math.nan),
        within=None if within is None else without_interval(count / within if within else math.nan),
        note=MODEL_ONLY,
    )
