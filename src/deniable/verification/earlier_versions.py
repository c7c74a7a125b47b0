"""Manifests of earlier versions: translate their fixed texts, so that one set of checks serves."""

from collections.abc import Mapping
from typing import Any

from deniable.release.manifest import not_covered

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
