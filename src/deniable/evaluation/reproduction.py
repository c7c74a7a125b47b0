"""deniable reproduce: the paper's experiments on a table, by its formulas and by ours.

Every measured cell is saved as soon as it is there, so that a run that was stopped goes on where
it was. Reads and writes nothing that is private only by noise: the folder is for those who may
see the table.
"""

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from deniable.arrays import Codes
from deniable.config import parse_omega
from deniable.data.schema import Schema
from deniable.data.tables import read_codes
from deniable.errors import ConfigError, OutputError
from deniable.evaluation.baselines import Tables, cut, sample
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
from deniable.evaluation.report import page
from deniable.evaluation.reproduced import HEAD, TITLES, body, draw_figures, rows_of
from deniable.model.network import Network
from deniable.model.synthesis import NetworkModel
from deniable.pipeline import Watch, learn, unwatched
from deniable.randomness import Keyed
from deniable.release.records import as_json

_KS = (10, 25, 50, 75, 100, 150, 200, 250)
# Of Figure 6: the width of a range, and how many seeds are looked at.
_GAMMA, _CHECKED = 2.0, 100_000
# The share of D_S in the paper's split.
_SEED_SHARE = 0.492
# Of rows without a test table, what is learnt from.
_TRAIN_SHARE = 0.7
_STAGE = "reproduce"

_USUAL = Setup()


def reproduce(
    data: object,
    schema: Schema,
    out: Path,
    *,
    test: object | None = None,
    target: str | None = None,
    setup: Setup = _USUAL,
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
        watch: Told how many cells are done.

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
    )
    shelf = _Shelf.open(Path(out), _settings(lab))
    recipes = lab.recipes()
    cells: dict[str, Any] = {}
    for at, (name, recipe) in enumerate(recipes.items()):
        watch(_STAGE, at, len(recipes))
        cells[name] = shelf.get(name, recipe)
    watch(_STAGE, len(recipes), len(recipes))
    return _write(Path(out), cells, lab)


def _read(source: object, schema: Schema) -> Codes:
    codes, _ = read_codes(source, schema)
    if len(codes) < 10:
        raise ConfigError("a reproduction needs at least ten rows to learn from and to test on")
    return codes


def _settings(lab: "_Lab") -> dict[str, Any]:
    """Return all that the cells depend on."""
    tables = [codes for codes in (lab.rows, lab.held_out) if codes is not None]
    return {
        "setup": asdict(lab.setup),
        "target": lab.target,
        "schema": lab.schema.text(),
        "rows": [hashlib.sha256(codes.tobytes()).hexdigest() for codes in tables],
    }


@dataclass(frozen=True)
class _Shelf:
    """A folder of measured cells, one file each."""

    folder: Path

    @classmethod
    def open(cls, out: Path, settings: dict[str, Any]) -> "_Shelf":
        """Return the shelf of a folder that is new, or was begun with the same settings."""
        written = out / "settings.json"
        try:
            if written.is_file():
                if written.read_bytes() != as_json(settings):
                    raise OutputError(f"{out} was begun with other settings; choose another folder")
            elif out.exists() and any(out.iterdir()):
                raise OutputError(f"{out} holds something else; choose another folder")
            (out / "cells").mkdir(parents=True, exist_ok=True, mode=0o700)
            out.chmod(0o700)
            _put(written, as_json(settings))
        except OSError as error:
            raise OutputError(f"{out} cannot be used ({error.strerror}); choose another") from None
        return cls(out / "cells")

    def get(self, name: str, recipe: Callable[[], Any]) -> Any:
        """Return a cell: as it was saved, or measured now and saved."""
        file = self.folder / f"{name.replace(' ', '_')}.json"
        if not file.is_file():
            _put(file, as_json({"cell": recipe()}))
        return json.loads(file.read_text(encoding="utf-8"))["cell"]


def _put(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it: it is whole, or not there."""
    stage = path.with_name(f".partial.{os.getpid()}.{path.name}")
    stage.write_bytes(content)
    stage.rename(path)


@dataclass(frozen=True, kw_only=True)
class _Lab:
    """The table, and how each cell is measured on it."""

    rows: Codes
    held_out: Codes | None
    schema: Schema
    target: str
    setup: Setup

    def recipes(self) -> dict[str, Callable[[], Any]]:
        """Return every cell's recipe, the quick ones first."""
        setup = self.setup
        found: dict[str, Callable[[], Any]] = {"facts": self._facts}
        for side in SIDES:
            found[f"pace {side}"] = partial(self._pace, side)
            found[f"passing {side}"] = partial(self._passing, side)
            for epsilon in ("inf", "1", "0.1"):
                found[f"models {side} {epsilon}"] = partial(self._models, side, epsilon)
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
            train, test = cut(self.rows, _TRAIN_SHARE, Keyed(run).at("records", 400))
        return Tables.of(train, train if released is None else released, test, key=run)

    def _facts(self) -> dict[str, object]:
        attributes = [
            {"name": a.name, "kind": a.kind, "size": a.size} for a in self.schema.attributes
        ]
        return table_facts(self.schema, self.rows).document() | {"attributes": attributes}

    def _plain(self) -> tuple[object, Schema]:
        """Return the learnt columns of the first run's rows, as a frame."""
        return plain_table(self.schema, self.tables(0).train)

    def _network(self, side: Side, epsilon: float) -> Network:
        source, plain = self._plain()
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
            lambda _: self._network(side, value), self.tables(0).test, models=models
        )
        return asdict(found)

    def _guesses(self) -> list[dict[str, object]]:
        tables, effort = self.tables(0), self.setup.effort
        train = sample(tables.train, effort.rows, Keyed(effort.key).at("records", 401))
        guesses = measure_guesses(self.schema.attributes, train, tables.test, effort)
        return [guess.document() for guess in guesses]

    def _passing(self, side: Side) -> dict[str, list[dict[str, object]]]:
        network, seeds = self._network(side, self.setup.epsilon), self.tables(0).train
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

    def _pace(self, side: Side) -> list[dict[str, object]]:
        source, plain = self._plain()
        records = times(self.setup.instances, most=self.setup.records or len(self.rows))
        options = options_of("m-2", side, self.schema, self.setup)
        return [one.document() for one in measure_pace(source, plain, records=records, **options)]


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
    """Write tables as CSV, figures as SVG and a report that has all of them."""
    for name in TITLES:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([HEAD, *rows_of(name, cells)])
        _put(out / f"{name}.csv", text.getvalue().encode())
    figures = draw_figures(cells)
    for name, (picture, _) in figures.items():
        _put(out / f"{name}.svg", picture.encode())
    setup = lab.setup
    words = (
        f"A table of {len(lab.rows):,} rows and {len(lab.schema.names)} attributes, learning "
        f"{lab.target}; ε = {setup.epsilon:g}, δ = {setup.delta:.3g}, k = {setup.k}, γ = "
        f"{setup.gamma:g}; {setup.runs} runs, {setup.models} noisy models. The difference is ours "
        "less the paper's, in points; the paper had another and larger table."
    )
    report = out / "report.html"
    _put(report, page("The paper's experiments, made again", body(cells, figures, words)).encode())
    return report
