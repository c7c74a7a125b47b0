"""How often the 95 % intervals of ``query`` cover, over many learnt artefacts.

    python benchmarks/query_coverage.py TABLE.csv --schema schema.toml [--holdout ROWS.csv]

Each run measures the noisy counts of the default model anew, by the code of ``learn``, and answers
all one-way and two-way questions. One run in 20 also fits the model, generates as many records as
the table has rows, and bootstraps them: the interval score (width + 2/α · distance of a miss)
compares both. The noise is the operating system's.
"""

import argparse
import time
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
from scipy.stats import binom

import deniable as dn
from deniable.answers.query import ask_question, choose_cells, summarize_question
from deniable.config import Config
from deniable.counting.local import LocalRows
from deniable.data.table_io import read_codes
from deniable.model.pairwise.fit import fit_network
from deniable.pipeline.learn_model import measure_counts
from deniable.pipeline.run_plan import Run, plan_run
from deniable.randomness import Keyed, Secret

ALPHA = 0.05
MEASURES = ("count", "share", "within")


class Coverage:
    """Hits, widths and interval scores of the intervals of one kind."""

    def __init__(self):
        self.low, self.high, self.truth, self.size = [], [], [], []

    def add(self, low, high, truth, size):
        """Add intervals, the true values, and the true counts of their cells."""
        for own, new in (
            (self.low, low),
            (self.high, high),
            (self.truth, truth),
            (self.size, size),
        ):
            own.append(np.asarray(new, dtype=float))

    def arrays(self):
        """Return all lower ends, upper ends, true values and counts."""
        return [np.concatenate(own) for own in (self.low, self.high, self.truth, self.size)]

    def row(self, name):
        """Format the coverage overall and in the worst decile of cell size, and the mean score."""
        low, high, truth, size = self.arrays()
        tolerance = 1e-9 * np.maximum(np.abs(truth), 1)
        hit = (low <= truth + tolerance) & (truth <= high + tolerance)
        deciles = np.array_split(hit[np.argsort(size, kind="stable")], 10)
        worst = min(float(own.mean()) for own in deciles if len(own))
        score = interval_score(low, high, truth).mean()
        return f"{name:44}{len(hit):12,}{hit.mean():9.4f}{worst:9.4f}{score:14.6g}"


def interval_score(low, high, truth):
    """Width plus 2/α times the distance by which an interval misses."""
    return (high - low) + 2 / ALPHA * (np.maximum(low - truth, 0) + np.maximum(truth - high, 0))


class Study:
    """Repeated measurements of one table."""

    def __init__(self, path, schema, population=None, *, epsilon=1.0):
        self.schema = dn.Schema.read(schema)
        self.codes = self.read(path)
        self.population = self.codes if population is None else population
        options = {"mode": "seedless", "epsilon": epsilon, "accept_drafted_schema": True}
        self.config = Config.assemble(options)
        self.plan = plan_run(self.schema, self.config)
        self.artefact = dn.learn(path, self.schema, **options)
        self.numeric = [a.name for a in self.schema.columns if getattr(a, "is_numeric", False)]
        self.found = {}

    def read(self, path):
        """Read a table as codes."""
        return np.asfortranarray(read_codes(path, self.schema)[0])

    def measure(self, codes):
        """Measure the noisy counts of rows; return an artefact with them."""
        run = Run(schema=self.schema, config=self.config, plan=self.plan, randomness=Secret())
        laws = self.plan.privacy.pairs
        measured, _ = measure_counts(LocalRows(codes), run, laws)
        return replace(self.artefact, evidence=measured)

    def add(self, kind, *numbers):
        """Add intervals to those of a kind."""
        self.found.setdefault(kind, Coverage()).add(*numbers)

    def questions(self):
        """List all single columns and all pairs."""
        names = [c.name for c in self.schema.columns if isinstance(c, dn.Attribute)]
        return [(name,) for name in names] + list(combinations(names, 2))

    def check_bins(self, artefact, codes):
        """Answer for the bins of all columns and of a few pairs that have a two-way table."""
        names = self.schema.names
        pairs = list(artefact.evidence.tables)
        chosen = np.random.default_rng().choice(len(pairs), size=3)
        measured = [tuple(names[i] for i in pairs[at]) for at in chosen]
        self.check_cells(artefact, codes, "bins, ", questions=measured)
        single = sorted({(name,) for pair in measured for name in pair})
        self.check_cells(artefact, codes, "bins, ", questions=single)

    def check_cells(self, artefact, codes, label="", *, sampling=0.0, records=None, questions=None):
        """Answer all questions, and compare with rows: their counts, and their shares."""
        for names in questions or self.questions():
            by = dict.fromkeys(names, "bins") if questions else None
            question = ask_question(artefact, names, by=by, sampling_error=sampling > 0)
            _, cells = choose_cells(question)
            if cells is None:
                self.found.setdefault("model only", []).append(names)
                continue
            if sampling:
                cells = replace(cells, sampling=sampling)
            truth = self.count(codes, question, cells)
            answered = cells.cells(asked=range(len(names)))
            kind = f"{label}{len(names)}-way {cells.table.source}"
            self.compare(kind, answered, truth, with_counts=not sampling)
            if records is not None:
                drawn = self.count(records, question, cells)
                self.compare(f"scored {len(names)}-way: query", answered, truth)
                self.bootstrap(f"scored {len(names)}-way: bootstrap", drawn, truth)

    def count(self, codes, question, cells):
        """Count rows in the cells of a question."""
        shape = tuple(len(each.bands) for each in cells.selections)
        at = np.ravel_multi_index(
            tuple(
                each.bands.band_of[codes[:, column]]
                for each, column in zip(cells.selections, question.columns, strict=True)
            ),
            shape,
        )
        return np.bincount(at, minlength=np.prod(shape)).reshape(shape)

    def compare(self, kind, answered, table, *, with_counts=True):
        """Compare intervals with a table of true counts."""
        truth = {"count": table, "share": table / table.sum()}
        if table.ndim == 2:
            truth["within"] = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
        for measure, values in truth.items():
            if measure == "count" and not with_counts:
                continue
            ends = [getattr(cell, measure) for cell in answered]
            low, high = np.array([(e.low, e.high) for e in ends]).T
            low, high = np.maximum(low, 0), np.minimum(high, table.sum() * 10)
            # The share of no rows has no true value.
            known = np.ones(table.shape, dtype=bool)
            if measure == "within":
                known &= table.sum(axis=1, keepdims=True) > 0
            keep = known.ravel()
            self.add(
                f"{kind}, {measure}",
                low[keep], high[keep], values.ravel()[keep], table.ravel()[keep],
            )  # fmt: skip

    def bootstrap(self, kind, drawn, table):
        """Bootstrap the records: the count of a cell has a binomial distribution, exactly."""
        number, rows = drawn.sum(), table.sum()
        quantiles = [binom.ppf(level, number, drawn / number) for level in (0.025, 0.975)]
        low, high = (np.nan_to_num(each).ravel() for each in quantiles)
        size = table.ravel()
        self.add(f"{kind}, count", low * rows / number, high * rows / number, size, size)
        self.add(f"{kind}, share", low / number, high / number, size / rows, size)
        if table.ndim == 2:
            margins = drawn.sum(axis=1, keepdims=True)
            share = drawn / np.maximum(margins, 1)
            ends = [
                binom.ppf(level, margins, share) / np.maximum(margins, 1)
                for level in (0.025, 0.975)
            ]
            known = np.broadcast_to(table.sum(axis=1, keepdims=True) > 0, table.shape).ravel()
            low, high = (np.nan_to_num(each).ravel()[known] for each in ends)
            truth = (table / np.maximum(table.sum(axis=1, keepdims=True), 1)).ravel()[known]
            self.add(f"{kind}, within", low, high, truth, size[known])

    def check_numbers(self, artefact, codes, frame, label="", *, sampling=False):
        """Compare means and quantiles of numeric columns, alone and by the last column."""
        by = self.schema.columns[-1].name
        for name in self.numeric:
            for names in [(name,)] + ([(by, name)] if by != name else []):
                question = ask_question(artefact, names, sampling_error=sampling)
                tables, cells = choose_cells(question)
                if cells is None:
                    continue
                for each in summarize_question(question, tables, cells):
                    at = (codes[:, question.columns[0]], cells.selections[0].bands)
                    values = values_of(frame[name], at, each)
                    if len(values):
                        mean = each.statistic == "mean"
                        truth = values.mean() if mean else quantile(values, each.statistic)
                        kind = f"{label}{'mean' if mean else 'quantile'}, {len(names)} columns"
                        self.add(kind, [each.value.low], [each.value.high], [truth], [len(values)])


def values_of(numbers, first, summary):
    """The real numbers of a column in the group of a summary, a band of the first column."""
    if summary.group:
        codes, bands = first
        numbers = numbers[bands.band_of[codes] == bands.labels.index(summary.group)]
    return numbers[~np.isnan(numbers)]


def quantile(values, statistic):
    """The smallest value that at least this share of the values do not exceed."""
    return np.quantile(values, float(statistic.split()[1]), method="inverted_cdf")


def numbers_of(study, path):
    """Read the numeric columns as they are in the table; NaN where a cell is missing."""
    frame = pl.read_csv(path, infer_schema_length=None, null_values=["", "?", "NA"])
    found = {}
    for name in study.numeric:
        attribute = next(c for c in study.schema.columns if c.name == name)
        if attribute.kind in ("integer", "real"):
            column = frame[name].cast(pl.Float64, strict=False).fill_null(float("nan"))
            values = column.to_numpy().copy()
            code = study.schema.names.index(name)
            values[study.codes[:, code] == attribute.bins] = np.nan
            found[name] = values
    study.numeric = list(found)
    return found


def report(study, options, runs, start):
    """Print the table of all that was compared so far."""
    print(f"{options.table}: {len(study.codes):,} rows, {runs} artefacts")
    print(f"{'intervals of':44}{'number':>12}{'covered':>9}{'worst':>9}{'score':>14}")
    for kind in sorted(k for k, v in study.found.items() if isinstance(v, Coverage)):
        print(study.found[kind].row(kind))
    alone = len(study.found.get("model only", []))
    print(f"model only: {alone:,} questions of all {len(study.questions())} in all runs")
    print(f"{time.process_time() - start:.0f} CPU seconds", flush=True)


def fit_and_generate(study, artefact):
    """Fit the model to an artefact's counts, and generate as many records as there are rows."""
    network = fit_network(artefact.evidence, study.schema.attributes, max_cost=12_000)
    generated = replace(artefact, network=network).records(len(study.codes), Keyed.fresh())
    return np.concatenate(list(generated.blocks()))


def check_samples(study, population, size, *, holdout):
    """Draw rows from a population, and compare with all of it, and with the rows not drawn."""
    rng = np.random.default_rng()
    # A sample with replacement from all rows, which are the population.
    sample = np.asfortranarray(population[rng.integers(len(population), size=size)])
    study.check_cells(study.measure(sample), population, "population, ", sampling=1.0)
    if holdout:
        # A random split: the other rows are a sample too, so their share has its own error.
        mixed = rng.permutation(len(population))
        sample, rest = population[mixed[:size]], population[mixed[size:]]
        artefact = study.measure(np.asfortranarray(sample))
        study.check_cells(artefact, rest, "held-out rows, ", sampling=1.0 + size / len(rest))


def main():
    """Run the study of one table, and print its table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--schema", required=True)
    parser.add_argument("--holdout")
    parser.add_argument("--runs", type=int, default=300)
    options = parser.parse_args()
    start = time.process_time()
    study = Study(options.table, options.schema)
    frame = numbers_of(study, options.table)
    population = study.codes
    if options.holdout is not None:
        population = np.concatenate([study.codes, study.read(options.holdout)])
    for run in range(options.runs):
        artefact = study.measure(study.codes)
        records = fit_and_generate(study, artefact) if run % 20 == 0 else None
        study.check_cells(artefact, study.codes, records=records)
        study.check_bins(artefact, study.codes)
        if run % 2 == 0:
            study.check_numbers(artefact, study.codes, frame)
        if run % 5 == 0:
            check_samples(study, population, len(study.codes), holdout=options.holdout is not None)
        if run % 50 == 49 or run + 1 == options.runs:
            report(study, options, run + 1, start)


if __name__ == "__main__":
    main()
