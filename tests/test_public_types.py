"""The types of the public API: what a type checker knows, and what is refused at run time."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pytest

import deniable as dn
from deniable.config import options
from deniable.evaluation.effort import Effort

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

if TYPE_CHECKING:
    from collections.abc import Callable

    from deniable.drafting.draft import Draft
    from deniable.evaluation.metrics import Metrics
    from deniable.model.pairwise.kept_dependences import KeptDependences
    from deniable.pipeline.run_plan import RunPlan
    from deniable.pipeline.synthesizer import FittedSynthesizer
    from deniable.release.query_answer import QueryAnswer
    from deniable.verification.verify import VerificationReport

    def check_functions(table: object, schema: dn.Schema, path: Path) -> None:
        """Never called: ``mypy --config-file tests/mypy.ini tests`` checks it."""
        assert_type(dn.learn(table, schema, epsilon=1, k=20, mode="one-shot"), dn.Artefact)
        assert_type(dn.learn(table, path, omega=3), dn.Artefact)
        assert_type(dn.learn(table, "schema.toml", omega="3"), dn.Artefact)
        assert_type(dn.synthesize(table, path, records=5, key=1), dn.Release)
        assert_type(dn.plan("schema.toml", records=5), RunPlan)
        assert_type(dn.plan("schema.toml", target=["income"]), RunPlan)
        assert_type(dn.learn(table, schema, target=("income", "sex")), dn.Artefact)
        assert_type(dn.generate(path, 5, key=1, workers=2), dn.Release)
        assert_type(dn.verify(path, against=table), VerificationReport)
        assert_type(dn.evaluate(table, path, "schema.toml", out="report"), Metrics)
        assert_type(dn.evaluate(table, dn.generate(path, 5), schema), Metrics)
        assert_type(dn.draft_schema(table, draft_epsilon=0.5), Draft)
        assert_type(dn.load("artefact"), dn.Artefact)

    def check_results(artefact: dn.Artefact, release: dn.Release, table: object) -> None:
        fitted = dn.Synthesizer(epsilon=1.0, k=20).fit(table, schema="schema.toml")
        assert_type(fitted, FittedSynthesizer)
        assert_type(dn.Synthesizer(schema=Path("s.toml")).fit(table), FittedSynthesizer)
        # A data frame of the library that the table came from, which need not be installed.
        assert_type(fitted.sample(5, key=1), Any)
        assert_type(release.frame(), Any)
        assert_type(release.records, Any)
        assert_type(artefact.epsilon, float)
        assert_type(artefact.delta, float)
        assert_type(artefact.k, int | None)
        assert_type(artefact.kept, KeptDependences | None)
        assert_type(artefact.guarantee, str)
        assert_type(artefact.query("age", where="age > 5"), QueryAnswer)
        assert_type(dn.query(artefact, ["age", "sex"]), QueryAnswer)
        assert_type(release.guarantee, str)
        write: Callable[[str | Path], None] = release.write
        write("folder")
        release.write("folder", file_format="parquet")


# What mypy says of a program that uses the package

SNIPPETS = {
    "right": 'dn.learn("t.csv", "schema.toml", epsilon=1, k=20, mode="one-shot", omega=3)',
    "right_path": 'dn.evaluate("t.csv", Path("r.csv"), Path("schema.toml"), out="report")',
    "misspelt_keyword": 'dn.learn("t.csv", "schema.toml", epsilonn=1)',
    "text_for_number": 'dn.learn("t.csv", "schema.toml", k="many")',
    "unknown_mode": 'dn.synthesize("t.csv", "schema.toml", records=5, mode="magic")',
    "number_for_schema": 'dn.plan(5)',
    "no_records": 'dn.synthesize("t.csv", "schema.toml")',
    "text_for_records": 'dn.generate("artefact", "5")',
    "wrong_result": 'assert_type(dn.load("artefact").epsilon, str)',
}  # fmt: skip
COMPLAINTS = {
    "misspelt_keyword": r'Unexpected keyword argument "epsilonn" .*did you mean "epsilon"',
    "text_for_number": r'Argument "k" to "learn" has incompatible type "str"; expected "int"',
    "unknown_mode": r'Argument "mode" to "synthesize" has incompatible type .*magic',
    "number_for_schema": r'Argument 1 to "plan" has incompatible type "int"',
    "no_records": r'Missing named argument "records"',
    "text_for_records": r'Argument 2 to "generate" has incompatible type "str"',
    "wrong_result": r'Expression is of type "float", not "str"',
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory) -> dict[str, list[str]]:
    """Check all snippets in one strict run; list the errors of each."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("snippets")
    for name, call in SNIPPETS.items():
        head = "from pathlib import Path\nfrom typing import assert_type\nimport deniable as dn\n"
        (folder / f"{name}.py").write_text(f"{head}{call}\n")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", folder],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert run.returncode == 1, run.stderr
    found: dict[str, list[str]] = {name: [] for name in SNIPPETS}
    for line in run.stdout.splitlines():
        if match := re.search(r"(\w+)\.py:\d+: error: (.*)", line):
            found[match[1]].append(match[2])
    return found


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - COMPLAINTS.keys()))
def test_mypy_accepts_a_correct_call(complaints, name):
    assert complaints[name] == []


@pytest.mark.parametrize("name", COMPLAINTS)
def test_mypy_reports_a_wrong_call(complaints, name):
    (complaint,) = complaints[name]
    assert re.search(COMPLAINTS[name], complaint)


# At run time

QUICK = {"epsilon": float("inf"), "mode": "seedless"}


def use_schema(name, schema, table):
    """Call a public function with ``schema``."""
    calls = {
        "plan": lambda: dn.plan(schema),
        "learn": lambda: dn.learn(table, schema, **QUICK),
        "synthesize": lambda: dn.synthesize(table, schema, records=5, **QUICK),
        "fit": lambda: dn.Synthesizer(**QUICK).fit(table, schema=schema),
        "evaluate": lambda: dn.evaluate(
            table, table, schema, effort=Effort(runs=1, rows=50, trees=2, game=20)
        ),
    }
    return calls[name]()


FUNCTIONS = ["plan", "learn", "synthesize", "fit", "evaluate"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_path_is_accepted_for_a_schema(name, small_files, small_table):
    path = small_files / "schema.toml"
    kinds = {type(use_schema(name, each, small_table)) for each in (str(path), path)}
    assert kinds == {type(use_schema(name, dn.Schema.read(path), small_table))}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("schema", "kind"), [(5, "int"), (None, "NoneType"), ({"format": 1}, "dict")]
)
def test_an_object_that_is_no_schema_is_refused_before_the_table_is_read(name, schema, kind):
    message = rf"schema is a {kind}: give a deniable\.Schema, or"
    if (name, schema) == ("fit", None):  # not given
        message = "there is no schema: give fit one, as in"
    with pytest.raises(dn.ConfigError, match=message):
        use_schema(name, schema, "absent.csv")


@pytest.mark.parametrize("function", [dn.plan, dn.learn, dn.synthesize, dn.Synthesizer])
def test_the_signature_shows_the_options_that_everyone_sets(function):
    """An editor shows them with their defaults and descriptions, which are those of ``Config``."""
    parameters = inspect.signature(function).parameters
    described = " ".join(inspect.getdoc(function).split())
    for name in ("epsilon", "delta", "k"):
        assert parameters[name].default == getattr(dn.Config(), name)
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert f"{name}: {options()[name].text}" in described


@pytest.mark.parametrize("name", ["epsilon", "delta", "k"])
def test_no_profile_sets_an_option_whose_default_a_signature_shows(name):
    """Since a default counts as given there: a profile's own would be lost."""
    assert getattr(dn.Config.assemble({"profile": "paper"}), name) == getattr(dn.Config(), name)


@pytest.mark.parametrize("value", [1, None])
@pytest.mark.parametrize(
    "call",
    [dn.plan, lambda s, **more: dn.learn("absent.csv", s, **more),
     lambda s, **more: dn.synthesize("absent.csv", s, records=5, **more),
     lambda _, **more: dn.Synthesizer(**more)],
    ids=["plan", "learn", "synthesize", "Synthesizer"],
)  # fmt: skip
def test_an_unknown_keyword_is_named(call, small_schema, value):
    """Also without a value: a misspelt keyword must not look as if it was used."""
    with pytest.raises(dn.ConfigError, match='no option "epsilonn"'):
        call(small_schema, epsilonn=value)


@pytest.fixture(scope="module")
def artefact(small_table, small_schema):
    return dn.learn(small_table, small_schema, **QUICK)


RECORDS = ["5", None, True, 5.0, float("nan"), [5]]


@pytest.mark.parametrize("records", RECORDS, ids=repr)
def test_records_must_be_an_integer(artefact, small_schema, records):
    calls = [
        lambda: dn.synthesize("absent.csv", small_schema, records=records),
        lambda: dn.synthesize("absent.csv", small_schema, records=records, mode="randomized"),
        lambda: dn.generate(artefact, records),
        lambda: artefact.generate(records),
    ]
    if records is not None:
        calls.append(lambda: dn.plan(small_schema, records=records))
    for call in calls:
        with pytest.raises(dn.ConfigError, match=r"^records = .*: must be an integer"):
            call()


@pytest.mark.parametrize("key", ["x", True, 1.0, -1, 2**128], ids=repr)
def test_a_key_must_be_an_integer_and_is_checked_before_the_table_is_read(
    artefact, small_schema, key
):
    for call in (
        lambda: dn.synthesize("absent.csv", small_schema, records=5, key=key),
        lambda: dn.generate(artefact, 5, key=key),
    ):
        with pytest.raises(dn.ConfigError, match="key must be an integer"):
            call()


@pytest.mark.parametrize("other", [5, None, {}])
def test_an_object_that_is_no_artefact_is_refused(other):
    with pytest.raises(dn.ConfigError, match=r"artefact is a .*: give a deniable\.Artefact"):
        dn.generate(other, 5)
