"""Write a draft as TOML with comments, and notes as a numbered list."""

import textwrap
from collections.abc import Iterable, Sequence

from deniable.drafting.description import ColumnDraft, Note, TomlValue, note_priority
from deniable.schema.toml_writer import write_value

_LINE_WIDTH = 100
_COMMENT_COLUMN = 34
_MAX_NAMES_PER_NOTE = 12


def write_attribute(draft: ColumnDraft) -> str:
    """Write one column as an ``[[attribute]]`` table."""
    lines = ["[[attribute]]"]
    lines += _key_lines("name", draft.name)
    lines += _key_lines("type", draft.kind)
    for field in draft.fields:
        lines += _key_lines(field.key, field.value, field.comment)
    lines += _key_lines("confirmed", draft.confirmed, draft.origin)
    for remark in draft.remarks:
        lines += comment_lines(remark)
    return "\n".join(lines) + "\n"


def comment_lines(text: str, *, indent: str = "") -> list[str]:
    """Wrap a text into TOML comment lines."""
    # Column names may contain control characters, which TOML forbids in comments.
    return textwrap.wrap(
        "".join(char if char.isprintable() else " " for char in text),
        _LINE_WIDTH,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {' ' * len(indent)}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def commented_line(line: str, comment: str) -> str:
    """Append a comment to a line of TOML, aligned with the other comments."""
    return f"{line:<{_COMMENT_COLUMN - 2}}  # {comment}"


def group_notes(attributes: Iterable[ColumnDraft]) -> list[Note]:
    """Merge equal notes of several columns; start each with the names of its columns."""
    names: dict[str, list[str]] = {}
    priorities: dict[str, int] = {}
    for draft in attributes:
        for note in draft.notes:
            names.setdefault(note, []).append(write_value(draft.name))
            priorities[note] = min(priorities.get(note, note_priority(note)), note_priority(note))
    return [
        Note(f"{_join_names(columns)}: {note}.", priority=priorities[note])
        for note, columns in names.items()
    ]


def _join_names(names: Sequence[str]) -> str:
    shown, hidden = names[:_MAX_NAMES_PER_NOTE], names[_MAX_NAMES_PER_NOTE:]
    return f"{', '.join(shown)}{f' and {len(hidden)} more' if hidden else ''}"


def numbered_lines(notes: Iterable[str]) -> list[str]:
    """Write notes as a numbered list of comment lines."""
    lines: list[str] = []
    for number, note in enumerate(notes, 1):
        lines += comment_lines(note, indent=f"{number:>3}. ")
    return lines


def _key_lines(key: str, value: TomlValue, comment: str = "") -> list[str]:
    written = f"{key} = {write_value(value)}"
    if not comment:
        return written.split("\n")
    if "\n" in written or len(written) + len(comment) + 4 > _LINE_WIDTH:
        return [f"# {key}: {comment}", *written.split("\n")]
    return [commented_line(written, comment)]
