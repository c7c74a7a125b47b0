"""Records of a release: every reading yields the same ones; faults keep their kind."""

from dataclasses import dataclass

import numpy as np
import pytest

from deniable.errors import BudgetError, InvariantError, OutputError
from deniable.randomness import Keyed
from deniable.release.records import KeptRecords, decode_blocks, write_records


@dataclass(frozen=True)
class BrokenRecords:
    """One block, then an error: fewer records than announced."""

    codes: np.ndarray
    number: int
    error: Exception | None = None

    def blocks(self):
        yield self.codes
        if self.error is not None:
            raise self.error


def test_kept_records_are_the_same_at_every_reading(small_codes):
    kept = KeptRecords.collect([small_codes[:3], small_codes[3:]], columns=small_codes.shape[1])
    assert kept.number == len(small_codes)
    for _ in range(2):
        assert np.array_equal(np.concatenate(list(kept.blocks())), small_codes)


def test_fewer_records_than_announced_are_a_bug(small_schema, small_codes):
    records = BrokenRecords(small_codes, len(small_codes) + 1)
    with pytest.raises(InvariantError, match="records were generated"):
        list(decode_blocks(records, small_schema, Keyed(1)))


@pytest.mark.parametrize("name", ["records.csv", "records.parquet", "records.csv.gz"])
def test_records_below_a_file_are_an_output_error(tmp_path, small_schema, small_codes, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be written"):
        write_records(tmp_path / "file" / name, KeptRecords(small_codes), small_schema, Keyed(1))


def test_an_error_while_drawing_is_not_an_output_error(tmp_path, small_schema, small_codes):
    records = BrokenRecords(small_codes, len(small_codes), BudgetError("too few passed"))
    with pytest.raises(BudgetError, match="too few passed"):
        write_records(tmp_path / "records.csv", records, small_schema, Keyed(1))
