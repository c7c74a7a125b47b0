"""fit, then sample: the same story in the words people know."""

import dataclasses

import polars as pl
import pytest

from deniable import Synthesizer
from deniable.data.codec import Codec
from deniable.errors import ConfigError
from deniable.pipeline.synthesizer import FittedSynthesizer
from deniable.release.artefact import Artefact

OPTIONS = {"epsilon": float("inf"), "k": 20, "omega": "3"}


@pytest.fixture(scope="module")
def fitted(small_table, small_schema):
    return Synthesizer(**OPTIONS).fit(small_table, schema=small_schema)


def test_what_is_sampled_fits_the_schema(fitted, small_schema):
    frame = fitted.sample(1_000)
    assert frame.height == 1_000
    assert len(Codec(small_schema).encode(frame)) == 1_000


def test_it_is_the_same_as_learn_and_generate(fitted):
    assert isinstance(fitted.artefact, Artefact)
    assert fitted.sample(500, key=7).equals(fitted.artefact.generate(500, key=7))
    assert fitted.sample(500, key=7).equals(fitted.sample(500, key=7))
    assert not fitted.sample(500).equals(fitted.sample(500))


def test_the_schema_is_given_to_the_constructor_or_to_fit(
    small_table, small_schema, small_files, fitted
):
    for schema in (small_schema, small_files / "schema.toml", str(small_files / "schema.toml")):
        held = Synthesizer(schema=schema, **OPTIONS).fit(small_table)
        assert held.sample(50, key=7).equals(fitted.sample(50, key=7))
    other = dataclasses.replace(small_schema, rows_max=5_000)
    refitted = Synthesizer(schema=other, **OPTIONS).fit(small_table, schema=small_schema)
    assert refitted.artefact.schema == small_schema
    with pytest.raises(ConfigError, match="no schema: give fit one"):
        Synthesizer(**OPTIONS).fit(small_table)
    with pytest.raises(ConfigError, match="schema is a int"):
        Synthesizer(schema=5)


def test_the_guarantee_is_that_of_the_artefact(fitted, small_table, small_schema):
    assert fitted.guarantee == fitted.artefact.guarantee
    assert fitted.guarantee.startswith("No privacy is claimed")
    private = Synthesizer(mode="seedless").fit(small_table, schema=small_schema)
    assert "differentially private" in private.guarantee


def test_the_kind_of_frame_comes_back(small_table, small_schema):
    pd = pytest.importorskip("pandas")
    table = small_table.to_pandas()
    sampled = Synthesizer(**OPTIONS).fit(table, schema=small_schema).sample(50)
    assert isinstance(sampled, pd.DataFrame)
    assert sampled.dtypes.to_dict() == table.dtypes.to_dict()


def test_a_path_will_do(small_files, small_schema):
    sampled = Synthesizer(**OPTIONS).fit(small_files / "table.csv", schema=small_schema).sample(5)
    assert isinstance(sampled, pl.DataFrame)


@pytest.mark.parametrize(
    ("options", "name"), [({"epsilon": -1}, "epsilon"), ({"kk": 5}, "kk"), ({"mode": "x"}, "mode")]
)
def test_options_are_checked_at_once(options, name):
    with pytest.raises(ConfigError, match=name):
        Synthesizer(**options)


@pytest.mark.parametrize("mode", ["tested", "randomized"])
def test_a_mode_that_needs_the_table_cannot_be_fitted(small_table, small_schema, mode):
    with pytest.raises(ConfigError, match="needs the table while it generates"):
        Synthesizer(mode=mode).fit(small_table, schema=small_schema)


def test_fit_does_not_change_the_synthesizer(small_table, small_schema):
    """One choice of options serves many tables; nothing is half-ready."""
    synthesizer = Synthesizer(**OPTIONS)
    one = synthesizer.fit(small_table, schema=small_schema)
    two = synthesizer.fit(small_table.head(500), schema=small_schema)
    assert one is not two
    with pytest.raises(ConfigError, match="what fit returns"):
        synthesizer.sample(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.artefact = two.artefact  # type: ignore[misc]  # it is frozen: that is the point
    assert isinstance(one, FittedSynthesizer)


@pytest.mark.parametrize("records", [0, -1])
def test_no_records_cannot_be_sampled(fitted, records):
    with pytest.raises(ConfigError, match="at least 1"):
        fitted.sample(records)
