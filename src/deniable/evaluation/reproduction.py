"""deniable reproduce: the paper's experiments on a table, by its formulas and by ours.

Every measured cell is saved as soon as it is there, so that a run that was stopped goes on where
it was. Reads and writes nothing that is private only by noise: the folder is for those who may
see the table.
"""

import csv
import hashlib
import io
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deniable.arrays import Codes
from deniable.config import parse_omega
from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import ConfigError
from deniable.evaluation.baselines import Tables, cut, sample
from deniable.evaluation.cells import Shelf, put
from deniable.evaluation.facts import table_facts
from deniable.evaluation.guesses import measure_guesses, measure_models
from deniable.evaluation.learning import target_column
from deniable.evaluation.pace import measure_pace
from deniable.evaluation.passing import pass_shares
from deniable.evaluation.recipes import (
    OMEGAS,
    RELEASES,
    SIDES,
    Bench,
    Setup,
    Side,
    omega_text,
    options_of,
    plain_table,
    times,
)
from deniable.evaluation.recorded import (
    EPSILONS,
    HEAD,
    HEAD_OF_TABLE1,
    TITLES,
    attribute_rows,
    fact_rows,
    figure_rows,
    rows_of,
    setup_rows,
)
from deniable.evaluation.report import page
from deniable.evaluation.reported import HEAD_OF_STATEMENTS, statements
from deniable.evaluation.reproduced import as_markdown, body, draw_figures
from deniable.model.network import Network
from deniable.model.synthesis import NetworkModel
from deniable.pipeline import Watch, learn, unwatched
from deniable.privacy.ledger import Part
from deniable.privacy.plan import SPLIT_OF_PAPER
from deniable.randomness import Keyed
from deniable.workers import all_cores

_KS = (10, 25, 50, 75, 100, 150, 200, 250)
# Of Figure 6: the width of a range, and how many seeds are looked at.
_GAMMA, _CHECKED = 2.0, 100_000
# Of Figure 5's scan: where it stops.
_SCAN = {"max_plausible": 100, "max_check_plausible": 50_000}
# The share of D_S in the paper's split.
_SEED_SHARE = SPLIT_OF_PAPER["seeds"]
# Of rows without a test table, what is set aside: a share, but no more than the paper had.
_TEST_SHARE, _MOST_TEST = 0.3, 100_000
_STAGE = "reproduce"
# About how long a kind of cell takes, beside the others, so that the time left can be told.
_WEIGHTS = {"guesses": 80, "reals": 25, "release": 14, "models": 8, "pace": 8}

# The parts of the paper's split, by its letters.
_LETTERS: dict[str, Part] = {"T": "structure", "P": "parameters", "S": "seeds"}

_USUAL = Setup()


def reproduce(
    data: object,
    schema: Schema,
    out: Path,
    *,
    test: object | None = None,
    target: str | None = None,
    setup: Setup = _USUAL,
    note: str = "",
    watch: Watch = unwatched,
) -> Path:
    """Run the paper's experiments and write its tables and figures; return the report's path.

    Args:
        data: The table: a path or a frame.
        schema: What its columns hold.
        out: A folder; one that holds the same reproduction, begun, is gone on with.
        test: Rows to test on; None: in every run another share of ``data`` is set aside.
        target: The attribute to learn; None: the schema's last.
        setup: How many runs, of what size.
        note: What the reader of the page must know of the table.
        watch: Told how much is done.

    Raises:
        OutputError: The folder holds something else.
    """
    target = schema.names[target_column(schema, target)]
    lab = _Lab(
        rows=_read(data, schema),
        held_out=None if test is None else _read(test, schema),
        schema=schema,
        target=target,
        setup=setup,
        note=note,
    )
    shelf = Shelf.open(Path(out), _settings(lab))
    recipes = lab.recipes()
    cells: dict[str, Any] = {"setup": lab.sizes()}
    of, done = sum(map(_weight, recipes)), 0
    for name, recipe in recipes.items():
        watch(_STAGE, done, of)
        cells[name] = shelf.get(name, recipe)
        done += _weight(name)
    watch(_STAGE, of, of)
    return _write(Path(out), cells, lab)


def _weight(name: str) -> int:
    return _WEIGHTS.get(name.split(maxsplit=1)[0], 1)


def _read(source: object, schema: Schema) -> Codes:
    codes, _ = read_codes(source, schema)
    if len(codes) < 10:
        raise ConfigError("a reproduction needs at least ten rows to learn from and to test on")
    return codes


def _settings(lab: "_Lab") -> dict[str, Any]:
    """Return all that the cells depend on: not on how many runs there are, so more can follow."""
    setup = asdict(lab.setup)
    del setup["runs"]
    tables = [codes for codes in (lab.rows, lab.held_out) if codes is not None]
    return {
        "version": version("deniable"),
        "setup": setup,
        "target": lab.target,
        "schema": lab.schema.text(),
        "rows": [hashlib.sha256(codes.tobytes()).hexdigest() for codes in tables],
    }


@dataclass(frozen=True, kw_only=True)
class _Lab:
    """The table, and how each cell is measured on it."""

    rows: Codes
    held_out: Codes | None
    schema: Schema
    target: str
    setup: Setup
    note: str

    def recipes(self) -> dict[str, Callable[[], Any]]:
        """Return every cell's recipe, the quick ones first."""
        setup = self.setup
        found: dict[str, Callable[[], Any]] = {"facts": self._facts}
        for side in SIDES:
            found[f"pace {side}"] = partial(self._pace, side)
            found[f"passing {side}"] = partial(self._passing, side)
            for epsilon in EPSILONS:
                found[f"models {side} {epsilon}"] = partial(self._models, side, epsilon)
        found["pace scan"] = self._pace_of_scan
        found["guesses"] = self._guesses
        for run in range(setup.runs):
            # A run's learners are trained once for all its cells that are still to be measured.
            bench = _Later(self, run)
            found[f"reals run {run}"] = bench.measure_reals
            for row in RELEASES:
                for side in SIDES:
                    found[f"release {row} {side} run {run}"] = partial(bench.measure, row, side)
            found[f"release default ours run {run}"] = partial(bench.measure, "default", "ours")
        return found

    def tables(self, run: int, released: Codes | None = None) -> Tables:
        """Return one run's tables: with a share of the rows set aside if no others were given."""
        train, test = self.rows, self.held_out
        if test is None:
            share = min(_TEST_SHARE, _MOST_TEST / len(self.rows))
            train, test = cut(self.rows, 1 - share, Keyed(run).at("records", 400))
        return Tables.of(train, train if released is None else released, test, key=run)

    @cached_property
    def _first(self) -> Tables:
        return self.tables(0)

    def sizes(self) -> dict[str, str]:
        """Return the setup of this run, in the words of paper.toml."""
        setup, first = self.setup, self._first
        game = min(setup.effort.game, len(first.test) // 2, self._released // 2)
        rows = min(setup.effort.rows, len(first.train))
        found: dict[str, object] = {
            "ε of the model": f"{setup.epsilon:g} (and {setup.epsilon / 10:g})",
            "δ": f"{setup.delta:.3g}",
            "k": setup.k,
            "γ": f"{setup.gamma:g}",
            "ε0": "none: Privacy Test 1",
            "ω": ", ".join(omega_text(row, len(self.schema.names)) for row in OMEGAS),
            "records learnt from": len(first.train),
            **{
                f"records of D_{letter}": round(SPLIT_OF_PAPER[part] * len(first.train))
                for letter, part in _LETTERS.items()
            },
            "test rows": len(first.test),
            "records of a release": self._released,
            "rows of a classifier": rows,
            "trees of a forest": setup.effort.trees,
            "independent runs": setup.runs,
            "noisy models": setup.models,
            "game: records of each side": game,
            "timed runs": setup.instances,
            "records of all timed runs": sum(times(setup.instances, total=setup.paced)),
            "candidates of Figure 6": setup.candidates,
        }
        return {k: f"{v:,}" if isinstance(v, int) else str(v) for k, v in found.items()}

    @property
    def _released(self) -> int:
        return self.setup.records or len(self._first.train)

    def _facts(self) -> dict[str, object]:
        attributes = [
            {"name": a.name, "kind": a.kind, "size": a.size} for a in self.schema.attributes
        ]
        return table_facts(self.schema, self.rows).document() | {"attributes": attributes}

    @cached_property
    def _plain(self) -> tuple[object, Schema]:
        """The learnt columns of the first run's rows, as a frame."""
        return plain_table(self.schema, self._first.train)

    def _network(self, side: Side, epsilon: float) -> Network:
        source, plain = self._plain
        by_paper: dict[str, Any] = {"estimator": "clip"} if side == "authors" else {}
        if side == "authors" and epsilon < math.inf:
            by_paper["profile"] = "paper"
        return learn(
            source,
            plain,
            mode="seedless",
            epsilon=epsilon,
            delta=self.setup.delta,
            **by_paper,
        ).network

    def _models(self, side: Side, epsilon: str) -> dict[str, object]:
        value = float(epsilon) * (self.setup.epsilon if epsilon != "inf" else 1)
        models = 1 if epsilon == "inf" else self.setup.models
        found = measure_models(
            lambda _: self._network(side, value), self._first.test, models=models
        )
        return asdict(found)

    def _guesses(self) -> list[dict[str, object]]:
        tables, effort = self._first, self.setup.effort
        train = sample(tables.train, effort.rows, Keyed(effort.key).at("records", 401))
        guesses = measure_guesses(self.schema.attributes, train, tables.test, effort)
        return [guess.document() for guess in guesses]

    def _passing(self, side: Side) -> dict[str, list[dict[str, object]]]:
        network, seeds = self._network(side, self.setup.epsilon), self._first.train
        how: dict[str, Any] = {"gamma": None}
        if side == "authors":
            how = {"gamma": _GAMMA, "checked": _CHECKED}
            part = max(1, round(_SEED_SHARE * len(seeds)))
            seeds = sample(seeds, part, Keyed(0).at("records", 402))
        found = {}
        for row in OMEGAS:
            omegas = parse_omega(omega_text(row, len(self.schema.names))) or ()
            shares = pass_shares(
                NetworkModel(network, omegas),
                seeds,
                ks=_KS,
                candidates=self.setup.candidates,
                **how,
            )
            found[row] = [asdict(share) for share in shares]
        return found

    def _pace(self, side: Side) -> dict[str, object]:
        options = options_of("m-2", side, self.schema, self.setup)
        return self._timed(self.setup.paced, **options)

    def _pace_of_scan(self) -> dict[str, object]:
        """The test as the authors' tool makes it: the model is asked about seed after seed."""
        options = options_of("m-2", "authors", self.schema, self.setup)
        omegas = parse_omega(options["omega"]) or ()

        def learnt() -> NetworkModel:
            return NetworkModel(self._network("authors", self.setup.epsilon), omegas)

        return self._timed(self.setup.scanned, learn=learnt, **_SCAN, **options)

    def _timed(self, total: int, **options: Any) -> dict[str, object]:
        source, plain = self._plain
        records = times(self.setup.instances, total=total)
        found = measure_pace(source, plain, records=records, **options)
        return {"cores": all_cores(), "instances": [one.document() for one in found]}


class _Later:
    """A run's bench, made when its first cell is measured."""

    def __init__(self, lab: _Lab, run: int) -> None:
        self._lab, self._run = lab, run
        self._bench: Bench | None = None

    def _made(self) -> Bench:
        if self._bench is None:
            lab = self._lab
            self._bench = Bench(
                tables=lab.tables(self._run),
                schema=lab.schema,
                target=lab.target,
                setup=lab.setup,
                run=self._run,
            )
        return self._bench

    def measure_reals(self) -> dict[str, Any]:
        """Measure real rows."""
        return self._made().measure_reals()

    def measure(self, row: str, side: Side) -> dict[str, Any]:
        """Make a release, and measure it."""
        bench = self._made()
        return bench.measure(bench.release(options_of(row, side, bench.schema, bench.setup)))


def _write(out: Path, cells: dict[str, Any], lab: _Lab) -> Path:
    """Write tables as CSV and Markdown, figures as SVG and CSV, and a page that has all of them."""
    made: dict[str, list[Any]] = {name: [HEAD, *rows_of(name, cells)] for name in TITLES}
    made |= figure_rows(cells)
    made["setup"] = [["", "paper", "here"], *setup_rows(cells)]
    made["table1"] = [HEAD_OF_TABLE1, *attribute_rows(cells)]
    made["table2"] = [["", "paper", "here"], *fact_rows(cells)]
    made["statements"] = [HEAD_OF_STATEMENTS, *(one.row() for one in statements(cells))]
    for name, rows in made.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        put(out / f"{name}.csv", text.getvalue().encode())
    figures = draw_figures(cells)
    for name, (picture, _) in figures.items():
        put(out / f"{name}.svg", picture.encode())
    words = _about(lab)
    put(out / "tables.md", as_markdown(cells, words).encode())
    report = out / "report.html"
    put(report, page("The paper's experiments, made again", body(cells, figures, words)).encode())
    return report


def _about(lab: _Lab) -> str:
    """Return what the page and the Markdown begin with."""
    setup = lab.setup
    same = " The same rows are tested on in every run; the releases differ."
    return (
        (f"{lab.note} " if lab.note else "")
        + f"A table of {len(lab.rows):,} rows and {len(lab.schema.names)} attributes, learning "
        f"{lab.target}; ε = {setup.epsilon:g}, δ = {setup.delta:.3g}, k = {setup.k}, γ = "
        f"{setup.gamma:g}; {setup.runs} runs, {setup.models} noisy models. The difference is ours "
        "less the paper's, in points; the paper had another table."
        + ("" if lab.held_out is None else same)
    )
