"""What was spent on a table so far: the costs of all its releases, added up.

Costs add up by basic composition: the sum of all ε, and the sum of all δ. It is an upper bound for
any releases, also if a later one was chosen by looking at an earlier one.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

from deniable.errors import DeniableError
from deniable.privacy.wording import round_up
from deniable.release.untrusted_files import read_json
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
    """

    run: RunRecord
    epsilon: float
    delta: float
    mode: str

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
    def counted(self) -> list[Spending]:
        """The costs that are added up."""
        return [each for each in self.spendings if each.run.counts]

    @property
    def epsilon(self) -> float:
        """The sum of all ε, rounded up."""
        total = math.fsum(each.epsilon for each in self.counted)
        return total if math.isinf(total) else round_up(total)

    @property
    def delta(self) -> float:
        """The sum of all δ, rounded up; 1 at most."""
        return min(1.0, round_up(math.fsum(each.delta for each in self.counted)))

    @property
    def has_partial(self) -> bool:
        """Whether some of the releases are not covered by their ε."""
        return any(each.is_partial for each in self.counted)


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
    """Add up what was spent on a table: on its path, and on other paths with the same content."""
    runs = space.store.all()
    same = [run for run in runs if is_same_table(space, run, table)]
    own = {run.out for run in runs}
    found = [each for run in same if (each := spending_of(space, run, same)) is not None]
    others = [each for each in space.root.find_releases() if each not in own]
    return Spent(table=table, spendings=found, others=others)


def is_same_table(space: Workspace, run: RunRecord, table: str) -> bool:
    """Whether a run was on this table: the same path, or the same bytes under another name."""
    if not table or not run.table:
        return False
    if run.table == table:
        return True
    with suppress(OSError, DeniableError):
        path = space.root.locate(table)
        # The hash is taken only where sizes agree: most tables are never hashed.
        if run.table_hash and run.table_size == path.stat().st_size:
            return table_hash(path) == run.table_hash
    return False


def spending_of(
    space: Workspace, run: RunRecord, others: Sequence[RunRecord] = ()
) -> Spending | None:
    """The cost of a run; None if it made nothing that costs anything.

    A private draft costs nothing of its own once a release has used it: the release's total has it.
    """
    state = space.store.status(run)[0].state
    if run.kind == "draft" and run.epsilon is not None and state == "done":
        used = any(
            each.kind == "release"
            and each.schema == run.out
            and each.counts
            and spending_of(space, each)
            for each in others
        )
        return None if used else _known(run)
    if run.kind != "release":
        return None
    with suppress(DeniableError, OSError, KeyError, TypeError, ValueError):
        document = read_json(space.root.locate(f"{run.out}/manifest.json"))
        claim = document["guarantee"]
        return Spending(
            run=run,
            epsilon=float(claim["epsilon"]),
            delta=float(claim["delta"]),
            mode=str(document["mode"]),
        )
    # One that goes on counts as planned: else two could be started that do not know each other.
    return _known(run) if run.deleted or state in ("waiting", "running", "done") else None


def _known(run: RunRecord) -> Spending:
    """The cost of the plan, where there is no manifest, or none any more."""
    mode = run.mode or run.kind
    with suppress(TypeError, ValueError):
        epsilon = float(run.epsilon) if run.epsilon is not None else math.inf
        return Spending(run=run, epsilon=epsilon, delta=float(run.delta or 0), mode=mode)
    return Spending(run=run, epsilon=math.inf, delta=0.0, mode=mode)
