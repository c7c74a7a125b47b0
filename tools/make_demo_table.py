"""Make the embedded table from the 2013 ACS sample, with differential privacy at ε = 1.

    python tools/make_demo_table.py acs13_train.csv

Codes become readable values, then the product does the rest: what is written is a release of its
default mode, and its manifest is written beside it.
"""

import json
import sys
from pathlib import Path

import polars as pl

import deniable as dn
from deniable.demo import demo_schema

HERE = Path(__file__).parents[1] / "src" / "deniable" / "demo"
RECORDS = 32_000


def main(source: str) -> None:
    schema = demo_schema()
    coded = pl.read_csv(source)
    columns = []
    for attribute, name in zip(schema.attributes, coded.columns, strict=True):
        # The sample codes values from 1 in the order of the schema.
        values = pl.Series(attribute.name, list(attribute.values))
        columns.append(values.gather(coded[name] - 1).alias(attribute.name))
    release = dn.synthesize(pl.DataFrame(columns), schema, records=RECORDS, epsilon=1.0)
    for name in ("census.csv.gz", "census.csv.gz.manifest.json"):
        (HERE / name).unlink(missing_ok=True)
    release.write_file(HERE / "census.csv.gz")
    manifest = json.loads((HERE / "census.csv.gz.manifest.json").read_text(encoding="utf-8"))
    sys.stdout.write(manifest["guarantee"]["sentence"] + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
