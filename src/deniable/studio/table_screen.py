"""The first screen: choose a table, view it, name the person column, and draft its schema."""

import math
from collections.abc import Mapping
from pathlib import PurePosixPath

from deniable.errors import ConfigError
from deniable.studio.equivalent_command import init_command, paste_text
from deniable.studio.root_folder import TABLE_SUFFIXES, RootFolder
from deniable.studio.run_store import Step
from deniable.studio.spent_budget import spent_on
from deniable.studio.table_facts import (
    count_rows,
    size_text,
    table_facts,
    table_hash,
)
from deniable.studio.workspace import Call, Page, Redirect, Reply, address

DRAFT_EPSILON = "0.3"
# The default of ``init --draft-delta``.
DRAFT_DELTA = 1e-10


def show_folder(call: Call) -> Reply:
    """List the folders and tables of a folder."""
    folder = call.query.get("folder", "")
    if call.space.first_table and "folder" not in call.query:
        return Redirect(address("/table", path=call.space.first_table))
    listed = [each for each in call.space.root.entries(folder) if each.kind != "schema"]
    entries = [(each, size_text(each.size) if each.kind == "table" else "") for each in listed]
    up = None if not call.space.root.parts(folder) else str(PurePosixPath(folder).parent)
    content = {"folder": folder, "up": None if up is None else up.strip("."), "entries": entries}
    command = paste_text(call.space.root.path, ("init", "TABLE", "--out", "schema.toml"))
    return Page("folder.html", {**content, "command": command})


def show_table(call: Call) -> Reply:
    """Show the columns, the size and the first rows of a table, and what will be asked."""
    return _table_page(call, call.query)


def _table_page(call: Call, given: Mapping[str, str], *, error: str = "") -> Page:
    table = given.get("path", "")
    path = call.space.root.locate(table)
    header = given.get("header", "")
    facts = table_facts(path, header)
    return Page(
        "table.html",
        {
            "table": table,
            "facts": facts,
            "size": size_text(facts.size),
            "rows": count_rows(path, header) if "count" in given else None,
            "schemas": _schemas_next_to(call.space.root, table),
            "spent": spent_on(call.space, table),
            "error": error,
            "given": {"draft_epsilon": DRAFT_EPSILON, "max_rows_per_unit": "1", **given},
            **_draft_content(call, given),
        },
        status=422 if error else 200,
    )


def _draft_content(call: Call, given: Mapping[str, str]) -> dict[str, str]:
    """The command that drafts the schema with the options of the form, and the file it writes."""
    out = draft_path(call.space.root, given.get("path", ""))
    return {"out": out, "command": paste_text(call.space.root.path, _draft_command(given, out))}


def _draft_command(given: Mapping[str, str], out: str) -> tuple[str, ...]:
    private = given.get("how") == "private"
    return init_command(
        given.get("path", ""),
        out=out,
        epsilon=given.get("draft_epsilon", "").strip() if private else "",
        unit=given.get("unit", "") if given.get("owner") == "unit" else "",
        rows_per_unit=given.get("max_rows_per_unit", "").strip(),
        header=given.get("header", ""),
    )


def show_draft_command(call: Call) -> Reply:
    """Show the command of a draft with the options of the form: a part of the page."""
    call.space.root.locate(call.form.get("path", ""))
    return Page("command.html", _draft_content(call, call.form))


def show_row_count(call: Call) -> Reply:
    """Count the rows of a table: a part of its page, as it may take seconds."""
    path = call.space.root.locate(call.query.get("path", ""))
    rows = count_rows(path, call.query.get("header", ""))
    return Page("row_count.html", {"rows": rows})


def start_draft(call: Call) -> Reply:
    """Start to draft a schema: plainly, or with differential privacy."""
    root, form = call.space.root, call.form
    table, private = form.get("path", ""), form.get("how") == "private"
    path = root.locate(table)
    if table_facts(path, form.get("header", "")).may_lack_header:
        return _table_page(call, form, error="Say first whether the first line holds the names.")
    if form.get("owner") == "unit" and not form.get("unit"):
        return _table_page(call, form, error="Choose the column that identifies the person.")
    if private and not _is_positive(form.get("draft_epsilon", "")):
        return _table_page(call, form, error="Write the ε of the draft as a number, such as 0.3.")
    out = draft_path(root, table)
    run = call.space.store.create(
        kind="draft",
        table=table,
        schema=out,
        out=out,
        steps=(Step(name="Draft the schema", arguments=_draft_command(form, out)),),
        table_size=path.stat().st_size,
        table_hash=table_hash(path) if private else "",
        epsilon=form.get("draft_epsilon", "").strip() if private else None,
        delta=DRAFT_DELTA if private else None,
    )
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


def _is_positive(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def draft_path(root: RootFolder, table: str) -> str:
    """A free name for the schema of a table, next to it."""
    name = PurePosixPath(table).name
    for suffix in sorted(TABLE_SUFFIXES, key=len, reverse=True):
        if name.lower().endswith(suffix):
            name = name[: -len(suffix)]
            break
    parent = PurePosixPath(table).parent
    for number in range(1, 1000):
        more = "" if number == 1 else f"-{number}"
        out = (parent / f"{name}.schema{more}.toml").as_posix()
        if not root.new_path(out).exists():
            return out
    raise ConfigError(f"there are too many schemas next to {table}; delete some")


def _schemas_next_to(root: RootFolder, table: str) -> list[str]:
    """The schema files in the folder of a table; a run says so if one does not fit it."""
    folder = PurePosixPath(table).parent.as_posix().removeprefix(".")
    return [each.path for each in root.entries(folder) if each.kind == "schema"]
