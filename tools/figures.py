"""Figures of the house: how much there is to read, next to what there was at another commit.

    python tools/figures.py [--against 30d0800]

Lines are all lines of a Python file, docstrings and blank lines included. Modules are the Python
files of src but ``__init__.py``. Words are what `wc -w` counts in the pages of docs; README,
CHANGELOG, CONTRIBUTING and SECURITY are not among them. An import edge leads from a module to
another module of the package, however often and from wherever in the file it imports it. An import
inside a function is one that does not stand at the top level of its module, nor under TYPE_CHECKING.
"""

import argparse
import ast
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONG_FILE = 900


def python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def count_lines(files: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def count_words(folder: Path) -> int:
    pages = [p for p in folder.rglob("*.md") if "_build" not in p.parts]
    return sum(len(path.read_text(encoding="utf-8").split()) for path in pages)


def module_imports(tree: ast.AST) -> Iterator[str]:
    """What a module imports, by dotted names; of ``from a import b``, both a and a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def inner_imports(tree: ast.AST) -> int:
    """Imports inside functions."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    outer = [node for node in ast.walk(tree) if isinstance(node, functions)]
    found = {
        inner
        for function in outer
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    return len(found)


def figures(root: Path) -> dict[str, int]:
    """Measure a tree."""
    src, tests = python_files(root / "src"), python_files(root / "tests")
    modules = [path for path in src if path.name != "__init__.py"]
    names = {".".join(path.relative_to(root / "src").with_suffix("").parts) for path in modules}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in src]
    imported = [set(module_imports(tree)) & names for tree in trees]
    return {
        "lines in src": count_lines(src),
        "modules in src": len(modules),
        f"files of src over {LONG_FILE} lines": sum(count_lines([p]) > LONG_FILE for p in src),
        "import edges": sum(map(len, imported)),
        "imports inside functions": sum(map(inner_imports, trees)),
        "lines of tests": count_lines(tests),
        "files of tests": len(tests),
        "words of docs": count_words(root / "docs"),
    }


def figures_at(commit: str) -> dict[str, int]:
    """Measure the tree of another commit."""
    command = ["git", "archive", commit, "src", "tests", "docs"]
    packed = subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout  # noqa: S603
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        return figures(Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", default="30d0800", help="commit to compare with")
    given = parser.parse_args()
    old, new = figures_at(given.against), figures(ROOT)
    sys.stdout.write(f"{'':32}{given.against:>12}{'now':>12}\n")
    for name in new:
        sys.stdout.write(f"{name:32}{old[name]:12,}{new[name]:12,}\n")


if __name__ == "__main__":
    main()
