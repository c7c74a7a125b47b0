"""Parsing of ledger entries: valid entries are read, invalid ones are refused."""

import math

import pytest

from deniable.errors import VerificationError
from deniable.verification.manifest_spend import ManifestSpend

ENTRY = {
    "what": "seed prefixes",
    "part": "seeds",
    "law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 30},
    "sensitivity": 1,
    "moved": 1,
    "times": 1,
    "each": None,
    "epsilon": 0.5,
    "delta": 1e-6,
}


def test_an_entry_is_parsed():
    use = ManifestSpend.parse(ENTRY)
    assert (use.law, use.scale, use.r, use.claimed) == (
        "truncated_geometric",
        (0.5, 30),
        30,
        (0.5, 1e-6),
    )
    assert ManifestSpend.parse({**ENTRY, "epsilon": "inf"}).claimed == (math.inf, 1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"law": {"name": "uniform", "epsilon": 0.5, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 30.0}},
        {"law": {"name": "truncated_geometric", "epsilon": 1, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": -0.5, "r": 30}},
        {"law": {"name": "truncated_geometric", "epsilon": 0.5, "r": 2**41}},
        {"sensitivity": 0},
        {"moved": True},
        {"times": 1.0},
        {"each": {"epsilon": 1.0}},
        {"epsilon": 1},
        {"epsilon": -1.0},
        {"delta": 2.0},
        {"more": 1},
    ],
)
def test_an_invalid_entry_is_refused(change):
    with pytest.raises(VerificationError):
        ManifestSpend.parse({**ENTRY, **change})
