"""draft_schema: a table → the text of a first schema.toml, and what is left to decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from deniable.drafting.attributes import READ, Described, Guess
from deniable.drafting.bounds import nice_above
from deniable.drafting.columns import Column, Opened, open_table, require_column
from deniable.drafting.hints import Hints, find_hints
from deniable.drafting.kinds import guess, guess_unit
from deniable.drafting.lines import by_note, comment, numbered, write_attribute, write_value
from deniable.drafting.private import Bought, draft_privately
from deniable.errors import ConfigError
from deniable.privacy.composition import Guarantee
from deniable.randomness import Randomness, Secret

_FEW_ROWS = 100


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A first description of a table.

    Attributes:
        text: The schema as TOML, with comments.
        notes: What is left to decide. They show no more than the text does.
        attributes: What the text says of each column.
        cost: What a private draft has cost; None of a plain one, which promises nothing.
    """

    text: str
    notes: tuple[str, ...]
    attributes: tuple[Described, ...]
    cost: Guarantee | None = None


def draft_schema(
    source: object,
    *,
    draft_epsilon: float | None = None,
    draft_delta: float = 1e-9,
    unit: str | None = None,
    max_rows_per_unit: int | None = None,
    noise: Randomness | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Draft:
    """Return a first schema for a table.

    Without ``draft_epsilon`` it is read off the data: bounds, values and all. It is for the eyes
    of the data holder, who replaces what the data said by what everybody may know.

    Args:
        source: The path of a .csv, .csv.gz or .parquet file; or a pandas DataFrame, a polars
            DataFrame or LazyFrame, an Arrow Table.
        draft_epsilon: ε of a private draft.
        draft_delta: δ of the same.
        unit: The column that names the person, where one has several rows.
        max_rows_per_unit: The most rows of one person. A private draft leaves further ones out.
        noise: Where the noise comes from; for tests. Without the system's, nothing is claimed.
        watch: Is told how many columns were read, and of how many.

    Raises:
        DataError: The table cannot be read, or has no records.
        ConfigError: There is no such unit, or a private draft lacks its ``max_rows_per_unit``.
        BudgetError: The draft cannot be had for (ε, δ).

    Privacy:
        Neighbours: as ``draft_privately``, with ``draft_epsilon``.
        Covers: with it, the whole draft. Without it nothing: the draft is as confidential as
            the table.
    """
    opened = open_table(source)
    if unit is not None:
        require_column(opened, unit)
    if max_rows_per_unit is not None and (unit is None or max_rows_per_unit < 1):
        raise ConfigError("max_rows_per_unit is at least 1, and needs unit, the person's column")
    if draft_epsilon is None:
        return _plain_draft(opened, unit, max_rows_per_unit, watch)
    limit = Guarantee(epsilon=draft_epsilon, delta=draft_delta)
    source_of_noise = Secret() if noise is None else noise
    bought = draft_privately(
        opened,
        limit,
        unit=unit,
        rows_per_unit=max_rows_per_unit,
        noise=source_of_noise,
        watch=watch,
    )
    return _private_draft(bought, unit, max_rows_per_unit, is_secret=source_of_noise.is_secret)


def _plain_draft(
    opened: Opened,
    unit: str | None,
    rows_per_unit: int | None,
    watch: Callable[[int, int], None] | None,
) -> Draft:
    columns = opened.read(watch)
    guesses = [guess_unit(c) if c.name == unit else guess(c) for c in columns]
    hints = find_hints(columns, guesses)
    attributes = tuple(_with_hints(one.described, hints) for one in guesses)
    notes = tuple(_notes(columns, attributes, hints))
    rows = nice_above(columns[0].rows)
    head = [
        "format = 1",
        f"rows_max = {rows:_}".ljust(34) + f"# {READ}, rounded up: is it public?",
        "rows_max_confirmed = false".ljust(34) + "# it steers how noise is shared out, no more",
        *_unit_lines(columns, guesses, unit, rows_per_unit),
    ]
    text = "\n".join([*_INTRODUCTION, *_left(notes), "", *head, ""])
    text += "".join(f"\n{write_attribute(attribute)}" for attribute in attributes)
    text += "".join(f"\n{line}" for line in _order_lines(hints))
    return Draft(text=text.rstrip("\n") + "\n", notes=notes, attributes=attributes)


_INTRODUCTION = (
    *comment(
        "A draft, read off the data: every bound and every value in it tells something about the "
        "rows. Keep it as confidential as the table. Replace what the data said by what everybody "
        "may know (the questionnaire, the data dictionary), and set confirmed = true where you "
        "did."
    ),
    "#",
)


def _left(notes: Sequence[str]) -> list[str]:
    if not notes:
        return comment("Nothing else stood out.")
    return ["# Left to decide:", *numbered(notes)]


def _with_hints(described: Described, hints: Hints) -> Described:
    return described.plus(
        remarks=tuple(hints.remarks.get(described.name, ())),
        notes=tuple(hints.notes.get(described.name, ())),
    )


def _notes(columns: Sequence[Column], attributes: Sequence[Described], hints: Hints) -> list[str]:
    notes = []
    if columns[0].rows < _FEW_ROWS:
        notes.append(
            f"so few rows ({columns[0].rows:,}) say little about what a column may hold, and noise "
            "will drown what they say together."
        )
    if not any(attribute.is_learnt for attribute in attributes):
        notes.append("no column is left that can be learnt: describe at least one that varies.")
    notes += by_note(attributes)
    if hints.orders:
        notes.append(
            "some columns are never above others, in any row: such orders stand at the end, as "
            "comments. Keep those that must hold."
        )
    return notes


def _unit_lines(
    columns: Sequence[Column],
    guesses: Sequence[Guess],
    unit: str | None,
    rows_per_unit: int | None,
) -> list[str]:
    """Return which column names the person: as said, or proposed in a comment."""
    by_name = {column.name: column for column in columns}
    if unit is not None:
        return [f"unit = {write_value(unit)}", f"max_rows_per_unit = {rows_per_unit or 1}"]
    for one in guesses:
        column = by_name[one.described.name]
        if one.described.kind == "identifier" and any("unit =" in n for n in one.described.notes):
            return [
                "# If one person has several rows:",
                f"# unit = {write_value(column.name)}",
                "# max_rows_per_unit = 1",
            ]
    return []


def _order_lines(hints: Hints) -> list[str]:
    """Return the orders that hold in every row, as comments that become rules when uncommented."""
    if not hints.orders:
        return []
    lines = comment("These hold in every row. Remove the marks from those that must hold.")
    for low, high, strict in hints.orders:
        key = "less" if strict else "at_most"
        lines += ["#", "# [[constraint]]", f"# {key} = [{write_value(low)}, {write_value(high)}]"]
    return lines


def _private_draft(
    bought: Bought, unit: str | None, rows_per_unit: int | None, *, is_secret: bool
) -> Draft:
    head = ["format = 1"]
    if bought.rows:
        guessed = nice_above(bought.rows)
        head.append(f"rows_max = {guessed:_}".ljust(34) + "# from a noisy count, rounded up")
    if unit is not None:
        head += [f"unit = {write_value(unit)}", f"max_rows_per_unit = {rows_per_unit}"]
    attributes = bought.attributes
    first = _BOUGHT
    if is_secret:
        cost = bought.cost
        head += ["", "[draft]", f"epsilon = {cost.epsilon!r}", f"delta = {cost.delta!r}"]
        head += [] if unit is None else [f"unit = {write_value(unit)}"]
    else:
        attributes = tuple(replace(a, confirmed=False, why=_KNOWN_NOISE) for a in attributes)
        first = [*comment(f"No privacy is claimed: {_KNOWN_NOISE}."), "#"]
    text = "\n".join([*first, *_left(bought.notes), "", *head, ""])
    text += "".join(f"\n{write_attribute(attribute)}" for attribute in attributes)
    return Draft(
        text=text,
        notes=bought.notes,
        attributes=attributes,
        cost=bought.cost if is_secret else None,
    )


_KNOWN_NOISE = "the noise came from a test source that can be repeated"
_BOUGHT = [
    *comment(
        "A draft made with differential privacy: it tells no more about any row than [draft] says, "
        "and may be published. That cost adds to the cost of every release from the same table. "
        "The names of the columns, and in Parquet files and frames their types, are taken as "
        "public."
    ),
    "#",
]
