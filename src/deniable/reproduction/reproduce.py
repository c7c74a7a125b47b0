"""Reproduce the paper's experiments on any table, with the authors' formulas and with ours.

Every cell is saved as soon as it is measured, so that an interrupted run can resume. The output is
confidential: it is measured on real rows without noise.
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
from deniable.data.table_io import read_codes
from deniable.errors import ConfigError
from deniable.evaluation.checkpoints import CheckpointFolder, write_atomically
from deniable.evaluation.classifiers import require_scikit_learn
from deniable.evaluation.ml_efficacy import target_column
from deniable.evaluation.reference_tables import (
    TEST_SHARE,
    EvaluationTables,
    sample_rows,
    split_rows,
)
from deniable.evaluation.report import html_page
from deniable.model.bayesian_network import Network
from deniable.model.seed_based import NetworkModel
from deniable.pipeline.api import learn
from deniable.privacy.ledger import Part
from deniable.privacy.plan import PAPER_SPLIT
from deniable.randomness import Keyed
from deniable.reproduction.experiments import (
    OMEGA_ROWS,
    RELEASE_ROWS,
    SIDES,
    ExperimentBench,
    Setup,
    Side,
    decode_modelled_columns,
    omega_text,
    release_options,
    timed_run_sizes,
)
from deniable.reproduction.measurements import (
    measure_baselines,
    measure_model_accuracy,
    measure_run_times,
    pass_rates,
    table_facts,
)
from deniable.reproduction.page import PAGE_TITLE, as_markdown, draw_figures, page_body
from deniable.reproduction.paper_statements import STATEMENT_HEADER, statements
from deniable.reproduction.tables import (
    EPSILONS,
    TABLE1_HEADER,
    TABLE_HEADER,
    TABLE_TITLES,
    attribute_rows,
    fact_rows,
    figure_rows,
    setup_rows,
    table_rows,
)
from deniable.schema.schema import Schema
from deniable.workers import Progress, count_cores, no_progress

_FIGURE6_KS = (10, 25, 50, 75, 100, 150, 200, 250)
# The paper's γ and number of checked seeds in Figure 6.
_FIGURE6_GAMMA, _FIGURE6_CHECKED_SEEDS = 2.0, 100_000
# Early stopping of the scan in Figure 5.
_SCAN_LIMITS = {"max_plausible": 100, "max_check_plausible": 50_000}
# The share of D_S in the paper's split.
_SEED_SHARE = PAPER_SPLIT["seeds"]
# Test rows are a share of the table, but at most as many as in the paper.
_MAX_TEST_ROWS = 100_000
_MIN_ROWS = 10
_STAGE = "reproduce"
# Relative run time of each kind of cell, for the progress estimate.
_CELL_WEIGHTS = {"guesses": 80, "reals": 25, "release": 14, "models": 8, "pace": 8}

# Parts of the paper's split, by their letters in D_T, D_P and D_S.
_PART_LETTERS: dict[str, Part] = {"T": "structure", "P": "parameters", "S": "seeds"}

_DEFAULT_SETUP = Setup()


def reproduce(
    data: object,
    schema: Schema,
    out: Path,
    *,
    test: object | None = None,
    target: str | None = None,
    setup: Setup = _DEFAULT_SETUP,
    note: str = "",
    progress: Progress = no_progress,
) -> Path:
    """Run the paper's experiments, write its tables and figures, and return the report's path.

    Args:
        data: The table: a path or a data frame.
        schema: The schema of the table.
        out: A new folder, or one with an interrupted run of the same reproduction, which resumes.
        test: Test rows; None: each run sets aside another share of ``data``.
        target: The attribute to predict; None: the last one of the schema.
        setup: Number of runs and their sizes.
        note: A remark about the table, printed on the page.
        progress: Called with a stage, the work done and the total.

    Raises:
        OutputError: The folder contains other files or another reproduction.
    """
    require_scikit_learn()
    target = schema.names[target_column(schema, target)]
    experiments = _Experiments(
        rows=_read_rows(data, schema),
        held_out=None if test is None else _read_rows(test, schema),
        schema=schema,
        target=target,
        setup=setup,
        note=note,
    )
    checkpoints = CheckpointFolder.open(Path(out), _settings(experiments))
    measures = experiments.measures()
    cells: dict[str, Any] = {"setup": experiments.sizes()}
    of, done = sum(map(_cell_weight, measures)), 0
    for name, measure in measures.items():
        progress(_STAGE, done, of)
        cells[name] = checkpoints.load_or_measure(name, measure)
        done += _cell_weight(name)
    progress(_STAGE, of, of)
    return _write_results(Path(out), cells, experiments)


def _cell_weight(name: str) -> int:
    return _CELL_WEIGHTS.get(name.split(maxsplit=1)[0], 1)


def _read_rows(source: object, schema: Schema) -> Codes:
    codes, _ = read_codes(source, schema)
    if len(codes) < _MIN_ROWS:
        raise ConfigError(
            f"a reproduction needs at least {_MIN_ROWS} rows that fit the schema in each table"
        )
    return codes


def _settings(experiments: "_Experiments") -> dict[str, Any]:
    """Return everything the cells depend on. The number of runs is left out, so it can grow."""
    setup = asdict(experiments.setup)
    del setup["runs"]
    tables = [codes for codes in (experiments.rows, experiments.held_out) if codes is not None]
    return {
        "version": version("deniable"),
        "setup": setup,
        "target": experiments.target,
        "schema": experiments.schema.text(),
        "rows": [hashlib.sha256(codes.tobytes()).hexdigest() for codes in tables],
    }


@dataclass(frozen=True, kw_only=True)
class _Experiments:
    """The table, and the measurement of each cell on it."""

    rows: Codes
    held_out: Codes | None
    schema: Schema
    target: str
    setup: Setup
    note: str

    def measures(self) -> dict[str, Callable[[], Any]]:
        """Return the measurement of every cell, by name; the quick ones first."""
        setup = self.setup
        found: dict[str, Callable[[], Any]] = {"facts": self._facts}
        for side in SIDES:
            found[f"pace {side}"] = partial(self._time_releases, side)
            found[f"passing {side}"] = partial(self._pass_rates, side)
            for epsilon in EPSILONS:
                found[f"models {side} {epsilon}"] = partial(self._models, side, epsilon)
        found["pace scan"] = self._time_scans
        found["guesses"] = self._baselines
        for run in range(setup.runs):
            # The cells of a run share its trained learners.
            bench = _LazyBench(self, run)
            found[f"reals run {run}"] = bench.measure_reals
            for row in RELEASE_ROWS:
                for side in SIDES:
                    found[f"release {row} {side} run {run}"] = partial(bench.measure, row, side)
            found[f"release default ours run {run}"] = partial(bench.measure, "default", "ours")
        return found

    def tables(self, run: int) -> EvaluationTables:
        """Build the tables of one run; set rows aside for testing if no test table was given."""
        train, test = self.rows, self.held_out
        if test is None:
            share = min(TEST_SHARE, _MAX_TEST_ROWS / len(self.rows))
            train, test = split_rows(self.rows, 1 - share, Keyed(run).at("records", 400))
        return EvaluationTables.of(train, train, test, key=run)

    @cached_property
    def _first_tables(self) -> EvaluationTables:
        return self.tables(0)

    def sizes(self) -> dict[str, str]:
        """Describe the setup of this run, with the keys of paper.toml."""
        setup, first = self.setup, self._first_tables
        game = min(setup.effort.game, len(first.test) // 2, self._release_size // 2)
        rows = min(setup.effort.rows, len(first.train))
        found: dict[str, object] = {
            "ε of the model": f"{setup.epsilon:g} (and {setup.epsilon / 10:g})",
            "δ": f"{setup.delta:.3g}",
            "k": setup.k,
            "γ": f"{setup.gamma:g}",
            "ε0": "none: Privacy Test 1",
            "ω": ", ".join(omega_text(row, len(self.schema.names)) for row in OMEGA_ROWS),
            "records learnt from": len(first.train),
            **{
                f"records of D_{letter}": round(PAPER_SPLIT[part] * len(first.train))
                for letter, part in _PART_LETTERS.items()
            },
            "test rows": len(first.test),
            "records of a release": self._release_size,
            "rows of a classifier": rows,
            "trees of a forest": setup.effort.trees,
            "independent runs": setup.runs,
            "noisy models": setup.models,
            "game: records of each side": game,
            "timed runs": setup.instances,
            "records of all timed runs": sum(timed_run_sizes(setup.instances, total=setup.paced)),
            "candidates of Figure 6": setup.candidates,
        }
        return {k: f"{v:,}" if isinstance(v, int) else str(v) for k, v in found.items()}

    @property
    def _release_size(self) -> int:
        return self.setup.records or len(self._first_tables.train)

    def _facts(self) -> dict[str, object]:
        attributes = [
            {"name": a.name, "kind": a.kind, "size": a.size} for a in self.schema.attributes
        ]
        return table_facts(self.schema, self.rows).document() | {"attributes": attributes}

    @cached_property
    def _decoded(self) -> tuple[object, Schema]:
        """The modelled columns of the first run's training rows, as a data frame."""
        return decode_modelled_columns(self.schema, self._first_tables.train)

    def _network(self, side: Side, epsilon: float) -> Network:
        source, modelled = self._decoded
        authors: dict[str, Any] = {"estimator": "clip"} if side == "authors" else {}
        if side == "authors" and epsilon < math.inf:
            authors["profile"] = "paper"
        return learn(
            source,
            modelled,
            mode="seedless",
            epsilon=epsilon,
            delta=self.setup.delta,
            **authors,
        ).network

    def _models(self, side: Side, epsilon: str) -> dict[str, object]:
        value = float(epsilon) * (self.setup.epsilon if epsilon != "inf" else 1)
        models = 1 if epsilon == "inf" else self.setup.models
        found = measure_model_accuracy(
            lambda _: self._network(side, value), self._first_tables.test, models=models
        )
        return asdict(found)

    def _baselines(self) -> list[dict[str, object]]:
        tables, effort = self._first_tables, self.setup.effort
        train = sample_rows(tables.train, effort.rows, Keyed(effort.key).at("records", 401))
        baselines = measure_baselines(self.schema.attributes, train, tables.test, effort)
        return [baseline.document() for baseline in baselines]

    def _pass_rates(self, side: Side) -> dict[str, list[dict[str, object]]]:
        network, seeds = self._network(side, self.setup.epsilon), self._first_tables.train
        test_options: dict[str, Any] = {"gamma": None}
        if side == "authors":
            test_options = {"gamma": _FIGURE6_GAMMA, "checked": _FIGURE6_CHECKED_SEEDS}
            part = max(1, round(_SEED_SHARE * len(seeds)))
            seeds = sample_rows(seeds, part, Keyed(0).at("records", 402))
        found = {}
        for row in OMEGA_ROWS:
            omegas = parse_omega(omega_text(row, len(self.schema.names))) or ()
            rates = pass_rates(
                NetworkModel(network, omegas),
                seeds,
                ks=_FIGURE6_KS,
                candidates=self.setup.candidates,
                **test_options,
            )
            found[row] = [asdict(rate) for rate in rates]
        return found

    def _time_releases(self, side: Side) -> dict[str, object]:
        options = release_options("m-2", side, self.schema, self.setup)
        return self._timed(self.setup.paced, **options)

    def _time_scans(self) -> dict[str, object]:
        """Time the authors' implementation of the test, which scans the seeds one by one."""
        options = release_options("m-2", "authors", self.schema, self.setup)
        omegas = parse_omega(options["omega"]) or ()

        def learn_network() -> NetworkModel:
            return NetworkModel(self._network("authors", self.setup.epsilon), omegas)

        return self._timed(self.setup.scanned, learn=learn_network, **_SCAN_LIMITS, **options)

    def _timed(self, total: int, **options: Any) -> dict[str, object]:
        source, modelled = self._decoded
        records = timed_run_sizes(self.setup.instances, total=total)
        found = measure_run_times(source, modelled, records=records, **options)
        return {"cores": count_cores(), "instances": [run_time.document() for run_time in found]}


class _LazyBench:
    """The bench of one run, built when its first cell is measured."""

    def __init__(self, experiments: _Experiments, run: int) -> None:
        self._experiments, self._run = experiments, run
        self._bench: ExperimentBench | None = None

    def _build(self) -> ExperimentBench:
        if self._bench is None:
            experiments = self._experiments
            self._bench = ExperimentBench(
                tables=experiments.tables(self._run),
                schema=experiments.schema,
                target=experiments.target,
                setup=experiments.setup,
                run=self._run,
            )
        return self._bench

    def measure_reals(self) -> dict[str, Any]:
        """Measure real rows, the upper baseline."""
        return self._build().measure_reals()

    def measure(self, row: str, side: Side) -> dict[str, Any]:
        """Generate a release and measure it."""
        bench = self._build()
        return bench.measure(bench.release(release_options(row, side, bench.schema, bench.setup)))


def _write_results(out: Path, cells: dict[str, Any], experiments: _Experiments) -> Path:
    """Write tables as CSV and Markdown, figures as SVG and CSV, and an HTML page with all."""
    tables: dict[str, list[Any]] = {
        name: [TABLE_HEADER, *table_rows(name, cells)] for name in TABLE_TITLES
    }
    tables |= figure_rows(cells)
    tables["setup"] = [["", "paper", "here"], *setup_rows(cells)]
    tables["table1"] = [TABLE1_HEADER, *attribute_rows(cells)]
    tables["table2"] = [["", "paper", "here"], *fact_rows(cells)]
    tables["statements"] = [STATEMENT_HEADER, *(s.row() for s in statements(cells))]
    for name, rows in tables.items():
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_atomically(out / f"{name}.csv", text.getvalue().encode())
    figures = draw_figures(cells)
    for name, (picture, _) in figures.items():
        write_atomically(out / f"{name}.svg", picture.encode())
    introduction = _introduction(experiments)
    write_atomically(out / "tables.md", as_markdown(cells, introduction).encode())
    report = out / "report.html"
    write_atomically(
        report,
        html_page(PAGE_TITLE, page_body(cells, figures, introduction)).encode(),
    )
    return report


def _introduction(experiments: _Experiments) -> str:
    """Describe the table and the setup, for the page and the Markdown file."""
    setup = experiments.setup
    same_test = " All runs use the same test rows; the releases differ."
    return (
        (f"{experiments.note} " if experiments.note else "")
        + f"A table of {len(experiments.rows):,} rows and {len(experiments.schema.names)} "
        f"attributes, predicting {experiments.target}; ε = {setup.epsilon:g}, "
        f"δ = {setup.delta:.3g}, k = {setup.k}, γ = {setup.gamma:g}; {setup.runs} runs, "
        f"{setup.models} noisy models. The difference is ours minus the paper's, in points; the "
        "paper used another table." + ("" if experiments.held_out is None else same_test)
    )
