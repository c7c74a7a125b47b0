"""Peers: other differentially private tools beside ours, on the same halves, scored alike.

    python -m venv /tmp/dpmm && /tmp/dpmm/bin/pip install dpmm==0.1.9
    python -m venv /tmp/smartnoise && /tmp/smartnoise/bin/pip install smartnoise-synth==1.0.8
    python benchmarks/peers.py --tool mst|privbayes --peer-python /tmp/dpmm/bin/python ...
    python benchmarks/peers.py --tool aim --peer-python /tmp/smartnoise/bin/python ...
    python benchmarks/peers.py --tool ours ...
        [--shared ../shared] [--table acs13] [--target incc] [--epsilon 1] [--most-bins 50]
        [--minutes 40] [--out peers.jsonl]

A peer runs in an interpreter of its own, on one core: our environment needs none of it. It gets
what our model gets: the codes of the training rows, and how many codes the schema allows in each
column. So a column of many numbers has the schema's bins, or --most-bins of them, neighbours joined
evenly; a value is drawn uniformly inside its bin. All of epsilon is the model's, delta is 1e-9, the
other settings are the tool's defaults. The sampler of AIM's library draws the columns that hang on
one parent in step with each other; we ask the same fitted model for independent draws instead.

Tables, halves and scores are those of utility.py. One line of JSON a run: the scores, and the
seconds of one core to fit (of ours: from table to file, by the clock). A tool that fails or does
not finish has a line too.
"""

import argparse
import dataclasses
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# This file is read by two interpreters: what only one of them has is imported where it is used.

DELTA = 1e-9
SHOWN = ("tv1_mean", "tv2_mean", "tv3_mean", "acc_rf", "acc_lr", "dist_rf", "fit_seconds")
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


# In the peer's interpreter


def fit_dpmm(pipeline, codes, sizes, epsilon):
    """Fit MST or PrivBayes of dpmm; return what draws so many records."""
    pandas = importlib.import_module("pandas")
    pipelines = importlib.import_module("dpmm.pipelines")
    names = [f"c{j}" for j in range(len(sizes))]
    model = getattr(pipelines, pipeline)(
        epsilon=epsilon, delta=DELTA, n_jobs=1, disable_processing=True
    )
    frame = pandas.DataFrame(codes, columns=names)
    model.fit(frame, domain=dict(zip(names, sizes, strict=True)))
    return lambda records: model.generate(n_records=records)[names].to_numpy()


def fit_aim(codes, sizes, epsilon):
    """Fit AIM of smartnoise-synth; return what draws so many records."""
    aim = importlib.import_module("snsynth.aim")
    transform = importlib.import_module("snsynth.transform")
    labels = [transform.LabelTransformer(nullable=False) for _ in sizes]
    transformer = transform.TableTransformer(labels)
    # Fitted on every code there may be, and on no row: the domain is public.
    transformer.fit((np.arange(max(sizes))[:, None] % sizes).tolist())
    model = aim.AIMSynthesizer(epsilon=epsilon, delta=DELTA)
    model.fit(codes.tolist(), transformer=transformer)

    def draw(records):
        drawn = model.synthesizer.synthetic_data(rows=records, method="sample").df
        return drawn[[f"col{j}" for j in range(len(sizes))]].to_numpy()

    return draw


def run_inside(tool, folder, epsilon, minutes):
    """Fit a peer to the codes in a folder, and leave as many synthetic ones beside them."""
    # Processor time, so that a busy machine does not make a tool look slow.
    limit = int(60 * minutes)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    codes = np.load(folder / "codes.npy").astype(np.int64)
    sizes = json.loads((folder / "sizes.json").read_text())
    start = time.process_time()
    if tool == "aim":
        draw = fit_aim(codes, sizes, epsilon)
    else:
        pipeline = {"mst": "MSTPipeline", "privbayes": "PrivBayesPipeline"}[tool]
        draw = fit_dpmm(pipeline, codes, sizes, epsilon)
    seconds = time.process_time() - start
    np.save(folder / "drawn.npy", draw(len(codes)).astype(np.int64))
    (folder / "seconds.json").write_text(json.dumps(seconds))


# In ours


def joined(attribute, most):
    """Return the coarser code of each code: neighbouring bins joined evenly, missing apart."""
    codes = np.arange(attribute.size)
    if most is None or not attribute.is_numeric or attribute.bins <= most:
        return codes
    return np.where(codes < attribute.bins, codes * most // attribute.bins, most)


def release_of_peer(options, folder, schema):
    """Write the records of a peer; return the seconds to fit it."""
    tables = importlib.import_module("deniable.data.table_io")
    records_of = importlib.import_module("deniable.data.complete_records").decode_records
    # A peer knows of no constraints: its records may break them.
    free = dataclasses.replace(schema, constraints=())
    codec = importlib.import_module("deniable.data.codec").Codec(free)
    draws = importlib.import_module("deniable.randomness").Keyed(0).at("values")
    codes, _ = tables.read_codes(folder / "train.csv", schema)
    coarser = [joined(attribute, options.most_bins) for attribute in schema.attributes]
    given = np.stack([coarse[codes[:, j]] for j, coarse in enumerate(coarser)], axis=1)
    np.save(folder / "codes.npy", given)
    (folder / "sizes.json").write_text(json.dumps([int(coarse.max()) + 1 for coarse in coarser]))
    command = [
        options.peer_python, __file__, "--inside", folder, "--tool", options.tool,
        "--epsilon", str(options.epsilon), "--minutes", str(options.minutes),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | ONE_CORE)
    drawn, rng = np.load(folder / "drawn.npy"), np.random.default_rng(0)
    for j, coarse in enumerate(coarser):
        firsts, widths = np.unique(coarse, return_index=True, return_counts=True)[1:]
        steps = (rng.random(len(drawn)) * widths[drawn[:, j]]).astype(np.int64)
        drawn[:, j] = firsts[drawn[:, j]] + steps
    records = records_of(codec, np.asfortranarray(drawn.astype(codes.dtype)), draws)
    tables.write_table(folder / "records.csv", [records], free)
    return json.loads((folder / "seconds.json").read_text())


def release_of_ours(options, folder, schema, rows):
    """Write our records; return the seconds from table to file."""
    deniable = importlib.import_module("deniable")
    start = time.perf_counter()
    made = deniable.synthesize(
        folder / "train.csv", schema, records=rows, epsilon=options.epsilon, delta=DELTA,
        accept_drafted_schema=True,
    )  # fmt: skip
    made.write_file(folder / "records.csv")
    return time.perf_counter() - start


def measure(options):
    """Return the line of one run."""
    utility = importlib.import_module("utility")
    names = ("tool", "table", "epsilon", "most_bins")
    line = {name: getattr(options, name) for name in names}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        schema, rows = utility.prepare(folder, options.shared, options.table, held_out=False)
        try:
            if options.tool == "ours":
                seconds = release_of_ours(options, folder, schema, rows)
            else:
                seconds = release_of_peer(options, folder, schema)
        except subprocess.CalledProcessError as error:
            if error.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                return line | {"failed": f"not finished in {options.minutes:g} minutes"}
            # The last line of a traceback. The tables here are public: it may quote a cell.
            return line | {"failed": (error.stderr.strip().splitlines() or ["no message"])[-1]}
        target = options.target or utility.TABLES[options.table][1]
        program = options.shared / "tools/score.py"
        scores = utility.score(program, folder, target, fast=False)
        return line | {"fit_seconds": round(seconds, 1)} | scores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", choices=["aim", "mst", "privbayes", "ours"], required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--table", default="acs13", help="as in utility.py")
    parser.add_argument("--target", help="the column that learners are asked for")
    parser.add_argument("--shared", type=Path, default=Path(__file__).parents[2] / "shared")
    parser.add_argument("--peer-python", type=Path, help="an interpreter that has the tool")
    parser.add_argument("--most-bins", type=int, help="for peers: at most so many a column")
    parser.add_argument("--minutes", type=float, default=40.0, help="of processor time, for a peer")
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_inside(options.tool, options.inside, options.epsilon, options.minutes)
        return
    if options.tool != "ours" and options.peer_python is None:
        sys.exit("a peer needs --peer-python; python benchmarks/peers.py --help says how to get it")
    line = measure(options)
    if options.out:
        with options.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
    shown = line.get("failed") or "  ".join(f"{name} {line[name]:g}" for name in SHOWN)
    print(f"{options.tool} {options.table} eps {options.epsilon:g}: {shown}", flush=True)


if __name__ == "__main__":
    main()
