"""Measured noise of every stage: its variance, its mean, and its independence of other stages.

The audited tables are known, so each released number shows its noise. This finds too little noise
with far fewer runs than any attack, since every number of every run counts. It assumes more than an
attack does: that noise is added to the counts, whatever these are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from deniable.arrays import Reals
from deniable.audit.split_counts import SPLIT_STAGE


@dataclass(frozen=True, kw_only=True)
class StageNoise:
    """The noise of one stage, in units of the claimed standard deviation.

    Attributes:
        name: Name of the stage.
        numbers: How many noise values were measured.
        ratio: Measured over claimed variance.
        error: Standard error of the ratio.
        bias: Mean, in standard errors.
        information: Mean μ² of a target, if the noise has the claimed variance; 0 if not Gaussian.
        charged: μ of the stage in the ledger; None if it is not there.
    """

    name: str
    numbers: int
    ratio: float
    error: float
    bias: float
    information: float
    charged: float | None

    @property
    def mu(self) -> float:
        """μ of the stage by its measured noise."""
        return math.sqrt(self.information / max(self.ratio, 1e-12))

    def excess(self, *, confidence: float) -> list[str]:
        """Where the stage has less noise, or another one, than is charged."""
        z, found = float(ndtri((1 + confidence) / 2)), []
        if self.name.startswith(SPLIT_STAGE):
            return self._split_excess(z)
        if self.ratio + z * self.error < 1:
            found.append(
                f"the noise of {self.name} has {100 * math.sqrt(self.ratio):.3g} % of its claimed "
                "standard deviation"
            )
        if abs(self.bias) > z:
            found.append(f"the noise of {self.name} does not have mean zero: it repeats itself")
        least = self.mu * (1 - z * self.error / (2 * max(self.ratio, 1e-12)))
        if self.information > 0 and least > (self.charged or 0.0) * (1 + 1e-6):
            charged = "is not charged" if self.charged is None else f"is charged {self.charged:.4f}"
            found.append(f"{self.name} has μ = {self.mu:.4f} and {charged}")
        return found

    def _split_excess(self, z: float) -> list[str]:
        """Where the rows of a split are not drawn as is stated."""
        found = []
        if abs(self.bias) > z:
            found.append(f"{self.name}: their number is not that of the stated probabilities")
        if self.ratio + z * self.error < 1:
            found.append(f"{self.name}: their number varies less than by independent draws")
        return found


def stage_noises(
    blocks: Sequence[Mapping[str, Any]], charged: Mapping[str, float]
) -> list[StageNoise]:
    """Sum up the noise of each stage over all blocks."""
    found = []
    for name in sorted({name for block in blocks for name in block["stages"]}):
        of_stage = [block for block in blocks if name in block["stages"]]
        number, first, second, fourth, information = np.sum(
            [block["stages"][name] for block in of_stage], axis=0
        )
        runs = max(1, sum(len(block["first"]) for block in blocks))
        ratio = second / number
        spread = max(fourth / number - ratio**2, 1e-300)
        found.append(
            StageNoise(
                name=name,
                numbers=int(number),
                ratio=float(ratio),
                # At least that of the claimed Gaussian noise: a measured variance that is small by
                # chance has a small spread too, and would accuse honest noise in short audits.
                error=float(math.sqrt(max(spread, 2.0) / number)),
                bias=float(first / math.sqrt(number)),
                information=float(information / runs),
                charged=charged.get(name),
            )
        )
    return found


def correlation_score(blocks: Sequence[Mapping[str, Any]], *, columns: int) -> float:
    """The largest correlation of noise between two stages, in standard errors (Fisher's z).

    Compared are the first numbers of the one-way tables, and of the last table of every run.
    """
    rows = [row for block in blocks for row in block["first"] if len(row) > columns]
    noise: Reals = np.array([[*row[:columns], row[-1]] for row in rows], dtype=np.float64)
    if len(noise) < 10 or columns < 1:
        return 0.0
    centred = noise - noise.mean(axis=0)
    scale = np.sqrt((centred**2).sum(axis=0))
    if not (scale > 1e-9).all():
        return math.inf  # noise that is the same in every run, up to rounding of the mean
    correlations = np.abs((centred / scale).T @ (centred / scale))
    np.fill_diagonal(correlations, 0.0)
    largest = min(float(correlations.max()), 1 - 1e-12)
    return math.atanh(largest) * math.sqrt(len(noise) - 3)
