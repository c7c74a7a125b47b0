"""Guidance and standards that ask for such tests, and which part of an audit answers which item."""

from collections.abc import Mapping, Sequence
from typing import Literal

from deniable.evaluation.html import Markup, paragraph, section, table

Standard = Literal[
    "membership",
    "singling out",
    "linkability",
    "inference",
    "correctness",
    "parameters",
    "verification",
]

_DOCUMENTS = (
    "ICO, anonymisation guidance",
    "ISO/IEC 27559:2022",
    "EDPB, opinion 28/2024",
    "NIST SP 800-226",
)
# What each kind of test answers, in the order of the documents.
_ITEMS: Mapping[Standard, tuple[str, str, str, str]] = {
    "membership": (
        "motivated intruder test: is a given person in the data?",
        "8.2.3, adversarial testing",
        "resistance to membership inference",
        "meaning of ε: success of the best attacker",
    ),
    "singling out": (
        "identifiability: singling out; motivated intruder test",
        "8.2.3, adversarial testing",
        "singling out",
        "reconstruction and re-identification",
    ),
    "linkability": (
        "identifiability: linkability; motivated intruder test",
        "8.2.3, adversarial testing",
        "linkability",
        "linkage with other data",
    ),
    "inference": (
        "identifiability: inferences; motivated intruder test",
        "8.2.3, adversarial testing",
        "inference; resistance to attribute inference",
        "what differential privacy does not prevent: inference from the population",
    ),
    "correctness": (
        "effectiveness of the technique, tested",
        "8.2.3, adversarial testing of the method",
        "structured testing against attacks",
        "algorithms and correctness of the implementation",
    ),
    "parameters": (
        "assessment of the remaining risk, in figures",
        "8.2, assessing identifiability",
        "likelihood of obtaining personal data, by queries or by extraction",
        "privacy parameters ε and δ, unit of privacy",
    ),
    "verification": (
        "accountability: documented assessment",
        "9, governance: evidence that can be checked again",
        "documentation of the measures and of their tests",
        "evaluating the claim: ledger, unit and assumptions",
    ),
}


def standards_section(parts: Mapping[str, Sequence[Standard]]) -> Markup:
    """Build the table that leads from each part of a report to the items it answers."""
    rows = [
        (title, *_ITEMS[standard]) for title, standards in parts.items() for standard in standards
    ]
    words = (
        "Which part answers which item of guidance. This is our reading, to help "
        "with an assessment; it is no certificate of conformity."
    )
    head = ("part of this page", *_DOCUMENTS)
    return section("Guidance and standards", paragraph(words), table(head, rows, left=len(head)))
