"""The first screen: pick a table, look at it, say whose rows these are, and draft its schema."""

from pathlib import PurePosixPath

from deniable.errors import ConfigError
from deniable.studio.equivalent_command import init_command, paste_text
from deniable.studio.root_folder import TABLE_SUFFIXES, RootFolder
from deniable.studio.run_store import Step
from deniable.studio.spent_budget import spent_on
from deniable.studio.table_facts import count_rows, size_text, table_facts
from deniable.studio.workspace import Call, Page, Redirect, Reply, address

DRAFT_EPSILON = "0.1"


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
    table = call.query.get("path", "")
    path = call.space.root.locate(table)
    facts = table_facts(path)
    out = draft_path(call.space.root, table)
    return Page(
        "table.html",
        {
            "table": table,
            "facts": facts,
            "size": size_text(facts.size),
            "schemas": _schemas_next_to(call.space.root, table),
            "out": out,
            "draft_epsilon": DRAFT_EPSILON,
            "spent": spent_on(call.space, table),
            "command": paste_text(call.space.root.path, init_command(table, out=out)),
            "private_command": paste_text(
                call.space.root.path, init_command(table, out=out, epsilon=DRAFT_EPSILON)
            ),
        },
    )


def show_row_count(call: Call) -> Reply:
    """Count the rows of a table: a part of its page, as it may take seconds."""
    table = call.query.get("path", "")
    rows = count_rows(call.space.root.locate(table))
    return Page("row_count.html", {"rows": rows, "table": table})


def start_draft(call: Call) -> Reply:
    """Start to draft a schema: plainly, or with differential privacy."""
    root, form = call.space.root, call.form
    table = form.get("path", "")
    path = root.locate(table)
    unit = form.get("unit", "") if form.get("owner") == "unit" else ""
    if form.get("owner") == "unit" and not unit:
        raise ConfigError("choose the column that says whose rows these are, then draft again")
    private = form.get("how") == "private"
    epsilon = form.get("draft_epsilon", "").strip() if private else ""
    if private and not epsilon:
        raise ConfigError("a private draft needs its ε: write a number such as 0.1")
    out = draft_path(root, table)
    rows = form.get("max_rows_per_unit", "").strip()
    command = init_command(table, out=out, epsilon=epsilon, unit=unit, rows_per_unit=rows)
    run = call.space.store.create(
        kind="draft",
        table=table,
        schema=out,
        out=out,
        steps=(Step(name="Draft the schema", arguments=command),),
        table_size=path.stat().st_size,
        epsilon=epsilon or None,
        delta=1e-10 if private else None,
    )
    call.space.control.begin(run)
    return Redirect(address(f"/run/{run.id}"))


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
    """The schemas in the folder of a table."""
    folder = PurePosixPath(table).parent.as_posix().removeprefix(".")
    return [each.path for each in root.entries(folder) if each.kind == "schema"]
