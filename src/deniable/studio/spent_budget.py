"""Privacy budget spent on a table: the costs of all its releases, added up.

Costs add up by basic composition: the sum of all ε, and the sum of all δ. It is an upper bound for
any releases, also if a later one was chosen by looking at an earlier one.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal

from deniable.errors import DeniableError
from deniable.privacy.wording import round_up
from deniable.schema.draft_cost import DraftCost
from deniable.studio.made_output import MadeOutput, made_by, owns_output
from deniable.studio.other_stores import LocatedRun, located_runs
from deniable.studio.run_store import RunRecord
from deniable.studio.table_facts import table_hash
from deniable.studio.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The cost of one run.

    Attributes:
        run: The run.
        epsilon: Its ε; infinite if nothing is promised.
        delta: Its δ.
        mode: The mode of its release; "draft" for a private draft.
        home: The other ``--root`` that it was started with; "" for the studio's own.
    """

    run: RunRecord
    epsilon: float
    delta: float
    mode: str
    home: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether ε covers the model only."""
        return self.mode == "tested"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The costs of all releases of one table.

    Attributes:
        table: The table.
        spendings: One for each run that made something of it.
        others: Releases in the folder that the studio did not make: their table is not known.
    """

    table: str
    spendings: Sequence[Spending]
    others: Sequence[str] = ()

    @property
    def elsewhere(self) -> list[Spending]:
        """The costs of runs that were started with another ``--root``."""
        return [each for each in self.spendings if each.home]

    @property
    def epsilon(self) -> float:
        """The sum of all ε, rounded up."""
        total = math.fsum(each.epsilon for each in self.spendings)
        return total if math.isinf(total) else round_up(total)

    @property
    def delta(self) -> float:
        """The sum of all δ, rounded up; 1 at most."""
        return min(1.0, round_up(math.fsum(each.delta for each in self.spendings)))

    @property
    def has_partial(self) -> bool:
        """Whether some of the releases are not covered by their ε."""
        return any(each.is_partial for each in self.spendings)


def cost_text(value: float) -> str:
    """An ε or δ with four digits, rounded up.

    >>> cost_text(1.99851), cost_text(3e-9), cost_text(math.inf)
    ('1.999', '3e-09', 'no limit')
    """
    if math.isinf(value):
        return "no limit"
    if value <= 0:
        return "0"
    number = Decimal(repr(value))
    digits = Decimal(1).scaleb(number.adjusted() - 3)
    return f"{float(number.quantize(digits, rounding=ROUND_UP)):.4g}"


def spent_on(space: Workspace, table: str) -> Spent:
    """Add up what was spent on a table: on its path, and on other paths with the same content.

    Runs that were started with a ``--root`` above or below this one count too.
    """
    runs = located_runs(space)
    same = [each for each in runs if is_same_table(space, each, table)]
    found = [cost for each in same if (cost := spending_of(each, same)) is not None]
    return Spent(table=table, spendings=found, others=foreign_releases(space, runs))


def spent_before(space: Workspace, table: str, path: str, draft: DraftCost | None) -> Spent:
    """Add up what was spent on a table, without what the total of a release with a schema contains.

    Args:
        space: The workspace.
        table: The table.
        path: The schema, below the root.
        draft: The cost of its private draft, as the schema states it; the release's total has it.
    """
    spent = spent_on(space, table)
    own = [
        each
        for each in spent.spendings
        if each.run.kind == "draft" and not each.home and each.run.out == path
    ]
    # Of several drafts in one file, a release uses the last one.
    last = max(own, key=lambda each: (each.run.started, each.run.id), default=None)
    if draft is None or last is None:
        return spent
    if draft.epsilon < last.epsilon or draft.delta < last.delta:
        return spent
    return replace(spent, spendings=[each for each in spent.spendings if each is not last])


def foreign_releases(space: Workspace, runs: Sequence[LocatedRun]) -> list[str]:
    """Releases below the root that no known run has made."""
    own = {
        each.path(each.run.out)
        for each in runs
        if each.run.kind == "release"
        and owns_output(each.space.store, each.space.root.path, each.run)
    }
    return [each for each in space.root.find_releases() if space.root.path / each not in own]


def is_same_table(space: Workspace, located: LocatedRun, table: str) -> bool:
    """Whether a run was on this table: the same path, or the same bytes under another name."""
    run = located.run
    if not table or not run.table:
        return False
    if located.path(run.table) == space.root.path / table:
        return True
    with suppress(OSError, DeniableError):
        path = space.root.locate(table)
        # The hash is taken only where sizes agree: most tables are never hashed.
        if run.table_hash and run.table_size == path.stat().st_size:
            return table_hash(path) == run.table_hash
    return False


def spending_of(located: LocatedRun, others: Sequence[LocatedRun] = ()) -> Spending | None:
    """The cost of a run; None if it made nothing that costs anything.

    It is the larger of what was planned and what its own manifest stated when it was made, so no
    later change of files can lower it. A private draft costs nothing of its own once a release has
    used it: the release's total has it.

    Args:
        located: The run.
        others: All runs on the same table.
    """
    run = located.run
    state = located.space.store.status(run)[0].state
    if run.kind == "draft" and run.epsilon is not None and state == "done":
        return None if any(_contains(each, located, others) for each in others) else _known(located)
    if run.kind != "release":
        return None
    made = made_by(located.space.store, located.space.root.path, run)
    if made is not None and made.manifest_hash:
        return _larger(_known(located), made)
    # One that goes on counts as planned: else two could be started that do not know each other.
    return _known(located) if state in ("waiting", "running", "done") else None


def _contains(release: LocatedRun, draft: LocatedRun, others: Sequence[LocatedRun]) -> bool:
    """Whether the total of a release contains the cost of a draft, by its own manifest."""
    run = release.run
    if run.kind != "release":
        return False
    if release.path(run.schema) != draft.path(draft.run.out):
        return False
    # Of several drafts in one file, a release has used the last one before it.
    before = [
        (each.run.started, each.run.id)
        for each in others
        if each.run.kind == "draft"
        and each.run.epsilon is not None
        and each.path(each.run.out) == draft.path(draft.run.out)
        and each.run.started <= run.started
    ]
    if not before or max(before)[1] != draft.run.id:
        return False
    made = made_by(release.space.store, release.space.root.path, run)
    stated = made.draft if made is not None else None
    with suppress(KeyError, TypeError, ValueError):
        return (
            stated is not None
            and float(stated["epsilon"]) >= float(draft.run.epsilon or 0)
            and float(stated["delta"]) >= float(draft.run.delta or 0)
        )
    return False


def _larger(planned: Spending, made: MadeOutput) -> Spending:
    """The larger of two costs, part by part."""
    epsilon, delta = _number(made.epsilon), _number(made.delta)
    return replace(
        planned,
        epsilon=max(planned.epsilon, epsilon),
        delta=max(planned.delta, min(delta, 1.0)),
        mode=made.mode or planned.mode,
    )


def _known(located: LocatedRun) -> Spending:
    """The cost of the plan."""
    run = located.run
    return Spending(
        run=run,
        epsilon=_number(run.epsilon),
        delta=_number(run.delta or 0),
        mode=run.mode or run.kind,
        home=located.home,
    )


def _number(value: float | str | None) -> float:
    """A cost as a number; what is none has no limit."""
    with suppress(TypeError, ValueError):
        found = float(value) if value is not None else math.inf
        return math.inf if math.isnan(found) else found
    return math.inf
