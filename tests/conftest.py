"""What several folders of tests share: a small table, and the rule for tests of the real ones."""

import os
import threading
import zlib
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deniable.arrays import CODE, Codes
from deniable.data.codec import Codec
from deniable.pipeline import api
from deniable.schema.attribute import Attribute
from deniable.schema.schema import Schema

# Texts that nobody would write by chance: where one shows, a cell has leaked.
TRADES = ("kelpfarmer", "wheelwright", "tinsmith", "lacemaker")
HOMES = ("houseboat", "windmill")
PETS = ("axolotl", "capybara", "pangolin")
# Marks of tests that are skipped where something is missing, except in CI.
NEEDS = {
    "shared": "the real tables",
    "browser": "Chromium and axe-core",
    "spark": "Java and pyspark",
}


ROOT = Path(__file__).parents[1]
# Folders of tests that cover what must be covered: not by the way of whole runs. Those of answers
# verify records given rows.
COVERED = {"answers", "privacy", "release", "verification", "model"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Trace, where coverage is measured, only the tests of what must be covered.

    To trace all of them would take a quarter longer. A traced test takes nearly twice its time, so
    those that run one path many times are not traced either: they are marked ``untraced``.
    """
    if config.pluginmanager.hasplugin("_cov"):
        for item in items:
            is_elsewhere = COVERED.isdisjoint(item.path.relative_to(ROOT).parts)
            if is_elsewhere or item.get_closest_marker("untraced") is not None:
                item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail, where CI is set, what would be skipped for want of the real tables or of a browser."""
    report = yield
    needs = [name for name in NEEDS if item.get_closest_marker(name) is not None]
    if needs and report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        missing = " and ".join(NEEDS[name] for name in needs)
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where CI is set: it needs {missing}"
    return report


def keyed_bytes(name: str) -> Callable[[int], bytes]:
    """Return what gives random bytes in place of the system: those of a key, a name."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    one_at_a_time = threading.Lock()

    def urandom(size: int) -> bytes:
        with one_at_a_time:
            return generator.bytes(size)

    return urandom


@pytest.fixture(autouse=True)
def fixed_noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the system's random bytes those of a key, the test's own name.

    A test of chance then passes always or never, and not once in a million runs otherwise. What
    is marked ``system_noise`` gets the system's own.
    """
    if request.node.get_closest_marker("system_noise") is None:
        monkeypatch.setattr(os, "urandom", keyed_bytes(request.node.nodeid))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Do the same for what several tests share, which is made before any of them: its own name."""
    if fixturedef.scope == "function":
        return (yield)
    index = request.param_index  # type: ignore[attr-defined]  # of a subclass that is not public
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{index}]"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", keyed_bytes(name))
        return (yield)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the real tables; no user has it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real tables are not here: {folder}")
    return folder


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of the examples."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def small_schema() -> Schema:
    """Five attributes: bucketed numbers, missing cells, few values."""
    return Schema(
        (
            Attribute(name="years", kind="integer", values=range(20, 80)).with_bucket_width(10),
            Attribute(name="trade", kind="categorical", values=TRADES, missing=("?",)),
            Attribute(name="home", kind="categorical", values=HOMES),
            Attribute(name="boats", kind="integer", values=range(6)),
            Attribute(name="pet", kind="categorical", values=PETS),
        ),
        rows_max=10_000,
    )


@pytest.fixture(scope="session")
def small_codes() -> Codes:
    """2,000 records: pet, home and trade hang together, years is spread out."""
    rng = np.random.default_rng(20_170)
    n = 2_000
    pet = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    home = np.where(rng.random(n) < 0.8, pet > 0, rng.random(n) < 0.5).astype(int)
    trade = np.where(rng.random(n) < 0.7, pet + home, rng.choice(5, n, p=[0.4, 0.3, 0.1, 0.1, 0.1]))
    boats = rng.binomial(5, 0.1 + 0.2 * home)
    years = np.clip(rng.binomial(59, 0.3 + 0.1 * boats), 0, 59)
    return np.asfortranarray(np.stack([years, trade, home, boats, pet], axis=1).astype(CODE))


@pytest.fixture(scope="session")
def small_table(small_schema: Schema, small_codes: Codes) -> pl.DataFrame:
    """The same records as values."""
    return Codec(small_schema).decode(small_codes)


@pytest.fixture(scope="session")
def small_files(
    tmp_path_factory: pytest.TempPathFactory, small_schema: Schema, small_table: pl.DataFrame
) -> Path:
    """A folder with table.csv and schema.toml. Tests write elsewhere."""
    folder = tmp_path_factory.mktemp("small")
    small_table.with_columns(pl.col("trade").fill_null("?")).write_csv(folder / "table.csv")
    small_schema.write(folder / "schema.toml")
    return folder


# The command line


@pytest.fixture
def deniable(monkeypatch, capsys, tmp_path):
    """Run the program in this process, in an empty folder."""
    from command_line import runner  # noqa: PLC0415 - it imports the texts of this file

    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def given(small_files):
    """The table and its schema, as arguments."""
    return (small_files / "table.csv", "--schema", small_files / "schema.toml")


@pytest.fixture(scope="module")
def artefact(tmp_path_factory, small_table, small_schema):
    folder = tmp_path_factory.mktemp("learnt") / "artefact"
    api.learn(small_table, small_schema, k=20, omega="3").save(folder)
    return folder
