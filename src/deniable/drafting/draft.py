"""draft_schema: draft a schema.toml from a table, with notes on what the user must decide."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any

from deniable.config import Config, Profile, options, require_small_delta
from deniable.data.polars_errors import polars_errors_as
from deniable.drafting.column_profile import OpenedTable, open_table, require_column
from deniable.drafting.description import (
    FROM_DATA,
    ColumnDraft,
    DraftField,
    Note,
    note_priority,
)
from deniable.drafting.private_draft import PrivateDraft, draft_privately
from deniable.drafting.relationship_drafts import (
    add_computed_columns,
    constraint_lines,
    constraint_notes,
    keep_accepted,
    surviving_relationships,
)
from deniable.drafting.relationships import Relationship, Relationships, find_relationships
from deniable.drafting.round_numbers import nice_above, nice_near
from deniable.drafting.toml_text import (
    comment_lines,
    commented_line,
    group_notes,
    numbered_lines,
    write_attribute,
)
from deniable.drafting.type_inference import guess_columns
from deniable.errors import BudgetError, ConfigError, DataError, InputError, InvariantError
from deniable.html import notebook_summary, table
from deniable.pipeline.run_plan import plan_run
from deniable.privacy.composition import Guarantee
from deniable.privacy.wording import caution
from deniable.randomness import Randomness, Secret
from deniable.schema.draft_cost import DraftCost, StatedDraftNoise
from deniable.schema.schema import Schema
from deniable.schema.toml_writer import write_value
from deniable.workers import Progress, no_progress

# Smaller tables get a note that they have few rows.
_MIN_ROWS_WITHOUT_NOTE = 100

# With the paper's profile, columns of more values get buckets.
_MAX_UNBUCKETED = 20
_BUCKETS_COMMENT = "about ten; read by the paper's estimators only"

_PLAIN_INTRODUCTION = (
    "Draft, read from the data: every bound and every value in it discloses something about the "
    "rows. Keep it as confidential as the table. Replace each by public knowledge (the "
    "questionnaire, the data dictionary), then set confirmed = true."
)
_PRIVATE_INTRODUCTION = (
    "Draft made with differential privacy. {} it discloses about any row "
    "is bounded by the ε and δ under [draft]. The total of every release that uses it covers it. "
    "Column names are assumed to be public, and so is whether the table is CSV; "
    "column types of Parquet files and data frames are not used."
)
_TEST_NOISE_COMMENT = "the noise came from a reproducible test source"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Drafted schema of a table.

    Attributes:
        text: The schema as TOML, with comments.
        notes: Decisions left to the user, the most important first. They disclose no more than
            the text.
        attributes: The description of each column.
        cost: Privacy cost of a private draft; None for a plain draft, which has no guarantee.
        rules: Number of drafted constraints.
        rules_left_out: Number of combinations that no row has and that are not drafted.
    """

    text: str
    notes: tuple[str, ...]
    attributes: tuple[ColumnDraft, ...]
    cost: Guarantee | None = None
    rules: int = 0
    rules_left_out: int = 0

    def _repr_html_(self) -> str:
        """Show the columns in a notebook; no value."""
        cost = "none: it is as confidential as the table"
        if self.cost is not None:
            cost = f"ε = {self.cost.epsilon:g}, δ = {self.cost.delta:g}"
        shown = table(["column", "type"], [[each.name, each.kind] for each in self.attributes])
        return notebook_summary(
            "Draft of a schema", {"guarantee": cost, "to decide": "see notes and text"}, shown
        )


def draft_schema(
    source: object,
    *,
    draft_epsilon: float | None = None,
    draft_delta: float = 1e-10,
    accept_large_delta: bool = False,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    profile: Profile = "default",
    header: bool | None = None,
    noise: Randomness | None = None,
    progress: Progress = no_progress,
) -> Draft:
    """Draft a schema for a table.

    Without ``draft_epsilon``, bounds and values are read from the data. Such a draft is for the
    data holder only, who replaces them by public knowledge.

    Args:
        source: Path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.
        draft_epsilon: ε of a private draft.
        draft_delta: δ of a private draft.
        accept_large_delta: Whether a δ above 1e-4 is accepted.
        unit: Column that identifies the person, if a person may have several rows.
        max_rows_per_unit: Maximum rows per person. A private draft ignores further rows.
        profile: With "paper", columns get ``buckets``, which only the paper's estimators read.
        header: Whether the first line of a CSV file holds the names of its columns. By default it
            does, and a line that looks like a record is asked about; a private draft judges it by
            itself. Without a header line, columns are named column_1, column_2, …
        noise: Source of noise, for tests. A reproducible source claims no privacy.
        progress: Called with a stage, the columns read and the total.

    Raises:
        DataError: The table cannot be read; or it has no records, and the draft is plain; or its
            header line may be missing.
        ConfigError: The table has no column ``unit``, or ``max_rows_per_unit`` is missing; or
            ``draft_delta`` is large.
        BudgetError: No noise meets (ε, δ).
        InvariantError: The draft would not be a valid schema.

    Privacy:
        Neighbours: as ``draft_privately``, with ``draft_epsilon``.
        Covers: with it, the whole draft. Without it nothing: the draft is as confidential as
            the table.
    """
    options()["profile"].require_allowed(profile)
    if draft_epsilon is not None:
        require_small_delta("draft_delta", draft_delta, accepted=accept_large_delta)
    opened = open_table(source, private=draft_epsilon is not None, header=header)
    _require_unit(opened, unit, max_rows_per_unit)
    fix = "Its message is not shown, as it may quote cells. Convert unusual columns to text."
    with polars_errors_as(DataError, f"{opened.label} cannot be drafted", fix=fix):
        if draft_epsilon is None:
            plain = _draft_plainly(
                opened, unit, max_rows_per_unit, header=header, profile=profile, progress=progress
            )
            return _require_valid(plain, opened.label)
        if header is None and opened.is_csv:
            opened.require_header()
        noise = Secret() if noise is None else noise
        private = draft_privately(
            opened,
            Guarantee(epsilon=draft_epsilon, delta=draft_delta),
            unit=unit,
            rows_per_unit=max_rows_per_unit,
            noise=noise,
            progress=progress,
        )
        if profile == "paper":
            private = replace(private, attributes=tuple(map(_with_buckets, private.attributes)))
        draft = _write_private(opened, private, unit, max_rows_per_unit, is_secret=noise.is_secret)
        return _require_valid(draft, opened.label)


def _require_unit(opened: OpenedTable, unit: str | None, rows_per_unit: int | None) -> None:
    """Raise an error unless the unit is a column, and the rows per unit are those of one."""
    if unit is not None:
        require_column(opened, unit)
    if rows_per_unit is not None and (unit is None or rows_per_unit < 1):
        raise ConfigError("max_rows_per_unit must be at least 1, and needs unit, the person column")


def _draft_plainly(
    opened: OpenedTable,
    unit: str | None,
    rows_per_unit: int | None,
    *,
    header: bool | None,
    profile: Profile,
    progress: Progress,
) -> Draft:
    columns = opened.read(progress)
    if header is None and opened.is_csv:
        opened.require_header(columns)
    guesses = guess_columns(columns, unit)
    progress("compare columns", 0, 1)
    learnt = [guess.draft for guess in guesses]
    related = find_relationships(columns, guesses)
    related = surviving_relationships(related, columns, learnt)

    def draft_with(kept: Sequence[Relationship]) -> Draft:
        attributes = add_computed_columns(learnt, related.only(kept))
        if profile == "paper":
            attributes = tuple(map(_with_buckets, attributes))
        unit_lines = _unit_lines(attributes, unit, rows_per_unit)
        head = [*_head_lines(opened), *_rows_lines(columns[0].rows), *unit_lines]
        return _write_plain(columns[0].rows, head, attributes, related.only(kept))

    kept = keep_accepted(related.all, lambda some: _can_be_planned(draft_with(some)))
    progress("compare columns", 1, 1)
    return draft_with(kept)


def _write_plain(
    rows: int, head: Sequence[str], attributes: Sequence[ColumnDraft], related: Relationships
) -> Draft:
    """Write a draft without privacy."""
    notes = tuple(_collect_notes(rows, attributes, related))
    text = _write_draft(_PLAIN_INTRODUCTION, notes, head, attributes)
    text += "".join(f"\n{line}" for line in constraint_lines(related))
    return Draft(
        text=text.rstrip("\n") + "\n",
        notes=notes,
        attributes=tuple(attributes),
        rules=len(related.orders) + len(related.exclusions),
        rules_left_out=related.left_out,
    )


def _can_be_planned(draft: Draft) -> bool:
    """Whether a draft parses, and a run of its columns with the default options can be planned."""
    try:
        # Whether ε and δ are left after a private draft is for the options of the run to decide.
        schema = replace(Schema.parse(draft.text), draft=None)
        plan_run(schema, Config(accept_drafted_schema=True))
    except BudgetError:
        return True
    except InputError:
        return False
    return True


def _require_valid(draft: Draft, label: str) -> Draft:
    """Raise an InvariantError unless a draft can be planned, or has no column to learn."""
    if not any(each.is_modelled for each in draft.attributes) or _can_be_planned(draft):
        return draft
    # What is wrong may quote a value of the table.
    raise InvariantError(
        f"{label}: the schema that was drafted is not valid. This is a bug of deniable, not of "
        "the table, and nothing was written. Please report it, without the table, and write the "
        "schema by hand or leave out columns until init works"
    )


def _with_buckets(draft: ColumnDraft) -> ColumnDraft:
    """Add about ten buckets of one width to a column of more than twenty numbers, days or bins.

    Bins of no one width keep the default: ten buckets of equally many bins.
    """
    fields: dict[str, Any] = {field.key: field.value for field in draft.fields}
    bins, unit = fields.get("bins", {}), fields.get("step")
    if draft.kind == "ordered":
        count, unit = len(fields["values"]), 1
    elif draft.is_modelled and "min" in fields and bins.keys() <= {"width", "alone"}:
        length = fields["max"] - fields["min"]
        if draft.kind == "date":
            unit, length = 1, length.days
        elif draft.kind == "datetime":
            unit, length = fields["step_seconds"], int(length.total_seconds())
        elif "decimals" in fields:
            unit = Decimal(1).scaleb(-fields["decimals"])
        unit = bins.get("width", unit or 1)
        count = int(length // unit) + 1
    else:
        return draft
    if count <= _MAX_UNBUCKETED:
        return draft
    width = DraftField("buckets", {"width": nice_near(count / 10) * unit}, _BUCKETS_COMMENT)
    return replace(draft, fields=(*draft.fields, width))


def _write_draft(
    introduction: str, notes: Sequence[str], head: Sequence[str], attributes: Sequence[ColumnDraft]
) -> str:
    """Write the TOML text: introduction and notes as comments, then keys and columns."""
    to_decide = ["# To decide:", *numbered_lines(notes)] if notes else ["# Nothing to decide."]
    text = "\n".join([*comment_lines(introduction), "#", *to_decide, "", *head, ""])
    return text + "".join(f"\n{write_attribute(attribute)}" for attribute in attributes)


def _collect_notes(
    rows: int, attributes: Sequence[ColumnDraft], related: Relationships
) -> list[str]:
    notes: list[str] = []
    if rows < _MIN_ROWS_WITHOUT_NOTE:
        notes.append(
            Note(
                f"few rows ({rows:,}): they show little of what a column may hold, and noise will "
                "hide relations between columns.",
                priority=0,
            )
        )
    if not any(attribute.is_modelled for attribute in attributes):
        text = "no column is left for the model: describe at least one that varies."
        notes.append(Note(text, priority=0))
    notes += group_notes(attributes)
    notes += constraint_notes(related)
    return sorted(notes, key=note_priority)


def _unit_lines(
    attributes: Sequence[ColumnDraft], unit: str | None, rows_per_unit: int | None
) -> list[str]:
    """Write the unit column: the one given, or a proposal as a comment."""
    if unit is not None:
        return [f"unit = {write_value(unit)}", f"max_rows_per_unit = {rows_per_unit or 1}"]
    for attribute in attributes:
        if attribute.may_be_unit:
            return [
                "# If one person has several rows:",
                f"# unit = {write_value(attribute.name)}",
                "# max_rows_per_unit = 1",
            ]
    return []


def _head_lines(opened: OpenedTable) -> list[str]:
    """Write the format, and that the file has no header line, if so."""
    if opened.has_header:
        return ["format = 1"]
    comment = "columns in the order of the file; rename them here"
    return ["format = 1", commented_line("header = false", comment)]


def _rows_lines(rows: int) -> list[str]:
    """Write the number of rows, rounded up."""
    guess = f"rows_max = {nice_above(rows):_}"
    return [
        commented_line(guess, f"{FROM_DATA}, rounded up: is it public?"),
        commented_line(
            "rows_max_confirmed = false", "rows_max only steers how the budget is split"
        ),
    ]


def _draft_cost(private: PrivateDraft, unit: str | None) -> DraftCost:
    """The cost of a private draft and, for single rows, the noise behind it."""
    noise = None if private.mechanism is None else StatedDraftNoise(**asdict(private.mechanism))
    cost = private.cost
    return DraftCost(epsilon=cost.epsilon, delta=cost.delta, unit=unit, noise=noise)


def _introduction(private: PrivateDraft, unit: str | None) -> str:
    """What the first lines say: it may be published, unless its ε or δ promises next to nothing."""
    rows = nice_above(private.rows) if private.rows else None
    words = caution(private.cost, rows=rows, unit=unit, of_model=False)
    stays = f"{words} Keep it as confidential as the table. What"
    return _PRIVATE_INTRODUCTION.format(stays if words else "It may be published: what")


def _write_private(
    opened: OpenedTable,
    private: PrivateDraft,
    unit: str | None,
    rows_per_unit: int | None,
    *,
    is_secret: bool,
) -> Draft:
    """Write a private draft; claim its guarantee only if the noise is secret."""
    head = _head_lines(opened)
    if private.rows:
        rows_max = f"rows_max = {nice_above(private.rows):_}"
        head.append(commented_line(rows_max, "from a noisy count, rounded up"))
        head.append(f"rows_max_confirmed = {write_value('draft' if is_secret else False)}")
    if unit is not None:
        head += [f"unit = {write_value(unit)}", f"max_rows_per_unit = {rows_per_unit}"]
    attributes = private.attributes
    introduction = _introduction(private, unit)
    if is_secret:
        head += ["", *_draft_cost(private, unit).lines()]
    else:
        attributes = tuple(
            replace(each, confirmed=False, origin=_TEST_NOISE_COMMENT) for each in attributes
        )
        introduction = f"No privacy is claimed: {_TEST_NOISE_COMMENT}."
    return Draft(
        text=_write_draft(introduction, private.notes, head, attributes),
        notes=private.notes,
        attributes=attributes,
        cost=private.cost if is_secret else None,
    )
