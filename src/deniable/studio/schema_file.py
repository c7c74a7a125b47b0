"""A schema file that is edited: read with its version, written whole, never over a newer one."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from deniable.errors import InputError, SchemaError
from deniable.files import parse_toml, require_regular_file
from deniable.release.atomic_files import as_output_error
from deniable.schema.schema import Schema
from deniable.studio.access_guard import random_text
from deniable.studio.column_form import mapped_pairs
from deniable.studio.open_questions import (
    OpenQuestion,
    apply_answer,
    own_column,
    questions_about,
    read_questions,
)
from deniable.studio.rule_words import rule_sentence
from deniable.studio.schema_text import Block, SchemaText

# Bytes of a schema that are edited here; larger ones need an editor.
_MAX_BYTES = 2**22


class StalePageError(InputError):
    """A page was sent that shows an older state than there is now."""


@dataclass(frozen=True, kw_only=True)
class SchemaFile:
    """The text of a schema file at one moment.

    Attributes:
        path: The file.
        text: Its text.
        document: It as TOML; empty if it is not TOML.
        schema: It as a schema; None if it is none.
        error: Why it is no schema; "" if it is one.
    """

    path: Path
    text: str
    document: dict[str, Any]
    schema: Schema | None
    error: str = ""

    @classmethod
    def read(cls, path: Path) -> "SchemaFile":
        """Read a schema file, also a broken one.

        Raises:
            SchemaError: It cannot be read at all.
        """
        require_regular_file(path, SchemaError)
        if path.stat().st_size > _MAX_BYTES:
            raise SchemaError(f"{path.name} is too large to be edited here; use an editor")
        try:
            # Not by a link, which it may have become since its path was checked.
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(file, encoding="utf-8-sig", newline=None) as opened:
                text = opened.read()
        except (UnicodeDecodeError, OSError):
            raise SchemaError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None
        return cls.of(path, text)

    @classmethod
    def of(cls, path: Path, text: str) -> "SchemaFile":
        """Look at a text that is, or will be, in a file."""
        document: dict[str, Any] = {}
        with suppress(ValueError):
            document = parse_toml(text)
        try:
            schema, error = Schema.parse(text), ""
        except SchemaError as fault:
            schema, error = None, str(fault)
        return cls(path=path, text=text, document=document, schema=schema, error=error)

    @property
    def version(self) -> str:
        """A hash of the text: a page that has another one is stale."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:20]

    @cached_property
    def edited(self) -> SchemaText:
        """The text as blocks."""
        return SchemaText.parse(self.text)

    @cached_property
    def edited_attributes(self) -> list[Block]:
        """The blocks of the attributes."""
        return [self.edited.blocks[at] for at in self.edited.places("attribute")]

    @cached_property
    def questions(self) -> list[OpenQuestion]:
        """The questions that the draft left."""
        return read_questions(self.text)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The attributes, as TOML."""
        found = self.document.get("attribute", [])
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    @property
    def constraints(self) -> list[dict[str, Any]]:
        """The constraints, as TOML."""
        found = self.document.get("constraint", [])
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def is_confirmed(self, entry: Mapping[str, Any]) -> bool:
        """Whether an entry is public: confirmed by a person, or by a draft whose cost is stated."""
        state = entry.get("confirmed", True)
        return state is True or (state == "draft" and "draft" in self.document)

    def questions_about(self, column: Mapping[str, Any]) -> list[OpenQuestion]:
        """The open questions about a column, given as TOML."""
        return [] if self.is_confirmed(column) else questions_about(column, self.questions)

    def require_version(self, version: str) -> None:
        """Refuse a change that was made on an older text.

        Raises:
            StalePageError: The file has changed since.
        """
        if version != self.version:
            raise StalePageError(
                "the schema has changed since this page was opened, in another window or in an "
                "editor. Your change was not saved. Go back to the schema, and make it again"
            )

    def write(self, text: str) -> "SchemaFile":
        """Write another text to the file, if it is a schema.

        Raises:
            SchemaError: It is not; nothing was written.
            OutputError: The file cannot be written; it is as it was.
        """
        new = SchemaFile.of(self.path, text)
        if new.schema is None:
            raise SchemaError(new.error)
        with as_output_error(self.path):
            _replace(self.path, text)
        return new


def without_broken_rules(edited: SchemaText) -> tuple[SchemaText, list[str]]:
    """Drop the rules that do not apply to the columns as they are now.

    A column that can no longer be computed becomes one of its own if its values are known, and is
    left out if not; it is not confirmed.

    Returns:
        The text without them, and a sentence about each. A text that is wrong for another reason
        comes back as it is.
    """
    blocks, tables = list(edited.blocks), [_table_of(block) for block in edited.blocks]
    computed = [at for at, table in enumerate(tables) if table.get("type") == "computed"]
    rules = edited.places("constraint")
    columns = [at for at in range(len(blocks)) if at not in (*computed, *rules)]
    if _is_schema(blocks) or not _is_schema([blocks[at] for at in columns]):
        return edited, []
    sentences = []
    for at in sorted(computed, key=lambda at: "formula" in tables[at]):  # formulas may use maps
        columns = sorted([*columns, at])
        if not _is_schema([blocks[each] for each in columns]):
            values, sentence = _not_computed(tables[at])
            sentences.append(sentence)
            for key, value in values.items():
                blocks[at] = blocks[at].with_value(key, value)
    described = [blocks[at] for at in columns]
    broken = [at for at in rules if not _is_schema([*described, blocks[at]])]
    sentences += [rule_sentence(tables[at]) for at in broken]
    kept = tuple(block for at, block in enumerate(blocks) if at not in broken)
    return SchemaText(kept), sentences


def _is_schema(blocks: Iterable[Block]) -> bool:
    with suppress(SchemaError):
        Schema.parse("".join(block.text for block in blocks))
        return True
    return False


def _table_of(block: Block) -> dict[str, Any]:
    """An attribute or a constraint as TOML; empty for anything else."""
    with suppress(ValueError, LookupError, TypeError):
        return dict(parse_toml(block.text)[block.kind][0])
    return {}


def _not_computed(column: dict[str, Any]) -> tuple[dict[str, object], str]:
    """The keys of a column that was computed, and a sentence about it."""
    name = column.get("name", "")
    if mapped_pairs(column):
        sentence = f"{name} follows from {column.get('from')}. It is a column of its own now."
        return own_column(column), sentence
    values = {**apply_answer("omit", column, []), "confirmed": False}
    return values, f"{name} is {column.get('formula')}. It is left out now."


def _replace(path: Path, text: str) -> None:
    """Replace a file: its old content or its new one, nothing in between. Its mode stays."""
    stage = path.with_name(f".partial.{random_text()[:8]}.{path.name}")
    mode = path.stat().st_mode & 0o777
    try:
        file = os.open(stage, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(file, "w", encoding="utf-8", newline="\n") as opened:
            os.fchmod(file, mode)
            opened.write(text)
            opened.flush()
            os.fsync(file)
        stage.replace(path)
    except BaseException:
        with suppress(OSError):
            stage.unlink(missing_ok=True)
        raise
