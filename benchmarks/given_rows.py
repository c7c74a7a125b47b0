"""Given rows: speed of rare conditions, balanced training records, and imputed cells.

    python benchmarks/given_rows.py [--shared ../shared] [--parts speed balance imputation]

speed: records per second of processor time for conditions of small mass on an artefact of ACS-13,
a limit of 10,000 for a mass near 10^-4. balance: balanced accuracy on held-out real rows of a
classifier trained on plain records and on records with equal shares of a rare target. imputation:
a fifth of the cells of held-out rows is hidden and drawn 20 times; the most frequent value, or the
mean, is compared with the cell. References: the column's mode or mean, and IterativeImputer of
scikit-learn fitted to real rows. Schemas are drafted from the whole table, except that of ACS-13.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from common import Limits
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import deniable as dn
from deniable.answers.conditional_release import generate_conditional
from deniable.drafting.draft import draft_schema
from deniable.errors import DataError

ROOT = Path(__file__).parents[1]
TABLES = {
    "acs13": "acs13/acs13_train.csv",
    "adult": "adult/adult.csv.gz",
    "bank_marketing": "bank_marketing/bank_marketing.csv.gz",
}
# Conditions on ACS-13, whose masses are printed.
CONDITIONS = (
    "age >= 60 and incc = 2 and ms = 2",
    "age >= 65 and incc = 2 and edu = 24 and sex = 2",
    "age >= 70 and incc = 2 and edu = 24 and sex = 2 and race = 2",
)
# Rare targets: the table, and the column of which few rows have the second value.
TARGETS = (("bank_marketing", "y"), ("adult", "income"))
HIDDEN, DRAWS, TEST_ROWS, IMPUTER_ROWS = 0.2, 20, 1_000, 4_000


def load(shared, name):
    """Return the schema, and the rows to learn from and to test on, as text."""
    path = shared / "data" / TABLES[name]
    rows = pl.read_csv(path, infer_schema=False)
    if name == "acs13":
        test = pl.read_csv(path.with_name("acs13_test.csv"), infer_schema=False)
        return dn.Schema.read(ROOT / "examples/acs13/schema.toml"), rows, test
    with tempfile.TemporaryDirectory() as folder:
        rows.write_csv(f"{folder}/table.csv")
        schema = dn.Schema.parse(draft_schema(f"{folder}/table.csv").text)
        order = np.random.default_rng(0).permutation(len(rows))
    cut = int(0.7 * len(rows))
    return schema, rows[order[:cut]], rows[order[cut:]]


def learn(schema, rows):
    with tempfile.TemporaryDirectory() as folder:
        rows.write_csv(f"{folder}/train.csv")
        return dn.learn(f"{folder}/train.csv", schema, accept_drafted_schema=True)


def as_text(release):
    """The records of a release as in a CSV file: texts in the words of the schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = release.write_file(f"{folder}/records.csv") or f"{folder}/records.csv"
        return pl.read_csv(path, infer_schema=False)


def measure_speed(shared, limits):
    schema, rows, _ = load(shared, "acs13")
    artefact = learn(schema, rows)
    print("rare conditions, ACS-13, 100,000 records each")
    for condition in CONDITIONS:
        start = time.process_time()
        release = generate_conditional(artefact, 100_000, where=condition, key=1, workers=1)
        release.frame()
        rate = 100_000 / (time.process_time() - start)
        mass = release.source.mass
        error = release.tally.document().get("total_variation", 0.0)
        limits.at_least(f"mass {mass:.1e}, TV {error:.1e}: records per CPU second", rate, 10_000)


def features(rows, schema, target):
    """The columns of a classifier: numbers as they are, other values one-hot."""
    numeric = [a.name for a in schema.attributes if a.is_numeric and a.name != target]
    numeric = [name for name in numeric if name in rows.columns]
    others = [c for c in rows.columns if c != target and c not in numeric]
    return numeric, others


def to_pandas(rows, numeric):
    typed = rows.with_columns(
        [pl.col(c).cast(pl.String).cast(pl.Float64, strict=False) for c in numeric]
        + [pl.col(c).cast(pl.String).fill_null("") for c in rows.columns if c not in numeric]
    )
    return typed.to_pandas().fillna(0.0)


def measure_balance(shared, limits):
    for name, target in TARGETS:
        schema, rows, test = load(shared, name)
        artefact = learn(schema, rows)
        numeric, others = features(rows, schema, target)
        number = len(rows)
        tables = {
            "real rows": rows,
            "plain": as_text(dn.generate(artefact, number, key=1)),
            "balanced": as_text(generate_conditional(artefact, number, balance=target, key=1)),
        }
        shares = tables["plain"][target].value_counts(normalize=True)["proportion"]
        print(f"balance, {name}: {target}, share of the rare value {min(shares):.3f}")
        found = {}
        for which, table in tables.items():
            for model in (
                LogisticRegression(max_iter=500),
                HistGradientBoostingClassifier(random_state=0),
            ):
                linear = isinstance(model, LogisticRegression)
                encode = make_column_transformer(
                    (StandardScaler(), numeric),
                    (
                        OneHotEncoder(handle_unknown="ignore", sparse_output=False)
                        if linear
                        else OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
                        others,
                    ),
                )
                learner = make_pipeline(encode, model)
                train = to_pandas(table.select(rows.columns), numeric)
                learner.fit(train[numeric + others], train[target])
                real = to_pandas(test, numeric)
                score = balanced_accuracy_score(
                    real[target], learner.predict(real[numeric + others])
                )
                found[which, linear] = score
                print(f"  {which:10} {type(model).__name__:32} {score:.3f}")
        for linear in (True, False):
            gain = found["balanced", linear] - found["plain", linear]
            limits.at_least("gain in balanced accuracy", gain, 0.0)


def measure_imputation(shared, limits):
    for name in TABLES:
        schema, rows, test = load(shared, name)
        artefact = learn(schema, rows)
        rng = np.random.default_rng(3)
        test = test[rng.permutation(len(test))[:TEST_ROWS]]
        known = [a.name for a in schema.attributes if a.name in test.columns]
        test = test.select(known)
        hidden = {c: rng.random(len(test)) < HIDDEN for c in known}
        holes = [pl.when(pl.Series(~hidden[c])).then(pl.col(c)).alias(c) for c in known]
        given = test.with_columns(holes)
        kept = possible_rows(artefact, given)
        given, test = given[kept], test[kept]
        hidden = {c: of[kept] for c, of in hidden.items()}
        start = time.process_time()
        release = generate_conditional(artefact, given=given, records_each=DRAWS, key=1)
        drawn = as_text(release)
        seconds = time.process_time() - start
        numeric = [a.name for a in schema.attributes if a.is_numeric and a.name in known]
        ours = summarize(drawn, known, numeric)
        ceiling = impute(rows.select(known), given, known, numeric)
        simple = reference(rows, known, numeric, len(test))
        print(
            f"imputation, {name}: {len(test):,} rows, {len(test) * DRAWS / seconds:,.0f} records "
            f"per CPU second, {release.tally.document()}"
        )
        print("                          accuracy of categories   explained variance of numbers")
        scores = {}
        for label, guess in (("mode, mean", simple), ("ours", ours), ("IterativeImputer", ceiling)):
            scores[label] = score(test, guess, hidden, known, numeric)
            print(f"  {label:24} {scores[label][0]:10.3f} {scores[label][1]:26.3f}")
        for at, what in enumerate(("accuracy", "explained variance")):
            gain = scores["ours"][at] - scores["mode, mean"][at]
            limits.at_least(f"{what}: ours above mode and mean", gain, 0.0)


def possible_rows(artefact, given, first=0):
    """The numbers of the rows that the model can complete: an impossible one is an error."""
    try:
        generate_conditional(artefact, given=given, key=1).frame()
    except DataError:
        if len(given) == 1:
            return []
        half = len(given) // 2
        one = possible_rows(artefact, given[:half], first)
        return one + possible_rows(artefact, given[half:], first + half)
    return list(range(first, first + len(given)))


def summarize(drawn, known, numeric):
    """The mean of the drawn numbers, and the most frequent of the drawn values, of each row."""
    found = {}
    for c in known:
        if c in numeric:
            values = numbers_of(drawn[c]).reshape(-1, DRAWS)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[c] = np.nanmean(values, axis=1)
        else:
            texts = texts_of(drawn[c]).to_numpy().reshape(-1, DRAWS)
            values, codes = np.unique(texts.astype(str), return_inverse=True)
            codes = codes.reshape(texts.shape)
            counts = np.stack([(codes == k).sum(axis=1) for k in range(len(values))], axis=1)
            found[c] = values[counts.argmax(axis=1)]
    return found


def texts_of(series):
    return series.cast(pl.String).fill_null("")


def numbers_of(series):
    return series.cast(pl.Float64, strict=False).to_numpy()


def reference(rows, known, numeric, number):
    return {
        c: np.full(number, np.nanmean(numbers_of(rows[c])))
        if c in numeric
        else np.full(number, texts_of(rows[c]).mode()[0])
        for c in known
    }


def impute(rows, given, known, numeric):
    """Impute with scikit-learn: numbers standardized, other columns one-hot; real rows."""
    rows = rows[np.random.default_rng(5).permutation(len(rows))[:IMPUTER_ROWS]]
    values = {c: sorted(set(texts_of(rows[c]))) for c in known if c not in numeric}

    def matrix(table):
        parts = []
        for c in known:
            if c in numeric:
                parts.append(numbers_of(table[c])[:, None])
                continue
            texts = table[c].cast(pl.String)
            hot = np.stack(
                [(texts == v).fill_null(value=False).to_numpy() for v in values[c]], axis=1
            )
            hot = hot.astype(float)
            hot[texts.is_null().to_numpy()] = np.nan
            parts.append(hot)
        return np.concatenate(parts, axis=1)

    scale = StandardScaler().fit(matrix(rows))
    imputer = IterativeImputer(max_iter=3, n_nearest_features=40, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer.fit(scale.transform(np.concatenate([matrix(rows), matrix(given)])))
        filled = scale.inverse_transform(imputer.transform(scale.transform(matrix(given))))
    found, at = {}, 0
    for c in known:
        width = 1 if c in numeric else len(values[c])
        part = filled[:, at : at + width]
        found[c] = part[:, 0] if c in numeric else np.array(values[c])[part.argmax(axis=1)]
        at += width
    return found


def score(test, guess, hidden, known, numeric):
    """Mean accuracy over the columns of categories, and mean explained variance over numbers."""
    accuracies, explained = [], []
    for c in known:
        own = hidden[c]
        if c in numeric:
            true = numbers_of(test[c])
            own = own & ~np.isnan(true) & ~np.isnan(guess[c])
            error = ((true[own] - guess[c][own]) ** 2).mean()
            explained.append(1 - error / np.var(true[own]))
        else:
            accuracies.append(np.mean(texts_of(test[c]).to_numpy()[own] == guess[c][own]))
    return float(np.mean(accuracies)), float(np.mean(explained)) if explained else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--parts", nargs="+", default=["speed", "balance", "imputation"])
    options = parser.parse_args()
    limits = Limits()
    parts = {"speed": measure_speed, "balance": measure_balance, "imputation": measure_imputation}
    for part in options.parts:
        parts[part](options.shared, limits)
    limits.exit()


if __name__ == "__main__":
    main()
