"""Questions about a release under suspicion: each is answered, whatever is wrong with it."""

from collections.abc import Callable
from dataclasses import dataclass

from deniable.errors import DeniableError


@dataclass(frozen=True, kw_only=True)
class Check:
    """One question about a release, and its answer.

    Attributes:
        name: What was asked about.
        passed: Whether it is as it must be.
        explanation: One sentence: what was found. No cell of a table, no exact count.
    """

    name: str
    passed: bool
    explanation: str


def check(name: str, question: Callable[[], str]) -> Check:
    """Return the answer to a question that says what it found, or raises what is wrong.

    A release under suspicion may hold anything, so anything may go wrong while it is read: every
    fault is a no.
    """
    try:
        return Check(name=name, passed=True, explanation=question())
    except DeniableError as fault:
        return Check(name=name, passed=False, explanation=" ".join(str(fault).split()))
    except Exception as fault:  # noqa: BLE001, RUF100 - fail closed
        why = f"it is not what the product writes ({type(fault).__name__})"
        return Check(name=name, passed=False, explanation=why)
