"""A note of a draft in words for a reader who does not see the file: without its keys."""

import re

_CODES = "Are its numbers quantities, or codes without an order?"
# Words of a note about keys of the file, and those for a reader of a page with buttons.
_PLAIN_WORDS: tuple[tuple[str, str], ...] = (
    (r'set release = "omit"', "leave the column out"),
    (r' with release = "omit"', ""),
    (
        r"All missing cells are written as the first text under missing",
        "In the records, all missing cells are written in the same way",
    ),
    (r" \(see missing\)", ""),
    (
        r'if it means missing, add it to missing and lower max; if it means ("[^"]*"), leave it',
        r"does it mean missing, or \1?",
    ),
    (
        r"If so, set unit and max_rows_per_unit at the top: without them the guarantee",
        "If so, say so here: otherwise the guarantee",
    ),
    (
        r'Take the list from the data dictionary, or make the column "text" with the frequent '
        r"values\.?$",
        "Is the whole list public, for example in a data dictionary? If not, gather the rare ones.",
    ),
    (
        r"If it identifies a person, make it an identifier; if a coarser grid is enough, choose one"
        r"\.?$",
        "Is it one, or does it identify a person?",
    ),
    (
        r'^It is computed from ("[^"]*"), as (?:each follows from the other|it follows from it) in '
        r"every row: please check its (?:map|steps) against the data dictionary\.?$",
        r"In every row of this table, it follows from \1. Is that always so, and public? Records "
        r"will obey it, and what follows from what is published with the schema.",
    ),
    (
        r"^(Its numbers look like codes, so each is a value of its own): .*$",
        r"\1. Are they codes with a public list, or amounts?",
    ),
    (r"^Only these numbers occur: .*$", "No other numbers occur in this table. Can others occur?"),
    (r' \("ordered"\)', ""),
    (r"^If its numbers are codes without an order, make it categorical\.$", _CODES),
    (
        r"^(\d+) constraints? (is|are) at the end of the file",
        r"\1 rules between columns \2 at the end of this page",
    ),
    (r"if it is free text, remove the column", "if it is free text, leave it out"),
    (r"make it categorical", "edit it, and choose categories"),
    (r"make it a range \(min, max\)", "edit it, and choose a whole number or one with decimals"),
    (r"make it an integer \(min, max\)", "edit it, and choose a whole number"),
    (r": choose decimals", ": edit it to keep more, or fewer"),
    (r"\?\.$", "?"),
)


def without_keys(text: str) -> str:
    """Replace what a note says about keys of the file."""
    for pattern, words in _PLAIN_WORDS:
        text = re.sub(pattern, words, text)
    return text
