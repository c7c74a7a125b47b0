"""Manifests of earlier versions: translate their fixed texts, so that one set of checks serves."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from deniable.release.manifest import not_covered
from deniable.verification.manifest_spend import ManifestSpend

# Version 0.1 → now. Numbers and structure are the same.
_TEXTS = {
    "second look at pairs": "remeasured pairs of attributes",
    "the schema is public knowledge: it was not read off this table, or somebody confirmed it": (
        "the schema is public knowledge: it was not read off this table, or it was confirmed"
    ),
    "the options were fixed before anybody looked at the table": (
        "the options were fixed before the table was looked at"
    ),
    "noise came from the operating system's CSPRNG, as whole numbers, and nobody saw it": (
        "the noise came from the operating system's CSPRNG, as integers, and stayed secret"
    ),
    "what the schema says, where it was read off the data": (
        "what the schema reveals, where it was read off the data"
    ),
    "anything else made from the same table, an evaluation against it included: costs add up": (
        "any other use of the same table, evaluations included: costs add up"
    ),
    "that a table is refused because a cell does not fit its schema: then correct the schema from "
    "what everybody may know": (
        "that a table is refused because a cell or a column type does not fit the schema; correct "
        "the schema from public knowledge only"
    ),
    "side channels such as run times, and the computer the table is on": (
        "side channels such as run times, and the computer that holds the table"
    ),
}
_PHRASES = {
    "somebody who knows the other rows": "an adversary who knows the other rows",
    "of its descriptions were read off this table and nobody confirmed them, so what they tell of "
    "it is not covered.": (
        "of its entries were read off this table and not confirmed; what they reveal about it is "
        "not covered."
    ),
}
_PHRASES_WITH_DRAFT = {
    "Schema and k were fixed": "k was fixed",
    "The schema was fixed in advance; the number": "The number",
}


def with_current_texts(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Copy a manifest of version 0.1 with today's fixed texts; return another one unchanged."""
    if not str(document.get("version", "")).startswith("0.1."):
        return document
    guarantee = document["guarantee"]
    excluded = [_TEXTS.get(text, text) for text in document["not_covered"]]
    # Since then, modes may list one more refusal at the end.
    more = [text for text in not_covered(None, document["mode"]) if text not in excluded][-1:]
    complete = excluded + (more if document["mode"] == "tested" else [])
    return {
        **document,
        "guarantee": {
            **guarantee,
            "sentence": _translate(guarantee["sentence"], document["parameters"]),
            "assumptions": [_TEXTS.get(text, text) for text in guarantee["assumptions"]],
        },
        "spends": [
            {**spend, "what": _TEXTS.get(spend["what"], spend["what"])}
            for spend in document["spends"]
        ],
        "not_covered": complete,
    }


def _translate(sentence: str, parameters: Mapping[str, Any]) -> str:
    """Translate the phrases of a guarantee sentence."""
    for old, new in {**_PHRASES, **(_PHRASES_WITH_DRAFT if "draft" in parameters else {})}.items():
        sentence = sentence.replace(old, new)
    return sentence


# Stages of versions before 0.3: which pairs are strongest, their tables, and further tables.
_EARLIER_STAGES = ("strength of pairs", "pairs of attributes", "remeasured pairs of attributes")


def measures_pairs_twice(document: Mapping[str, Any]) -> bool:
    """Test whether a manifest is of a version before 0.3, which measured pairs in other stages."""
    return str(document.get("version", "")).startswith(("0.1.", "0.2."))


def earlier_pair_stages(
    spends: Sequence[ManifestSpend], attributes: int, rows_max: int
) -> dict[str, int]:
    """List the stages of an earlier version, and how many numbers of each a record changes.

    With the pairs' whole budget, as many pairs are measured as leave each a noise deviation of
    rows_max/300. Bounds: at least the larger of 1.5 m and min(every/4, 2.5 m) pairs, at most the
    larger of 700 and 7 m.
    """
    m, every = attributes, attributes * (attributes - 1) // 2
    own = [spend for spend in spends if spend.what in _EARLIER_STAGES]
    measured = every
    if not any(spend.law == "exact" for spend in own):
        mu = math.sqrt(math.fsum(spend.moved / spend.scale[0] ** 2 for spend in own))
        # Near an integer, floating-point rounding may give either neighbour: accept both.
        affordable = [(mu * off * rows_max / 300) ** 2 for off in (1 - 1e-9, 1 + 1e-9)]
        fewest = max(3 * m // 2, min(every // 4, 5 * m // 2))
        low, high = (min(every, max(int(min(n, max(700, 7 * m))), fewest)) for n in affordable)
        claimed = next((spend.moved for spend in own if spend.what == _EARLIER_STAGES[1]), low)
        measured = claimed if low <= claimed <= high else low
    stages = dict(zip(_EARLIER_STAGES, (every, measured, 4 * measured), strict=True))
    if measured == every:
        del stages[_EARLIER_STAGES[0]]
    return stages if measured else {}


def has_earlier_split(spends: Sequence[ManifestSpend]) -> bool:
    """Test for an earlier version's split of the pairs' budget, in μ²: 1/5, and 2/5 for each."""
    squares = {
        spend.what: spend.moved / spend.scale[0] ** 2
        for spend in spends
        if spend.what in _EARLIER_STAGES and spend.law != "exact"
    }
    selection, first, second = (squares.get(what, 0.0) for what in _EARLIER_STAGES)
    tolerance = 1e-9 * math.fsum(squares.values())
    fifth = not selection or abs(selection - (first + second) / 4) <= tolerance
    return fifth and abs(first - second) <= tolerance
