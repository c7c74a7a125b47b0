"""Build the package, install it in clean environments, and run it there as a stranger would.

python tools/check_wheel.py                           # with the Python that runs this
python tools/check_wheel.py python3.11 python3.12 python3.13

Each environment is a new one outside the repository. First the package is installed without extras:
``evaluate`` must name the missing one. Then with them: the demo must pass, and its release verify.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Files without which the installed package cannot work, and folders that must not be in it.
NEEDED = ("deniable/demo/census.csv.gz", "deniable/demo/schema.toml", "deniable/py.typed",
          "deniable/evaluation/report.css", "deniable/reproduction/paper.toml",
          "deniable/studio/static/htmx.min.js", "deniable/studio/templates/base.html")  # fmt: skip
FORBIDDEN = ("tests/", "docs/", "benchmarks/")
MISSING_EXTRA = 2


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    """Run a command; it must end with this exit code. Return what it printed."""
    done = subprocess.run(  # noqa: S603 - the commands below
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False
    )
    if done.returncode != code:
        sys.exit(
            f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}\n{done.stderr}"
        )
    return done.stdout + done.stderr


def build(folder: Path) -> Path:
    """Build sdist and, from it, the wheel; check what the wheel contains."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    faults = [f"{name} is missing" for name in NEEDED if name not in names]
    faults += [f"{name} should not be there" for name in names if name.startswith(FORBIDDEN)]
    if faults:
        sys.exit(f"{wheel.name}: {'; '.join(faults)}")
    return wheel


def check(python: str, wheel: Path, folder: Path) -> str:
    """Install the wheel with one Python and run it; return the version of that Python."""
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    binaries = folder / "venv" / "bin"
    pip = [binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, wheel, cwd=folder)
    told = run(binaries / "deniable", "demo", "--out", "early", cwd=folder, code=MISSING_EXTRA)
    if "deniable[evaluate]" not in told or (folder / "early").exists():
        sys.exit(f"{python}: the missing extra is not named, or something was written:\n{told}")
    run(*pip, f"{wheel}[evaluate,frames]", cwd=folder)
    run(binaries / "deniable", "demo", "--out", "demo", "--quiet", cwd=folder)
    run(binaries / "deniable", "verify", "demo", "--quiet", cwd=folder)
    return run(binaries / "python", "--version", cwd=folder).strip()


def main(pythons: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        for number, python in enumerate(pythons):
            place = folder / f"environment {number}"
            place.mkdir()
            sys.stdout.write(f"{wheel.name}, {check(python, wheel, place)}: demo and verify pass\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
