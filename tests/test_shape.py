"""The shape of the source: sizes, which way imports point, no hidden randomness, public names.

Each rule is a function from source text to complaints. It is run over the package, and over a
planted case that it must catch: a rule that cannot fail is no rule.
"""

import ast
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import deniable

pytestmark = pytest.mark.slow

ROOT = Path(deniable.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

MOST_LINES = 900
MOST_FUNCTION_LINES = 40

# The layers of the package, from the top down. A package imports packages of lower layers only;
# packages in one row do not import each other. A new package needs a place here.
LAYERS: list[set[str]] = [
    {"__main__"},
    {"cli"},
    {"studio"},
    {"reproduction"},
    {"audit"},
    {"evaluation"},
    {"answers"},
    {"verification", "drafting", "interchange", "demo"},
    {"paper"},
    {"pipeline"},
    {"config"},
    {"option"},
    {"release"},
    {"model"},
    {"counting"},
    {"data"},
    {"schema", "privacy"},
    {"arrays", "errors", "files", "html", "library_imports", "randomness", "workers"},
]
# Single modules that may import each other, as modules of one package may: never in a cycle.
FOUNDATION = LAYERS[-1]
# Parts of one package that must not import each other.
APART = [("model.pairwise", "model.paper"), ("model.paper", "model.pairwise")]
# Methods of an artefact import the higher layer that computes their results when they are called.
UPWARD = {
    ("release.artefact", "answers.query"),
    ("release.artefact", "answers.conditional_release"),
}
# A use of the rows, and what it must not know: see docs/adr/0011-engine-seam.md.
NEVER = [("pipeline.learn_model", "release"), ("counting", "model"), ("counting", "release")]

# The columns of the tables we are measured on: the package must not know them.
EXAMPLE_NAMES = {
    *("age", "wc", "edu", "ms", "occ", "rel", "race", "sex", "hpw", "waob", "incc", "cit"),
    *("agep", "cow", "schl", "occp", "relp", "rac1p", "wkhp", "wagp", "puma", "pincp"),
    *("workclass", "fnlwgt", "education-num", "marital-status", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "placesize", "eduspec", "socprof", "euribor3m"),
}
EXAMPLE_TABLE = re.compile(r"\bacs(\d\d)?\b|\bpums\b", re.IGNORECASE)


def module_of(path: Path) -> str:
    """Return the dotted name below ``deniable``: "model.graph", "config", "" for the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def package_modules() -> set[str]:
    return {module_of(path) for path in FILES}


# Folders, by the dotted names of their __init__.py.
PACKAGES = {module_of(path) for path in FILES if path.stem == "__init__"}


@cache
def parsed(source: str) -> ast.Module:
    """Parse a source, once for all rules. They only read the tree."""
    return ast.parse(source)


@cache
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """List all nodes of a source, once for all rules."""
    return tuple(ast.walk(parsed(source)))


# Sizes


def long_files(source: str, _module: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > MOST_LINES:
        yield f"{lines} lines, at most {MOST_LINES}"


def long_functions(source: str, _module: str) -> Iterator[str]:
    """From ``def`` to the last line, less the docstring: a contract may be as long as it is."""
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = lines_of(node)
            if ast.get_docstring(node) is not None:
                lines -= lines_of(node.body[0])
            if lines > MOST_FUNCTION_LINES:
                yield f"{node.name}: {lines} lines, at most {MOST_FUNCTION_LINES}"


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


# Imports


@cache
def imports(source: str) -> tuple[tuple[str, str], ...]:
    """Return the dotted module and the name of every import, wherever it stands."""
    found: list[tuple[str, str]] = []
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found += ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += ((module, alias.name) for alias in node.names)
    return tuple(found)


def imported_modules(source: str) -> Iterator[str]:
    """Yield the modules of the package that are imported, by their names below ``deniable``."""
    known = package_modules()
    for module, name in imports(source):
        if module == "deniable" or module.startswith("deniable."):
            below = module.removeprefix("deniable").removeprefix(".")
            inner = f"{below}.{name}".strip(".")
            yield inner if inner in known else below


def top_of(module: str) -> str:
    """Return the package of ``module``, or ``module`` itself where it is in none."""
    return module.partition(".")[0]


def rank(module: str) -> int | None:
    top = top_of(module)
    return next((at for at, layer in enumerate(LAYERS) if top in layer), None)


def wrong_imports(source: str, module: str) -> Iterator[str]:
    """Imports point down the layers."""
    if module == "":
        return  # the public names come from everywhere
    if any(name.startswith(".") for name, _ in imports(source)):
        yield "imports are written in full"
    place = rank(module)
    if place is None:
        yield f"{module} has no place in LAYERS"
        return
    for other in imported_modules(source):
        if other == "":
            yield "imports the package itself"
        elif (place_of_other := rank(other)) is None:
            yield f"{other} has no place in LAYERS"
        elif _is_within(module, other):
            if other == module:
                yield "imports itself"
        elif place_of_other <= place and (module, other) not in UPWARD:
            yield f"imports {other}, which is not in a lower layer"


def forbidden_imports(source: str, module: str) -> Iterator[str]:
    """Some modules must not know each other, whatever their layers."""
    for other in imported_modules(source):
        for one, two in (*APART, *NEVER):
            if _is_below(module, one) and _is_below(other, two):
                yield f"imports {other}: {one} must not know {two}"


def cluster_imports(source: str, module: str) -> Iterator[str]:
    """One package knows pyspark; the rest knows that package by its engine and session alone."""
    is_inside = _is_below(module, "counting.spark")
    for name, _ in imports(source):
        if top_of(name) in {"pyspark", "py4j"} and not is_inside:
            yield f"imports {name}"
    for other in imported_modules(source):
        is_entry = other in {"counting.spark.spark_engine", "counting.spark.spark_session"}
        if _is_below(other, "counting.spark") and not is_inside and not is_entry:
            yield f"imports {other}, which is inside of the Spark engine"


def late_imports(source: str, module: str) -> Iterator[str]:
    """Modules of ours that are imported by name, which hides them from the rules above."""
    for node in nodes_of(source):
        if isinstance(node, ast.Call) and dotted(node.func).endswith(
            ("import_module", "__import__")
        ):
            names = "".join(ast.unparse(argument) for argument in node.args)
            ours = "deniable" in names or not isinstance(node.args[0], ast.Constant)
            if ours and module != "":  # the package finds its public names so
                yield f"line {node.lineno}: {names}"


def _is_within(module: str, other: str) -> bool:
    """Whether two modules are in one package, or both in the foundation."""
    tops = top_of(module), top_of(other)
    return tops[0] == tops[1] or set(tops) <= FOUNDATION


def _is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle; none if there is no cycle."""
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return error.args[1]
    return []


def test_no_module_takes_part_in_an_import_cycle():
    graph = {
        module_of(path): {
            other
            for other in imported_modules(path.read_text(encoding="utf-8"))
            if (module_of(path), other) not in UPWARD
        }
        for path in FILES
        if module_of(path) != ""
    }
    assert cycles(graph) == []


def test_an_import_cycle_is_found():
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []


# Randomness, pickles, prints


def dotted(node: ast.AST) -> str:
    """Return "np.random" for the expression np.random; "" where it is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def hidden_randomness(source: str, module: str) -> Iterator[str]:
    if module == "randomness":
        return
    for name, part in imports(source):
        if top_of(name) in {"random", "secrets", "uuid"}:
            yield f"imports {name}"
        elif f"{name}.{part}" in {"numpy.random", "os.urandom", "os.getrandom"}:
            yield f"imports {name}.{part}"
        elif name.startswith("numpy.random"):
            yield f"imports {name}"
    for node in nodes_of(source):
        is_source = dotted(node) in {"np.random", "numpy.random", "os.urandom", "os.getrandom"}
        if is_source and isinstance(node, ast.expr):
            yield f"line {node.lineno}: {dotted(node)}"


def pickles(source: str, _module: str) -> Iterator[str]:
    for name, _ in imports(source):
        if top_of(name) in {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}:
            yield f"imports {name}"
    for node in nodes_of(source):
        if not (isinstance(node, ast.keyword) and node.arg == "allow_pickle"):
            continue
        if not (isinstance(node.value, ast.Constant) and node.value.value is False):
            yield f"line {node.value.lineno}: allow_pickle may be true"


def prints(source: str, module: str) -> Iterator[str]:
    if top_of(module) in {"cli", "__main__"}:
        return
    for node in nodes_of(source):
        if isinstance(node, ast.Call) and dotted(node.func) == "print":
            yield f"line {node.lineno}: print"


# The tables we are measured on


def example_names(source: str, _module: str) -> Iterator[str]:
    """Texts in code that name a column of an example; docstrings may."""
    docstrings = {
        id(node.value)
        for node in nodes_of(source)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes_of(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                continue
            text = node.value.strip()
            if text.lower() in EXAMPLE_NAMES or EXAMPLE_TABLE.search(text):
                yield f"line {node.lineno}: {text!r}"


# The rules, each with what it must catch and what it must let pass

LONG_FUNCTION = "def f():\n" + "    pass\n" * 40
FITTING_FUNCTION = "def f():\n" + "    pass\n" * 39

CASES: dict[Callable, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {
    long_files: (
        [("config", "x = 1\n" * 901)],
        [("config", "x = 1\n" * 900)],
    ),
    long_functions: (
        [
            ("config", LONG_FUNCTION),
            ("config", LONG_FUNCTION.replace("def", "async def")),
            ("config", "class C:\n" + re.sub("^", "    ", LONG_FUNCTION, flags=re.MULTILINE)),
        ],
        [("config", FITTING_FUNCTION)],
    ),
    wrong_imports: (
        [
            ("errors", "import deniable.config"),
            ("model.graph", "from deniable.release.artefact import Artefact"),
            ("model.graph", "from deniable.model.graph import Graph"),
            ("model.graph", "from deniable.model import graph"),
            ("model.graph", "from .correlation import Correlations"),
            ("model.graph", "from deniable import Schema"),
            ("model.graph", "def f():\n    from deniable.config import Config"),
            ("schema.schema", "from deniable.privacy.noise_laws import Law"),
            ("privacy.noise_laws", "from deniable.schema.schema import Schema"),
            ("schema.schema", "from deniable.data.codec import Codec"),
            ("counting.local", "from deniable.stranger.game import play"),
            ("stranger.game", "from deniable.counting.local import count"),
            ("stranger", "import os"),
            ("config", "import deniable.stranger"),
        ],
        [
            (
                "model.graph",
                "from deniable.model.paper.correlation import Correlations\nimport numpy",
            ),
            ("model.graph", "from deniable.model import alias_sampling"),
            ("model.graph", "from deniable.privacy.noise_laws import Law"),
            ("randomness", "from deniable.errors import ConfigError"),
            ("pipeline.api", "from deniable.counting.local import count"),
            ("", "from deniable.pipeline.api import learn"),
        ],
    ),
    forbidden_imports: (
        [
            ("model.paper.moments", "from deniable.model.pairwise.fit import fit_network"),
            ("model.pairwise.fit", "from deniable.model.paper import moments"),
            ("counting.local", "from deniable.model.graph import Graph"),
            ("counting.local", "from deniable.release.artefact import Artefact"),
            ("pipeline.learn_model", "from deniable.release.artefact import Artefact"),
        ],
        [
            ("pipeline.api", "from deniable.release.artefact import Artefact"),
            ("model.pairwise.fit", "from deniable.model.graph import Graph"),
        ],
    ),
    cluster_imports: (
        [
            ("data.codec", "import pyspark"),
            ("pipeline.api", "def f():\n    from pyspark.sql import SparkSession"),
            ("counting.local", "from py4j.protocol import Py4JError"),
            ("pipeline.api", "from deniable.counting.spark.code_blobs import BlobReader"),
        ],
        [
            ("counting.spark.spark_session", "from pyspark.sql import SparkSession"),
            ("pipeline.api", "from deniable.counting.spark.spark_engine import SparkEngine"),
        ],
    ),
    late_imports: (
        [
            ("release.artefact", "import_module('deniable.answers.query')"),
            ("release.artefact", "importlib.import_module('deniable.answers.query')"),
            ("release.artefact", "__import__('deniable.answers')"),
            ("release.artefact", "import_module(name)"),
        ],
        [
            ("", "import_module(f'deniable.{name}')"),
            ("library_imports", "import_module('polars')"),
        ],
    ),
    hidden_randomness: (
        [
            ("config", "import numpy as np\nrng = np.random.default_rng(1)"),
            ("config", "import numpy\nnumpy.random.seed(1)"),
            ("config", "from numpy import random"),
            ("config", "from numpy.random import Generator"),
            ("config", "import numpy.random as r"),
            ("config", "import random"),
            ("config", "def f():\n    import secrets"),
            ("config", "from secrets import token_bytes"),
            ("config", "import os\nos.urandom(8)"),
            ("config", "from os import urandom"),
        ],
        [
            ("randomness", "import os\nimport numpy as np\nnp.random.SFC64(os.urandom(8))"),
            ("config", "def f(rng):\n    return rng.random(3)"),
        ],
    ),
    pickles: (
        [
            ("config", "import pickle"),
            ("config", "from pickle import loads"),
            ("config", "import numpy as np\nnp.load('x', allow_pickle=True)"),
            ("config", "import numpy as np\nnp.load('x', allow_pickle=maybe)"),
        ],
        [("config", "import numpy as np\nnp.load('x', allow_pickle=False)")],
    ),
    prints: (
        [("config", "def f():\n    print('hello')")],
        [("cli", "print('hello')"), ("config", "console.print('hello')")],
    ),
    example_names: (
        [
            ("config", "if name == 'age':\n    pass"),
            ("config", "x = {'waob': 8}"),
            ("config", "x = ('hpw',)"),
            ("config", "x = 'WKHP'"),
            ("config", "x = 'acs13'"),
            ("config", "path = 'data/acs/train.csv'"),
            ("config", "def f(column='incc'):\n    pass"),
        ],
        [
            ("config", '"""Say "age" to a reader."""'),
            ("config", "def f():\n    '''sex'''\n    return 'message'"),
            ("config", "x = 'the age of the file; a race; pacs'"),
        ],
    ),
}
RULES = list(CASES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_rule(rule):
    complaints = [
        f"{path.relative_to(ROOT)}: {complaint}"
        for path in FILES
        for complaint in rule(path.read_text(encoding="utf-8"), module_of(path))
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [(rule, *case) for rule, (caught, _) in CASES.items() for case in caught],
)
def test_the_rule_catches_what_is_planted(rule, module, source):
    assert list(rule(source, module))


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [(rule, *case) for rule, (_, passed) in CASES.items() for case in passed],
)
def test_the_rule_lets_pass_what_keeps_it(rule, module, source):
    assert not list(rule(source, module))


def test_the_package_was_found():
    """All of the above is true of no files."""
    assert {"errors", "model.graph", "privacy.noise_laws", "release.release"} <= package_modules()


# Public names


def names_in_init() -> set[str]:
    """The names that ``__init__`` takes from the package, eagerly or for type checkers only."""
    source = (ROOT / "__init__.py").read_text(encoding="utf-8")
    return {name for module, name in imports(source) if module.startswith("deniable")}


def test_all_is_sorted_and_says_everything_once():
    public = getattr(deniable, "__all__", [])
    assert list(public) == sorted(set(public))


def test_all_is_what_the_package_takes_from_its_modules():
    assert set(getattr(deniable, "__all__", [])) == names_in_init()


@pytest.mark.parametrize("name", getattr(deniable, "__all__", []))
def test_a_public_name_is_there(name):
    assert name in dir(deniable)
    assert getattr(deniable, name) is not None


def test_nothing_of_ours_is_public_but_what_all_says():
    """Submodules are there once imported; they are not names."""
    public = set(getattr(deniable, "__all__", []))
    ours = {
        name
        for name, value in vars(deniable).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("deniable")
    }
    assert ours <= public


def test_a_name_that_is_not_there_is_an_attribute_error():
    module = importlib.import_module("deniable")
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = module.no_such_name
