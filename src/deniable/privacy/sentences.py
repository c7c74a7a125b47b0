"""What may be said about a release: each mode's sentence, with its slots, here and nowhere else."""

_NOT_DP = (
    "This is not differential privacy: somebody who knows the other rows may learn whether a row "
    "is present, and the guarantee does not compose over records."
)


def nothing_claimed(*, tested_k: int | None = None) -> str:
    """Return what is said where the model was learnt without noise (ε = ∞)."""
    claim = (
        "No privacy is claimed: the model was learnt without noise (epsilon = inf), and the "
        "release is as confidential as the table."
    )
    if tested_k is None:
        return claim
    return f"{claim} Its records did pass the deniability test with k = {tested_k}."
