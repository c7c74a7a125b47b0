"""AIM's work: the error of all three-way tables of a release, ours or a peer's.

    python benchmarks/three_way.py [--shared ../shared] [--tables adult nltcs titanic]
        [--epsilons 0.1 0.3 1 3 10] [--modes one-shot seedless] [--runs 3] [--domain]
        [--out three_way.jsonl]
    python benchmarks/three_way.py --tool mst|aim --peer-python PYTHON [--minutes 15] ...

Tables are coded as in the experiments of AIM's authors: NLTCS and Titanic are stored so, Adult is
coded here. The whole table is learnt from and compared with. Columns: mean total variation of all
attributes, pairs and triples (AIM's paper has twice that, the L1 distance), with the standard
deviation of the runs. Our schema is drafted by `init` from the table and accepted as it is; with
--domain it says what a peer is told: the codes of each column, and which columns are numbers. A
peer runs in an interpreter of its own (peers.py says how to get it), one run each. Seconds: of
ours, from table to file, by the clock; of a peer, of one core, to fit.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import peers
import polars as pl

import deniable as dn
from deniable.drafting.draft import draft_schema

ROOT = Path(__file__).parents[1]
TABLES = {
    "adult": "adult/adult.csv.gz",
    "nltcs": "nltcs/nltcs.csv",
    "titanic": "titanic/titanic.csv",
}
DELTA = peers.DELTA
COLUMNS = ("attributes", "pairs", "triples")
# Columns whose codes are numbers; those of NLTCS are yes and no.
NUMBERS = {"titanic": ("Age", "SibSp", "Parch", "Fare")}
# Adult: the least value of a column, the width of a code, and the number of codes.
ADULT_NUMBERS = {
    "age": (16, 1, 85),
    "fnlwgt": (10_000, 14_900, 100),
    "education-num": (1, 1, 16),
    "capital-gain": (0, 1_000, 100),
    "capital-loss": (0, 50, 100),
    "hours-per-week": (1, 1, 99),
}
# The other columns: their values in the order of the codes, as the table's description lists them.
# A missing cell has the last code.
ADULT_VALUES = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov "
    "Without-pay Never-worked ?",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed "
    "Married-spouse-absent Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving "
    "Priv-house-serv Protective-serv Armed-Forces ?",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany "
    "Outlying-US(Guam-USVI-etc) India Japan Greece South China Cuba Iran Honduras Philippines "
    "Italy Poland Jamaica Vietnam Mexico Portugal Ireland France Dominican-Republic Laos Ecuador "
    "Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia El-Salvador "
    "Trinadad&Tobago Peru Hong Holand-Netherlands ?",
    "income": "<=50K >50K",
}


def read_coded(table, path):
    """Return a table in AIM's coding, the number of codes of each column, and its numbers."""
    rows = pl.read_csv(path, infer_schema=False)
    if table != "adult":
        codes = rows.cast(pl.Int64)
        return codes, [int(codes[name].max()) + 1 for name in codes.columns], NUMBERS.get(table, ())
    columns, sizes = [], []
    # AIM's authors leave out `education`, which `education-num` says too.
    for name in (name for name in rows.columns if name != "education"):
        if name in ADULT_NUMBERS:
            least, width, size = ADULT_NUMBERS[name]
            code = ((rows[name].cast(pl.Float64) - least) / width).floor().clip(0, size - 1)
        else:
            values = ADULT_VALUES[name].split()
            code, size = (
                rows[name].fill_null("?").replace_strict(values, range(len(values))),
                len(values),
            )
        columns.append(code.cast(pl.Int64).alias(name))
        sizes.append(size)
    return pl.DataFrame(columns), sizes, tuple(ADULT_NUMBERS)


def domain_schema(codes, sizes, numbers):
    """Return a schema of the codes alone: no rule and no bound is read off the rows."""
    lines = ["format = 1"]
    for name, size in zip(codes.columns, sizes, strict=True):
        lines += ["[[attribute]]", f"name = {json.dumps(name)}"]
        if name in numbers:
            lines += ['type = "integer"', "min = 0", f"max = {size - 1}"]
        else:
            values = json.dumps([str(code) for code in range(size)])
            lines += ['type = "categorical"', f"values = {values}"]
    return "\n".join(lines)


def workload_error(real, made, order):
    """Return the mean total variation of all tables of so many columns."""
    # A drafted range is rounded outward: a record may have a code that no row can have.
    sizes = np.maximum(real.max(axis=0), made.max(axis=0)) + 1
    errors = []
    for chosen in itertools.combinations(range(len(sizes)), order):
        shape = [sizes[column] for column in chosen]
        shares = [
            np.bincount(
                np.ravel_multi_index(codes[:, chosen].T, shape), minlength=int(np.prod(shape))
            )
            / len(codes)
            for codes in (real, made)
        ]
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(errors))


def release_of_ours(folder, schema, rows, epsilon, mode):
    """Return the codes of our records, and the seconds from table to file."""
    start = time.perf_counter()
    made = dn.synthesize(
        folder / "train.csv", schema, records=rows, epsilon=epsilon, delta=DELTA, mode=mode,
        accept_drafted_schema=True,
    )  # fmt: skip
    made.write_file(folder / "records.csv")
    seconds = time.perf_counter() - start
    records = pl.read_csv(folder / "records.csv", infer_schema=False).cast(pl.Int64).to_numpy()
    for file in folder.glob("records.csv*"):
        file.unlink()
    return records, seconds


def release_of_peer(options, folder, epsilon):
    """Return the codes of a peer's records, and the seconds of one core to fit it."""
    command = [
        options.peer_python, peers.__file__, "--inside", folder, "--tool", options.tool,
        "--epsilon", str(epsilon), "--minutes", str(options.minutes),
    ]  # fmt: skip
    environment = os.environ | peers.ONE_CORE
    subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return np.load(folder / "drawn.npy"), json.loads((folder / "seconds.json").read_text())


def measure(options, table):
    """Print and save a line for each release of a table."""
    codes, sizes, numbers = read_coded(table, options.shared / "data" / TABLES[table])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        codes.write_csv(folder / "train.csv")
        real = codes.to_numpy()
        if options.tool == "ours":
            text = domain_schema(codes, sizes, numbers)
            if not options.domain:
                text = draft_schema(folder / "train.csv").text
            schema = dn.Schema.parse(text)
        else:
            np.save(folder / "codes.npy", real)
            (folder / "sizes.json").write_text(json.dumps(sizes))
        for release, epsilon in itertools.product(options.modes, options.epsilons):
            found = []
            for _ in range(options.runs):
                try:
                    if options.tool == "ours":
                        made, seconds = release_of_ours(folder, schema, len(real), epsilon, release)
                    else:
                        made, seconds = release_of_peer(options, folder, epsilon)
                except subprocess.CalledProcessError as error:
                    say(options, table, release, epsilon, failure(error, options.minutes))
                    break
                errors = [workload_error(real, made, order) for order in (1, 2, 3)]
                found.append([*errors, seconds])
            else:
                say(options, table, release, epsilon, np.array(found))


def failure(error, minutes):
    """Return why a peer has no records."""
    if error.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"not finished in {minutes:g} minutes"
    # The last line of a traceback. The tables here are public: it may quote a cell.
    return (error.stderr.strip().splitlines() or ["no message"])[-1]


def say(options, table, release, epsilon, found):
    """Print the mean and spread of some runs, or why there is none; save them as JSON."""
    line = {"table": table, "release": release, "epsilon": epsilon, "domain": options.domain}
    if isinstance(found, str):
        line["failed"] = shown = found
    else:
        line |= {"runs": found.tolist()}
        pairs = zip(found.mean(axis=0), found.std(axis=0), strict=True)
        spreads = [
            f"{mean:.4f}" + (f" ±{spread:.4f}" if len(found) > 1 else "") for mean, spread in pairs
        ]
        shown = "".join(f"{each:>16}" for each in (*spreads[:3], f"{found[:, 3].mean():.1f}"))
    print(f"{table:10}{release:10}{epsilon:6g}{shown}", flush=True)
    if options.out:
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", choices=["ours", "mst", "aim"], default="ours")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--modes", nargs="+", default=["one-shot", "seedless"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--domain", action="store_true", help="a schema of the codes alone")
    parser.add_argument("--peer-python", type=Path, help="an interpreter that has the tool")
    parser.add_argument("--minutes", type=float, default=15.0, help="of processor time, for a peer")
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    options = parser.parse_args()
    if options.tool != "ours":
        if options.peer_python is None:
            sys.exit("a peer needs --peer-python; see python benchmarks/peers.py --help")
        options.modes, options.runs = [options.tool], 1
    print(
        f"{'table':10}{'release':10}{'eps':>6}"
        + "".join(f"{name:>16}" for name in (*COLUMNS, "seconds"))
    )
    for table in options.tables:
        measure(options, table)


if __name__ == "__main__":
    main()
