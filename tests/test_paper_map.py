"""The documents lead somewhere: no label of the paper is missing, and all they name is there.

Each rule is a function from a text to complaints, and must catch what is planted.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "paper-map.md"
DOCUMENTS = sorted(
    [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md")),
    ]
)

# Every label of the paper that is not a section's, in the order it has there.
LABELS = [
    *("eq:pdcond", "def:pdmech", "def:pdcriterion", "def:mechanism", "def:privacytest"),
    *("def:randprivacytest", "thm:dp", "thm:dpconn"),
    *("eq:gm:model", "eq:gm:seedbased_synthesis", "eq:gm:merit", "eq:gm:correlation"),
    *("eq:gm:constraint", "eq:gm:discretization", "eq:gm:entropy", "eq:gm:entropy_sensitivity"),
    *("eq:gm:n_sensitivity", "eq:gm:multinomial_probability", "eq:gm:dirichlet"),
    "eq:gm:mlparameters",
    *("tbl:acs13attrs", "tbl:acs13stats", "fig:acs_me_relimp", "fig:acs_me_acc"),
    *("fig:acs_single_sd", "fig:acs_pairs_sd", "tbl:acs13_classif_comp"),
    *("tbl:acs13_classif_comp_lr_svm", "tbl:acs_dfs", "fig:acs_time_scatter", "fig:acs_ptc"),
    *("thm:dp:seqc", "thm:dp:advc", "thm:dp:amplif", "lem:hsensitivity"),
    *("lem:fdstarexpr", "lem:decomp", "lem:ptratio", "obs:lap-test-bound", "lem:cbycan"),
    *("cor:cbycan", "lem:dpcore"),
]

# What the paper counts but does not label, and its symbols: each begins a row.
UNLABELLED = [
    *("Definition 2", "Definition 3", "Definition 4", "Eq. 14", "greedy search"),
    *("D_S, D_T, D_P", "M, y = M(d)", "P_G(i)", "ω", "σ", "maxcost", "bkt()", "H()", "Δ_H", "ε_H"),
    *("n_T", "ε_nT", "ε_p", "ε_L, δ_L", "ε_P, δ_P", "α", "n_{i,l}^c", "#c"),
    *("max_plausible", "max_check_plausible", "I_d(y), C_i(D, y)", "k", "k′", "k̃", "γ", "ε0", "t"),
    "ε, δ",
]

KIND = "def|thm|lem|cor|obs|eq|tbl|fig|alg|mech"
FUNCTION = re.compile(rf"`(?!(?:{KIND}):)([a-z_]+(?:\.[a-z_]+)*):(\w+(?:\.\w+)*)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
FILE = re.compile(r"`([\w/]+\.py)`")
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)[^)]*\)")


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of every row of every table, heads and rules left out."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "label":
            yield cells


def missing_labels(text: str) -> Iterator[str]:
    first = " ".join(cells[0] for cells in rows(text))
    yield from (label for label in LABELS if f"`{label}`" not in first)


def missing_symbols(text: str) -> Iterator[str]:
    first = [cells[0] for cells in rows(text)]
    for symbol in UNLABELLED:
        begins = (f"{symbol},", f"{symbol} (")
        if not any(cell == symbol or cell.startswith(begins) for cell in first):
            yield symbol


def unknown_labels(text: str) -> Iterator[str]:
    for label in re.findall(rf"`((?:{KIND}):[\w:-]+)`", text):
        if label not in LABELS:
            yield label


def dangling_functions(text: str) -> Iterator[str]:
    for module, name in FUNCTION.findall(text):
        try:
            found: Any = importlib.import_module(f"deniable.{module}")
        except ModuleNotFoundError:
            yield f"{module}:{name}"
            continue
        for part in name.split("."):
            fields = getattr(found, "__dataclass_fields__", {})
            if not hasattr(found, part) and part not in fields:
                yield f"{module}:{name}"
                break
            found = getattr(found, part, None)


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The functions of a file; none if there is no such file."""
    if not path.is_file():
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def dangling_tests(text: str) -> Iterator[str]:
    for path, name in TEST.findall(text):
        if not name.startswith("test_") or name not in functions_of(ROOT / path):
            yield f"{path}::{name}"


def dangling_files(text: str) -> Iterator[str]:
    places = (ROOT, ROOT / "src" / "deniable")
    for path in FILE.findall(text):
        if not any((place / path).is_file() for place in places):
            yield path


def dead_links(text: str, folder: Path = ROOT) -> Iterator[str]:
    yield from (link for link in LINK.findall(text) if not (folder / link).exists())


def rows_without_a_test(text: str) -> Iterator[str]:
    """A row has a function and a test, or says that it comes later."""
    for cells in rows(text):
        held = len(cells) == 4 and FUNCTION.search(cells[2]) and TEST.search(cells[3])
        excused = len(cells) == 4 and cells[3].startswith("not yet")
        if not (held or excused):
            yield cells[0]


@pytest.mark.parametrize(
    "rule",
    [missing_labels, missing_symbols, unknown_labels, rows_without_a_test],
    ids=lambda rule: rule.__name__,
)
def test_the_map_keeps_the_rule(rule):
    assert list(rule(MAP.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_is_there(path):
    text = path.read_text(encoding="utf-8")
    rules = [unknown_labels, dangling_functions, dangling_tests, dangling_files]
    named = [name for rule in rules for name in rule(text)]
    assert named + list(dead_links(text, path.parent)) == []


def test_the_documents_were_found():
    """All of the above is true of no files."""
    assert {MAP, ROOT / "docs" / "guarantee.md", ROOT / "CONTRIBUTING.md"} <= set(DOCUMENTS)


HERE = "`tests/test_paper_map.py::test_the_map_keeps_the_rule`"


@pytest.mark.parametrize(
    ("rule", "planted"),
    [
        (missing_labels, "| `thm:dp` | only one of them | | not yet |"),
        (missing_labels, "`eq:gm:merit`, in prose, is no row"),
        (missing_symbols, "| k and γ | together | | not yet |"),
        (unknown_labels, "| `thm:dq` | misspelt | | not yet |"),
        (dangling_functions, "| x | | `model.graphs:merit` | |"),
        (dangling_functions, "| x | | `model.graph:merits` | |"),
        (dangling_functions, "| x | | `model.graph:Graph.without_edge` | |"),
        (dangling_tests, f"| x | | | {HERE.replace('rule', 'rules')} |"),
        (dangling_tests, "| x | | | `tests/no_such_file.py::test_it` |"),
        (dangling_tests, "| x | | | `tests/test_paper_map.py::rows` |"),
        (dangling_files, "`model/graphs.py`"),
        (dead_links, "[nowhere](docs/no-such-page.md)"),
        (dead_links, "[nowhere](docs/no-such-page.md#part)"),
        (rows_without_a_test, "| x | a function alone | `model.graph:merit` | |"),
        (rows_without_a_test, f"| x | a test alone | | {HERE} |"),
        (rows_without_a_test, "| x | a cell too few | not yet |"),
    ],
)
def test_the_rule_catches_what_is_planted(rule, planted):
    assert list(rule(planted))


@pytest.mark.parametrize(
    ("rule", "fine"),
    [
        (dangling_functions, "| `thm:dp` | | `model.graph:merit`, `config:Config.max_cost` | |"),
        (dangling_functions, "| x | a field without default | `model.graph:Graph.parents` | |"),
        (dangling_tests, f"| x | | | {HERE} |"),
        (dangling_files, "`model/graph.py`, `tests/test_paper_map.py`, `.venv/bin/python`"),
        (dead_links, "[here](docs/paper-map.md#part), [there](https://example.org), [below](#x)"),
        (rows_without_a_test, f"| x | | `model.graph:merit` | {HERE} |"),
        (rows_without_a_test, "| label | meaning | function | test |\n|---|---|---|---|"),
    ],
)
def test_the_rule_lets_pass_what_keeps_it(rule, fine):
    assert not list(rule(fine))
