"""The second screen: the schema as a table that can be edited, a row for each column."""

import re
from collections.abc import Mapping
from typing import Any

from deniable.drafting.round_numbers import nice_above
from deniable.errors import ConfigError, SchemaError
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
    questions_about,
)
from deniable.studio.rule_words import rule_sentence
from deniable.studio.schema_file import SchemaFile
from deniable.studio.table_facts import describe_misfit, frequent_texts
from deniable.studio.workspace import Call, Page, Redirect, Reply, address

# Digits of a number of rows: no table has more.
_MAX_DIGITS = 15
# Answers after which the column is shown to be looked at, as it is not confirmed.
_TO_LOOK_AT = ("missing", "value", "edit", "frequent", "own", "codes")
# Columns that one answer confirms at least.
_MIN_ALIKE = 2
_LINE = re.compile(r"\(at line (\d+)")


def show_schema(call: Call) -> Reply:
    """Show a schema."""
    return schema_page(call, dict(call.query), _read(call, call.query))


def schema_page(
    call: Call,
    given: Mapping[str, str],
    file: SchemaFile,
    *,
    form: ColumnForm | None = None,
    text: str | None = None,
    error: str = "",
    is_unsaved: bool = False,
) -> Page:
    """Build the page of a schema.

    Args:
        call: The request.
        given: Its fields: the table, the schema, and the column that is being edited.
        file: The schema.
        form: The form of that column, as it was sent.
        text: The whole text, as it was sent.
        error: Why a change was not saved.
        is_unsaved: A type was chosen, and its fields are shown for the first time.
    """
    columns = [_column_view(at, each, file) for at, each in enumerate(file.columns)]
    edited = _number(given.get("column", ""))
    if edited is not None and edited < len(columns) and form is None:
        form = ColumnForm.of(file.columns[edited])
    schema = given.get("schema", "")
    content = {
        "table": given.get("table", ""),
        "schema": schema,
        "file": file,
        "misfit": _misfit(call, given, file),
        "columns": columns,
        "asked": [each for each in columns if each["questions"]],
        "alike": _alike(file),
        "empty": _empty_columns(file),
        "ready": _without_question(columns, file),
        "open": _open_entries(file),
        "rows_guess": _rows_guess(file),
        "edited": edited,
        "form": form,
        "types": TYPES,
        "outside": OUTSIDE,
        "table_questions": _table_questions(file),
        "open_rules": sum(not each.get("confirmed", True) for each in file.constraints),
        "constraints": [_constraint_view(at, each) for at, each in enumerate(file.constraints)],
        "error": error,
        "is_unsaved": is_unsaved,
        "command": paste_text(call.space.root.path, plan_command(schema, records="10000")),
        **_text_content(given, file, text, error),
    }
    return Page("schema.html", content, status=422 if error else 200)


def _misfit(call: Call, given: Mapping[str, str], file: SchemaFile) -> str:
    if file.schema is None:
        return ""
    return describe_misfit(call.space.root, given.get("table", ""), file.schema)


def _text_content(
    given: Mapping[str, str], file: SchemaFile, text: str | None, error: str
) -> dict[str, Any]:
    """The text of the file, or as it was sent, and the line that an error names."""
    shown = text if text is not None else file.text
    line = _LINE.search(error or file.error)
    return {
        "shown_text": shown,
        "as_text": text is not None or "text" in given or file.schema is None,
        "error_line": None if line is None else _numbered_line(shown, int(line[1])),
    }


def save_column(call: Call) -> Reply:
    """Save the form of a column; show it again if it is not valid, or its type was changed."""
    file, at = _read_current(call), _require_column(call)
    column = file.columns[at]
    form = ColumnForm.sent(call.form)
    is_new_type = form.kind != column.get("type")
    if is_new_type and call.form.get("shown_type") != form.kind:
        # The page has the fields of the old type: show those of the new one.
        form = ColumnForm.sent({**call.form, **convert(column, form.kind)})
        if form.keys and call.form.get("action") != "save-as-is":
            return schema_page(call, call.form, file, form=form, is_unsaved=True)
    try:
        text = file.edited.with_attribute(at, **form.values(column)).text
        file.write(text)
    except SchemaError as fault:
        return schema_page(call, call.form, file, form=form, error=str(fault))
    return _back(call, f"c{at}")


def show_fields(call: Call) -> Reply:
    """Show the fields of another type: a part of the page."""
    file, at = _read(call, call.form), _require_column(call)
    kind = call.form.get("type", "")
    column = file.columns[at]
    form = ColumnForm.of(column)
    if kind != column.get("type"):
        form = ColumnForm.sent({**call.form, **convert(column, kind)})
    content = {"form": form, "types": TYPES, "outside": OUTSIDE, "file": file, "column": column}
    return Page("column_fields.html", content)


def answer(call: Call) -> Reply:
    """Apply an answer to a question about a column, which also confirms it."""
    file, at = _read_current(call), _require_column(call)
    column = file.columns[at]
    name = call.form.get("answer", "")
    questions = questions_about(column, file.questions)
    if name == "frequent":
        changes = gather_rare(column, _frequent_values(call, str(column.get("name"))))
    else:
        changes = own_column(column) if name == "own" else apply_answer(name, column, questions)
    text = file.edited.with_attribute(at, **changes)
    if name == "unit":
        rows = call.form.get("max_rows_per_unit", "1")
        text = text.with_head(unit=column["name"], max_rows_per_unit=_number(rows) or 1)
    reply = _save(call, file, text.text, f"c{at}")
    if name in _TO_LOOK_AT and isinstance(reply, Redirect):
        given = {key: call.form.get(key, "") for key in ("table", "schema")}
        return Redirect(address("/schema", **given, column=at) + f"#c{at}")
    return reply


def _frequent_values(call: Call, column: str) -> frozenset[str]:
    """The texts of a column that are not rare, counted in the table. Confidential."""
    found = frequent_texts(call.space.root.locate(call.form.get("table", "")), column)
    if not found:
        raise ConfigError(
            "no value of this column is frequent: leave it out, or describe it from a data "
            "dictionary"
        )
    return found


def confirm(call: Call) -> Reply:
    """Confirm a column, or everything that has no open question, with the guess of the rows."""
    file = _read_current(call)
    text, what = file.edited, call.form.get("what", "")
    if what == "alike":
        question = _require_question(call, file)
        for column in _asked_only(file, question):
            changes = apply_answer(answers_to(question, column)[0].name, column, [question])
            text = text.with_attribute(file.columns.index(column), **changes)
        return _save(call, file, text.text, "columns")
    if what == "ready":
        for at, column in enumerate(file.columns):
            if not column.get("confirmed", True) and not questions_about(column, file.questions):
                text = text.with_attribute(at, confirmed=True)
        if file.schema is not None and not file.schema.rows_max_confirmed:
            text = text.with_head(rows_max=_rows_guess(file), rows_max_confirmed=None)
        return _save(call, file, text.text, "columns")
    at = _require_column(call)
    return _save(call, file, text.with_attribute(at, confirmed=True).text, f"c{at}")


def save_rows(call: Call) -> Reply:
    """Save the public guess of the number of rows, and confirm it."""
    file = _read_current(call)
    rows = call.form.get("rows_max", "").replace(",", "").replace("_", "").strip()
    if not (rows.isascii() and rows.isdigit() and len(rows) <= _MAX_DIGITS):
        message = "rows_max: write a whole number, at least 1"
        return schema_page(call, call.form, file, error=message)
    text = file.edited.with_head(rows_max=int(rows), rows_max_confirmed=None)
    return _save(call, file, text.text, "head")


def change_constraint(call: Call) -> Reply:
    """Confirm or delete a constraint, or all that are not confirmed."""
    file = _read_current(call)
    edited, places = file.edited, file.edited.places("constraint")
    if "all" in call.form:
        chosen = [at for at, each in enumerate(file.constraints) if not each.get("confirmed", True)]
    else:
        at = _number(call.form.get("constraint", ""))
        chosen = [] if at is None else [at]
    if not chosen or max(chosen) >= len(places):
        raise ConfigError("there is no such constraint; open the schema again")
    delete = call.form.get("action") == "delete"
    for at in reversed(chosen):  # places before a deleted one stay as they are
        block = edited.blocks[places[at]]
        changed = None if delete else block.with_value("confirmed", value=True)
        edited = edited.with_block(places[at], changed)
    return _save(call, file, edited.text, "constraints")


def save_text(call: Call) -> Reply:
    """Save the whole text."""
    file = _read_current(call)
    text = call.form.get("text", "").replace("\r\n", "\n")
    try:
        file.write(text if text.endswith("\n") else f"{text}\n")
    except SchemaError as fault:
        return schema_page(call, call.form, file, text=text, error=str(fault))
    return _back(call, "")


def _save(call: Call, file: SchemaFile, text: str, anchor: str) -> Reply:
    try:
        file.write(text)
    except SchemaError as fault:
        return schema_page(call, call.form, file, error=str(fault))
    return _back(call, anchor)


def _back(call: Call, anchor: str) -> Redirect:
    given = {name: call.form.get(name, "") for name in ("table", "schema")}
    return Redirect(address("/schema", **given) + (f"#{anchor}" if anchor else ""))


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


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def _require_question(call: Call, file: SchemaFile) -> OpenQuestion:
    at = _number(call.form.get("question", ""))
    if at is None or at >= len(file.questions):
        raise ConfigError("there is no such question; open the schema again")
    return file.questions[at]


def _require_column(call: Call) -> int:
    at = _number(call.form.get("column", ""))
    if at is None or at >= len(_read(call, call.form).columns):
        raise ConfigError("there is no such column; open the schema again")
    return at


def _column_view(at: int, column: dict[str, Any], file: SchemaFile) -> dict[str, Any]:
    """What the row of a column shows."""
    name = str(column.get("name", ""))
    confirmed = column.get("confirmed", True) is True
    questions = questions_about(column, file.questions)
    offered = {each.name for question in questions for each in answers_to(question, column)}
    places = file.edited_attributes
    return {
        "at": at,
        "name": name,
        "kind": TYPES.get(str(column.get("type")), str(column.get("type"))),
        "summary": summarize(column),
        "missing": [each or "(empty)" for each in column.get("missing", [])],
        "confirmed": confirmed,
        "drafted": file.schema is not None and file.schema.draft is not None,
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
    """The columns that need no look; none if a note is about columns that it does not name."""
    if any(each.hidden for each in file.questions):
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
        if each.get("name") in question.columns
        and questions_about(each, file.questions) == [question]
    ]


def _open_entries(file: SchemaFile) -> int:
    return 0 if file.schema is None else len(file.schema.drafted)


def _rows_guess(file: SchemaFile) -> int | None:
    """The number in the field of the guess; one that is not confirmed is rounded up, as a draft is.

    A round number stands for all numbers of rows between it and the next lower one, 1, 2, 5, 10, …,
    so it does not reveal the exact one, even where it is equal to it.
    """
    if file.schema is None or file.schema.rows_max_confirmed:
        return None if file.schema is None else file.schema.rows_max
    return nice_above(file.schema.rows_max)


def _constraint_view(at: int, table: dict[str, Any]) -> dict[str, Any]:
    confirmed = table.get("confirmed", True) is True
    return {"at": at, "text": rule_sentence(table), "confirmed": confirmed}


def _numbered_line(text: str, number: int) -> tuple[int, str]:
    lines = text.split("\n")
    return number, lines[number - 1] if 0 < number <= len(lines) else ""
