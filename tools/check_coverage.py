"""Fail if the branch coverage of a package is below its recorded minimum.

    python tools/check_coverage.py COVERAGE.json

Run by `make coverage`. A package is covered by the tests in the folder of its name and of the other
packages here: tests/conftest.py. A minimum is what the package had when it was recorded: raise it
when the coverage rises, never lower it.
"""

import json
import sys
from pathlib import Path

# Percent of lines and branches, rounded down.
MINIMUM = {"privacy": 99, "release": 99, "verification": 99, "model": 99}


def package_coverage(report: dict, package: str) -> float:
    """Percent of the lines and branches of a package that tests execute."""
    covered = possible = 0
    for name, file in report["files"].items():
        if f"/deniable/{package}/" in f"/{name}":
            summary = file["summary"]
            covered += summary["covered_lines"] + summary["covered_branches"]
            possible += summary["num_statements"] + summary["num_branches"]
    if not possible:
        raise SystemExit(f"{package}: no file of it was measured")
    return 100 * covered / possible


def main(path: str) -> None:
    report = json.loads(Path(path).read_text(encoding="utf-8"))
    failed = False
    for package, minimum in MINIMUM.items():
        found = package_coverage(report, package)
        failed |= found < minimum
        sys.stdout.write(f"{package}: {found:.2f} % of {minimum} %\n")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1])
