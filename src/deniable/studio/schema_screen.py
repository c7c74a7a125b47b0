"""The second screen: the schema as a table that can be edited, a row for each column."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from deniable.drafting.round_numbers import nice_above
from deniable.errors import ConfigError, InputError, SchemaError
from deniable.studio.column_form import OUTSIDE, TYPES, ColumnForm, convert, summarize
from deniable.studio.equivalent_command import paste_text, plan_command
from deniable.studio.open_questions import (
    CODES,
    OpenQuestion,
    answers_to,
    apply_answer,
    codes_of,
    gather_rare,
    own_column,
    question_text,
)
from deniable.studio.rule_words import rule_sentence
from deniable.studio.schema_file import SchemaFile, without_broken_rules
from deniable.studio.schema_text import SchemaText
from deniable.studio.table_facts import describe_misfit, frequent_texts
from deniable.studio.workspace import Call, Page, Redirect, Reply, address

# Digits of a number of rows: no table has more.
_MAX_DIGITS = 15
# Answers after which the column is shown to be looked at, as it is not confirmed.
_TO_LOOK_AT = ("missing", "value", "edit", "frequent", "own", "codes")
# Columns that one answer confirms at least.
_MIN_ALIKE = 2
_LINE = re.compile(r"\(at line (\d+)")


@dataclass(frozen=True, kw_only=True)
class Edits:
    """What is typed on a page and not saved. Each button of the page sends it, and gets it back.

    Attributes:
        forms: The open forms, by the number of their column.
        rows: The guess of the number of rows.
        retyped: The columns of which another type was chosen, and whose fields are new.
    """

    forms: Mapping[int, ColumnForm] = field(default_factory=dict)
    rows: str | None = None
    retyped: frozenset[int] = frozenset()

    @classmethod
    def sent(cls, call: Call, file: SchemaFile) -> "Edits":
        """Read what the page sent."""
        forms, retyped = {}, set()
        for text in call.form.get("edited", "").split("\n"):
            at = _number(text)
            if at is None or at >= len(file.columns):
                continue
            forms[at] = _form_of(call, file.columns[at], at)
            if call.form.get(f"shown_type-{at}") != forms[at].kind and forms[at].keys:
                retyped.add(at)
        return cls(forms=forms, rows=call.form.get("rows_max"), retyped=frozenset(retyped))

    def unsaved(self, file: SchemaFile) -> "Edits":
        """The forms that differ from the file, and the guess if it does."""
        forms = {at: form for at, form in self.forms.items() if form.differs(file.columns[at])}
        return Edits(
            forms=forms,
            rows=None if self.rows in (None, str(_rows_guess(file) or "")) else self.rows,
            retyped=self.retyped & forms.keys(),
        )

    def without(self, at: int | None) -> "Edits":
        """All but the form of a column."""
        forms = {each: form for each, form in self.forms.items() if each != at}
        return replace(self, forms=forms, retyped=self.retyped & forms.keys())

    def names(self, file: SchemaFile) -> list[str]:
        """What they are about, in the words of the page."""
        found = [str(file.columns[at].get("name", "")) for at in self.forms]
        return found if self.rows is None else [*found, "the number of rows"]


_NO_EDITS = Edits()


def _form_of(call: Call, column: Mapping[str, Any], at: int) -> ColumnForm:
    """The form of a column, as it was sent; with the fields of a new type that was chosen."""
    end = f"-{at}"
    sent = {key.removesuffix(end): text for key, text in call.form.items() if key.endswith(end)}
    form = ColumnForm.sent(sent)
    if form.kind == column.get("type") or sent.get("shown_type") == form.kind:
        return form
    return ColumnForm.sent({**sent, **convert(column, form.kind)})


def show_schema(call: Call) -> Reply:
    """Show a schema."""
    file = _read(call, call.query)
    at = _number(call.query.get("column", ""))
    if "text" in call.query:
        return _text_page(call, call.query, file, file.text)
    is_open = at is not None and at < len(file.columns)
    forms = {at: ColumnForm.of(file.columns[at])} if is_open and at is not None else {}
    return _page(call, call.query, file, Edits(forms=forms))


def _page(
    call: Call,
    given: Mapping[str, str],
    file: SchemaFile,
    edits: Edits,
    *,
    error: str = "",
    dropped: Sequence[str] = (),
) -> Page:
    """Build the page of a schema.

    Args:
        call: The request.
        given: Its fields: the table and the schema.
        file: The schema.
        edits: What is not saved, and the forms that are open.
        error: Why a change was not saved.
        dropped: The rules that no longer applied after a change that was saved.
    """
    if file.schema is None:
        return _text_page(call, given, file, file.text, error=error)
    columns = [_column_view(at, each, file) for at, each in enumerate(file.columns)]
    unsaved = edits.unsaved(file)
    content = {
        **_shared_content(call, given, file),
        "columns": columns,
        "asked": [each for each in columns if each["questions"]],
        "alike": _alike(file),
        "empty": _empty_columns(file),
        "ready": _without_question(columns, file),
        "rows_text": str(_rows_guess(file) or "") if edits.rows is None else edits.rows,
        "rows_guess": _rows_guess(file),
        "rows_open": file.schema is not None and "rows_max" in file.schema.drafted,
        "lost_draft": _lost_draft(file),
        "forms": edits.forms,
        "unsaved": unsaved,
        "is_unsaved": bool(unsaved.names(file)),
        "types": TYPES,
        "outside": OUTSIDE,
        "table_questions": _table_questions(file),
        "open_rules": sum(not each.get("confirmed", True) for each in file.constraints),
        "constraints": [_constraint_view(at, each) for at, each in enumerate(file.constraints)],
        "error": error,
        "dropped": dropped,
    }
    return Page("schema.html", content, status=422 if error else 200)


def _shared_content(call: Call, given: Mapping[str, str], file: SchemaFile) -> dict[str, Any]:
    schema = given.get("schema", "")
    return {
        "table": given.get("table", ""),
        "schema": schema,
        "file": file,
        "open": 0 if file.schema is None else len(file.schema.drafted),
        "misfit": _misfit(call, given, file),
        "command": paste_text(call.space.root.path, plan_command(schema, records="10000")),
    }


def _text_page(
    call: Call, given: Mapping[str, str], file: SchemaFile, text: str, *, error: str = ""
) -> Page:
    """Show the whole text of a schema, alone: no other button could lose what is typed."""
    line = _LINE.search(error or file.error)
    content = {
        **_shared_content(call, given, file),
        "text": text,
        "error": error,
        "error_line": None if line is None else _numbered_line(text, int(line[1])),
    }
    return Page("schema_text.html", content, status=422 if error else 200)


def _change(call: Call, make: Callable[[SchemaFile, Edits], "_Change"]) -> Reply:
    """Make a change, unless the page is out of date; show the page with what is not saved."""
    file = _read_current(call)
    edits = Edits.sent(call, file)
    try:
        change = make(file, edits)
        text, dropped = without_broken_rules(change.text)
        new = file.write(text.text)
    except InputError as fault:
        return _page(call, call.form, file, edits, error=str(fault))
    kept = change.edits.unsaved(new)
    at = change.opened
    if not kept.names(new) and not dropped:
        return Redirect(_address(call, column="" if at is None else at) + f"#{change.anchor}")
    forms = {**kept.forms, **({} if at is None else {at: ColumnForm.of(new.columns[at])})}
    return _page(call, call.form, new, replace(kept, forms=forms), dropped=dropped)


@dataclass(frozen=True, kw_only=True)
class _Change:
    """A change of a schema.

    Attributes:
        text: The new text.
        edits: What stays unsaved.
        anchor: The part of the page that is shown then.
        opened: The column whose form is opened.
    """

    text: SchemaText
    edits: Edits
    anchor: str
    opened: int | None = None


def save(call: Call) -> Reply:
    """Save what is typed on the page; show the fields of a new type first."""
    file = _read_current(call)
    if (sent := Edits.sent(call, file)).retyped:
        return _page(call, call.form, file, sent)

    def make(file: SchemaFile, edits: Edits) -> _Change:
        text = file.edited
        for at, form in edits.forms.items():
            text = text.with_attribute(at, **form.values(file.columns[at]))
        if (rows := edits.unsaved(file).rows) is not None:
            text = _with_rows(text, rows)
        first = next(iter(edits.forms), None)
        return _Change(text=text, edits=_NO_EDITS, anchor="head" if first is None else f"c{first}")

    return _change(call, make)


def edit(call: Call) -> Reply:
    """Open or close the form of a column, or leave the page; what is not saved stays."""
    file, given = _read_current(call), _pressed(call)
    edits = Edits.sent(call, file).without(_number(given.get("close", "")))
    kept = edits.unsaved(file)
    names = kept.names(file)
    if "text" in given or "plan" in given:
        if names:
            error = f"{', '.join(names)}: save what you changed, or cancel it, then go on"
            return _page(call, call.form, file, kept, error=error)
        return Redirect(_address(call, text=1) if "text" in given else _address(call, "/plan"))
    opened = None if "close" in given else _require_column(call)
    at = opened if opened is not None else _number(given.get("close", ""))
    if not names:
        return Redirect(_address(call, column="" if opened is None else opened) + f"#c{at}")
    forms = {**kept.forms}
    if opened is not None:
        forms.setdefault(opened, ColumnForm.of(file.columns[opened]))
    return _page(call, call.form, file, replace(kept, forms=forms))


def show_fields(call: Call) -> Reply:
    """Show the fields of another type: a part of the page."""
    file, at = _read(call, call.form), _require_column(call)
    column = file.columns[at]
    form = _form_of(call, column, at)
    if form.kind == column.get("type"):
        form = ColumnForm.of(column)
    return Page("column_fields.html", {"form": form, "at": at, "outside": OUTSIDE})


def answer(call: Call) -> Reply:
    """Apply an answer to a question about a column, which also confirms it."""

    def make(file: SchemaFile, edits: Edits) -> _Change:
        at, name = _require_column(call), call.form.get("answer", "")
        column = file.columns[at]
        if name == "frequent":
            changes = gather_rare(column, _frequent_values(call, file, str(column.get("name"))))
        elif name == "own":
            changes = own_column(column)
        else:
            changes = apply_answer(name, column, file.questions_about(column))
        text = file.edited.with_attribute(at, **changes)
        if name == "unit":
            rows = call.form.get("max_rows_per_unit", "1")
            text = text.with_head(unit=column["name"], max_rows_per_unit=_number(rows) or 1)
        opened = at if name in _TO_LOOK_AT else None
        return _Change(text=text, edits=edits, anchor=f"c{at}", opened=opened)

    return _change(call, make)


def _frequent_values(call: Call, file: SchemaFile, column: str) -> frozenset[str]:
    """The texts of a column that are not rare, counted in the table. Confidential."""
    path = call.space.root.locate(call.form.get("table", ""))
    found = frequent_texts(path, column, file.schema)
    if not found:
        raise ConfigError(
            "no value of this column is frequent: leave it out, or describe it from a data "
            "dictionary"
        )
    return found


def confirm(call: Call) -> Reply:
    """Confirm a column, or everything that has no open question, with the guess of the rows."""

    def make(file: SchemaFile, edits: Edits) -> _Change:
        text, what = file.edited, call.form.get("what", "")
        if what == "alike":
            question = _require_question(call, file)
            for column in _asked_only(file, question):
                changes = apply_answer(answers_to(question, column)[0].name, column, [question])
                text = text.with_attribute(file.columns.index(column), **changes)
            return _Change(text=text, edits=edits, anchor="columns")
        if what == "ready":
            for at, column in enumerate(file.columns):
                if not file.is_confirmed(column) and not file.questions_about(column):
                    text = text.with_attribute(at, confirmed=True)
            if file.schema is not None and "rows_max" in file.schema.drafted:
                text = text.with_head(rows_max=_rows_guess(file), rows_max_confirmed=None)
            return _Change(text=text, edits=edits, anchor="columns")
        at = _require_column(call)
        return _Change(text=text.with_attribute(at, confirmed=True), edits=edits, anchor=f"c{at}")

    return _change(call, make)


def confirm_rows(call: Call) -> Reply:
    """Confirm the public guess of the number of rows, as it is typed."""

    def make(file: SchemaFile, edits: Edits) -> _Change:
        text = _with_rows(file.edited, edits.rows or "")
        return _Change(text=text, edits=replace(edits, rows=None), anchor="head")

    return _change(call, make)


def _with_rows(text: SchemaText, written: str) -> SchemaText:
    """Set the guess of the number of rows, which is then confirmed."""
    rows = written.replace(",", "").replace("_", "").strip()
    if not (rows.isascii() and rows.isdigit() and len(rows) <= _MAX_DIGITS):
        raise SchemaError("rows_max: write a whole number, at least 1")
    return text.with_head(rows_max=int(rows), rows_max_confirmed=None)


def change_constraint(call: Call) -> Reply:
    """Confirm or delete a constraint, or all that are not confirmed."""

    def make(file: SchemaFile, edits: Edits) -> _Change:
        text, places = file.edited, file.edited.places("constraint")
        if "all" in _pressed(call):
            rules = enumerate(file.constraints)
            chosen = [at for at, each in rules if not each.get("confirmed", True)]
        else:
            number = _number(_pressed(call).get("constraint", ""))
            chosen = [] if number is None else [number]
        if not chosen or max(chosen) >= len(places):
            raise ConfigError("there is no such constraint; open the schema again")
        delete = call.form.get("action") == "delete"
        for at in reversed(chosen):  # places before a deleted one stay as they are
            block = text.blocks[places[at]]
            changed = None if delete else block.with_value("confirmed", value=True)
            text = text.with_block(places[at], changed)
        return _Change(text=text, edits=edits, anchor="constraints")

    return _change(call, make)


def save_text(call: Call) -> Reply:
    """Save the whole text."""
    file = _read_current(call)
    text = call.form.get("text", "").replace("\r\n", "\n")
    try:
        file.write(text if text.endswith("\n") else f"{text}\n")
    except SchemaError as fault:
        return _text_page(call, call.form, file, text, error=str(fault))
    return Redirect(_address(call))


def _address(call: Call, path: str = "/schema", /, **more: str | int) -> str:
    """The address of a page about this table and this schema."""
    given = {name: call.form.get(name, "") for name in ("table", "schema")}
    return address(path, **given, **more)


def _misfit(call: Call, given: Mapping[str, str], file: SchemaFile) -> str:
    if file.schema is None:
        return ""
    return describe_misfit(call.space.root, given.get("table", ""), file.schema)


def _read(call: Call, given: Mapping[str, str]) -> SchemaFile:
    name = given.get("schema", "")
    path = call.space.root.locate(name)
    if not name.lower().endswith(".toml"):
        raise ConfigError("a schema is a file whose name ends with .toml; choose another one")
    return SchemaFile.read(path)


def _read_current(call: Call) -> SchemaFile:
    file = _read(call, call.form)
    file.require_version(call.form.get("version", ""))
    return file


def _pressed(call: Call) -> Mapping[str, str]:
    """What a button says of itself: in its address, as all buttons of the page share its form."""
    return {**call.form, **call.query}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _require_question(call: Call, file: SchemaFile) -> OpenQuestion:
    at = _number(_pressed(call).get("question", ""))
    if at is None or at >= len(file.questions):
        raise ConfigError("there is no such question; open the schema again")
    return file.questions[at]


def _require_column(call: Call) -> int:
    at = _number(_pressed(call).get("column", ""))
    if at is None or at >= len(_read(call, call.form).columns):
        raise ConfigError("there is no such column; open the schema again")
    return at


def _column_view(at: int, column: dict[str, Any], file: SchemaFile) -> dict[str, Any]:
    """What the row of a column shows."""
    name = str(column.get("name", ""))
    confirmed = file.is_confirmed(column)
    questions = file.questions_about(column)
    offered = {each.name for question in questions for each in answers_to(question, column)}
    places = file.edited_attributes
    return {
        "at": at,
        "name": name,
        "kind": TYPES.get(str(column.get("type")), str(column.get("type"))),
        "summary": summarize(column),
        "missing": [each or "(empty)" for each in column.get("missing", [])],
        "confirmed": confirmed,
        "drafted": confirmed and column.get("confirmed") == "draft",
        "questions": [
            (question_text(each, column), answers_to(each, column)) for each in questions
        ],
        "texts": column.get("values", []) if column.get("type") == "text" and questions else [],
        "codes": [] if confirmed or CODES.name in offered or not codes_of(column) else [CODES],
        "remarks": places[at].remarks if at < len(places) else (),
        "is_unit": file.document.get("unit") == name,
    }


def _table_questions(file: SchemaFile) -> list[str]:
    """Notes on the table as a whole, as long as something is not confirmed."""
    found = [each.plain_text for each in file.questions if not each.columns]
    return found if file.schema is not None and file.schema.drafted else []


def _without_question(columns: list[dict[str, Any]], file: SchemaFile) -> list[dict[str, Any]]:
    """The columns that need no look; none if a note is about columns that it does not name.

    None either if a private draft has lost its cost: no click may declare all of it public.
    """
    if any(each.hidden for each in file.questions) or _lost_draft(file):
        return []
    return [each for each in columns if not each["confirmed"] and not each["questions"]]


def _empty_columns(file: SchemaFile) -> list[str]:
    """The columns for which a private draft found no value."""
    if file.schema is None or file.schema.draft is None:
        return []
    empty = (each for each in file.columns if each.get("type") == "text" and not each.get("values"))
    return [str(each.get("name", "")) for each in empty]


def _alike(file: SchemaFile) -> list[dict[str, Any]]:
    """Questions that several columns share and have no other: one answer confirms all of them."""
    found = []
    for at, question in enumerate(file.questions):
        columns = _asked_only(file, question)
        texts = {question_text(question, each) for each in columns}
        if len(columns) >= _MIN_ALIKE and len(texts) == 1:
            [text] = texts
            names = [str(each.get("name", "")) for each in columns]
            label = answers_to(question, columns[0])[0].label
            found.append({"at": at, "text": text, "names": names, "label": label})
    return found


def _asked_only(file: SchemaFile, question: OpenQuestion) -> list[dict[str, Any]]:
    """The columns whose only open question is this one."""
    return [
        each
        for each in file.columns
        if each.get("name") in question.columns and file.questions_about(each) == [question]
    ]


def _lost_draft(file: SchemaFile) -> bool:
    """Whether a private draft is in use, but the section that states its cost was deleted."""
    schema = file.schema
    return schema is not None and schema.draft is None and bool(schema.drafted_privately)


def _rows_guess(file: SchemaFile) -> int | None:
    """The number in the field of the guess; one that is not confirmed is rounded up, as a draft is.

    A round number stands for all numbers of rows between it and the next lower one, 1, 2, 5, 10, …,
    so it does not reveal the exact one, even where it is equal to it.
    """
    if file.schema is None or "rows_max" not in file.schema.drafted:
        return None if file.schema is None else file.schema.rows_max
    return nice_above(file.schema.rows_max)


def _constraint_view(at: int, table: dict[str, Any]) -> dict[str, Any]:
    confirmed = table.get("confirmed", True) is True
    return {"at": at, "text": rule_sentence(table), "confirmed": confirmed}


def _numbered_line(text: str, number: int) -> tuple[int, str]:
    lines = text.split("\n")
    return number, lines[number - 1] if 0 < number <= len(lines) else ""
