"""Edit the text of schema.toml statement by statement; everything else stays, comments included."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from deniable.files import parse_toml
from deniable.schema.toml_writer import write_value

# Strings and comments, in which brackets and line ends mean nothing; brackets; line ends.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"""'
    r"|'''.*?'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{}]|\n",
    re.DOTALL,
)
_HEADER = re.compile(r"\s*(\[\[?)\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"\s*([A-Za-z0-9_-]+)\s*=")
# Comments that are wrong once a person has changed the value.
_PROVENANCE = re.compile(r"\s*#\s*(read from the data|from a noisy count|drafted with diff).*")
_IS_ORIGIN = re.compile(r"[a-z_]+: (read from the data|drafted with diff).*")
_COMMENT_COLUMN = 32


@dataclass(frozen=True)
class TomlStatement:
    """Consecutive lines: one key with its value, a header, or comments and empty lines.

    Attributes:
        text: The lines, with their line ends.
        key: The key; "" for anything else.
    """

    text: str
    key: str = ""


@dataclass(frozen=True)
class Block:
    """A header such as ``[[attribute]]`` and the statements up to the next one.

    Attributes:
        kind: "" for the top of the file, else "attribute", "constraint" or "draft".
        statements: The statements; the first of a block with a header is the header.
    """

    kind: str
    statements: tuple[TomlStatement, ...]

    @property
    def text(self) -> str:
        """The lines of the block."""
        return "".join(each.text for each in self.statements)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys, in order."""
        return tuple(each.key for each in self.statements if each.key)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Comments on lines of their own, joined where they are wrapped."""
        lines = [
            line.strip()
            for each in self.statements
            if not each.key
            for line in each.text.splitlines()
        ]
        found: list[str] = []
        goes_on = False
        for line in lines:
            text = line.removeprefix("#").strip()
            if not line.startswith("#") or not text or _IS_ORIGIN.fullmatch(text):
                goes_on = False
                continue
            if goes_on:
                found[-1] += f" {text}"
            else:
                found.append(text)
            goes_on = not text.endswith((".", "!", "?", ":"))
        return tuple(found)

    def with_value(self, key: str, value: object) -> "Block":
        """Set a key to a value; None removes it. The other statements stay as they are."""
        found = [at for at, each in enumerate(self.statements) if each.key == key]
        if not found:
            return self if value is None else self._with_new(key, value)
        kept = list(self.statements)
        if value is None:
            kept[found[0]] = TomlStatement("")
            return replace(self, statements=tuple(kept))
        old = kept[found[0]]
        if _same(old.text, key, value):
            return self
        comment = _trailing_comment(old.text)
        kept[found[0]] = TomlStatement(_line(key, value, comment), key)
        before = found[0] - 1
        if before >= 0 and kept[before].text.strip() == f"# {key}: read from the data":
            kept[before] = TomlStatement("")
        return replace(self, statements=tuple(kept))

    def _with_new(self, key: str, value: object) -> "Block":
        """Add a key after the last one, but before ``confirmed``."""
        at = max((i for i, each in enumerate(self.statements) if each.key or i == 0), default=0)
        if self.statements and self.statements[at].key == "confirmed" and key != "confirmed":
            at -= 1
        new = TomlStatement(_line(key, value, ""), key)
        return replace(
            self, statements=(*self.statements[: at + 1], new, *self.statements[at + 1 :])
        )


@dataclass(frozen=True)
class SchemaText:
    """The text of a schema, as blocks."""

    blocks: tuple[Block, ...]

    @classmethod
    def parse(cls, text: str) -> "SchemaText":
        """Split a text into blocks. Any text can be split; ``text`` gives it back."""
        blocks: list[tuple[str, list[TomlStatement]]] = [("", [])]
        for statement, header in _statements(text):
            if header:
                blocks.append((header, []))
            blocks[-1][1].append(statement)
        return cls(tuple(Block(kind, tuple(statements)) for kind, statements in blocks))

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(block.text for block in self.blocks)

    def places(self, kind: str) -> list[int]:
        """The numbers of the blocks of a kind."""
        return [at for at, block in enumerate(self.blocks) if block.kind == kind]

    def with_block(self, at: int, block: Block | None) -> "SchemaText":
        """Replace a block; None removes it, together with the comments above its header."""
        new = () if block is None else (block,)
        return SchemaText((*self.blocks[:at], *new, *self.blocks[at + 1 :]))

    def with_attribute(self, number: int, **values: object) -> "SchemaText":
        """Set keys of the ``number``-th attribute, counted from 0; None removes a key."""
        at = self.places("attribute")[number]
        block = self.blocks[at]
        for key, value in values.items():
            block = block.with_value(key, value)
        return self.with_block(at, block)

    def with_head(self, **values: object) -> "SchemaText":
        """Set keys at the top of the file; None removes a key."""
        block = self.blocks[0]
        for key, value in values.items():
            block = block.with_value(key, value)
        return self.with_block(0, block)


def _statements(text: str) -> Iterator[tuple[TomlStatement, str]]:
    """Yield statements, each with the name of the table that it is the header of, or ""."""
    start = depth = 0
    for token in _TOKEN.finditer(text):
        found = token.group()
        if found in "[{":
            depth += 1
        elif found in "]}":
            depth -= 1
        elif found == "\n" and depth <= 0:
            yield _statement(text[start : token.end()])
            start, depth = token.end(), 0
    if start < len(text):
        yield _statement(text[start:])


def _statement(lines: str) -> tuple[TomlStatement, str]:
    if (header := _HEADER.match(lines)) and "\n" not in lines.strip():
        return TomlStatement(lines), header[2]
    key = _KEY.match(lines)
    return TomlStatement(lines, key[1] if key else ""), ""


def _line(key: str, value: object, comment: str) -> str:
    written = f"{key} = {write_value(value)}"
    if not comment:
        return f"{written}\n"
    if "\n" in written:
        return f"{comment}\n{written}\n"
    return f"{written:<{_COMMENT_COLUMN}}  {comment}\n"


def _trailing_comment(text: str) -> str:
    """The comment after a value on its last line, unless it states the origin of the old value."""
    tokens = [token.group().strip() for token in _TOKEN.finditer(text) if token.group() != "\n"]
    last = tokens[-1] if tokens and tokens[-1].startswith("#") else ""
    return "" if _PROVENANCE.fullmatch(last) else last


def _same(text: str, key: str, value: object) -> bool:
    """Whether a statement already has this value, so that it can stay as it is written."""
    try:
        old = parse_toml(text)[key]
    except (ValueError, KeyError):
        return False
    return type(old) is type(value) and old == value


def changed_keys(old: Block, keys: Sequence[str]) -> tuple[str, ...]:
    """The keys of a block that are not among ``keys``."""
    return tuple(key for key in old.keys if key not in keys)
