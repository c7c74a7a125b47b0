"""From raw person files to the paper's table, on small files made here."""

import gzip
import zipfile

import pytest

from deniable.data.table_io import read_codes
from deniable.errors import DataError
from deniable.reproduction.pums import extract_people
from deniable.schema.schema import Schema

RAW = "RT,SERIALNO,AGEP,COW,SCHL,MAR,OCCP,RELP,RAC1P,SEX,WKHP,WAOB,WAGP"
# Somebody of 40, in private employment, a physician by code 3060, white, born in the country.
WHOLE = "P,0000001,40,1,24,1,3060,00,1,1,045,1,90000"


def write(folder, *lines, name="person.csv"):
    file = folder / name
    file.write_text("\n".join((RAW, *lines)) + "\n")
    return file


def test_a_complete_record_is_encoded_as_in_the_paper(tmp_path):
    found = extract_people([write(tmp_path, WHOLE)])
    assert (found.raw, found.clean) == (1, 1)
    assert found.frame.to_dicts() == [
        {
            "age": 24, "wc": 1, "edu": 24, "ms": 1, "occ": 15, "rel": 1, "race": 5, "sex": 1,
            "hpw": 45, "waob": 1, "incc": 2,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        (",40,", ",16,", "AGEP"),
        (",40,1,", ",40,9,", "COW"),
        (",24,1,", ",,1,", "SCHL"),
        (",3060,", ",9920,", "OCCP"),
        (",3060,", ",,", "OCCP"),
        (",045,", ",,", "WKHP"),
        (",90000", ",0", "WAGP"),
        (",90000", ",", "WAGP"),
    ],
)
def test_an_incomplete_record_is_dropped_and_counted(tmp_path, old, new, column):
    assert old in WHOLE
    found = extract_people([write(tmp_path, WHOLE, WHOLE.replace(old, new, 1))])
    assert (found.raw, found.clean) == (2, 1)
    assert {name: n for name, n in found.dropped.items() if n} == {column: 1}


@pytest.mark.parametrize(("wage", "code"), [(1, 1), (50_000, 1), (50_001, 2)])
def test_fifty_thousand_is_the_edge_of_income(tmp_path, wage, code):
    file = write(tmp_path, WHOLE.replace("90000", str(wage)))
    assert extract_people([file]).frame["incc"].to_list() == [code]


@pytest.mark.parametrize(
    ("occupation", "group"),
    [(10, 16), (430, 16), (500, 1), (800, 12), (1005, 3), (4965, 23), (9130, 25), (9830, 17)],
)
def test_occupations_are_grouped_as_the_census_bureau_does(tmp_path, occupation, group):
    file = write(tmp_path, WHOLE.replace("3060", f"{occupation:04}"))
    assert extract_people([file]).frame["occ"].to_list() == [group]


def test_races_are_grouped_by_five(tmp_path):
    lines = [WHOLE.replace(",00,1,1,", f",00,{race},1,") for race in range(1, 10)]
    found = extract_people([write(tmp_path, *lines)])
    assert found.frame["race"].to_list() == [5, 3, 1, 1, 1, 2, 2, 4, 4]


def test_several_files_are_read_as_one_and_packed_ones_too(tmp_path):
    one = write(tmp_path, WHOLE)
    two = tmp_path / "b.csv.gz"
    two.write_bytes(gzip.compress(one.read_bytes()))
    assert extract_people([one, two]).clean == 2


def test_what_is_extracted_fits_the_schema_of_the_example(tmp_path, examples):
    schema = Schema.read(examples / "acs13" / "schema.toml")
    codes, _ = read_codes(extract_people([write(tmp_path, WHOLE)]).frame, schema)
    assert codes.shape == (1, 11)


def test_a_missing_column_is_named(tmp_path):
    file = tmp_path / "other.csv"
    file.write_text(RAW.replace("RELP", "RELSHIPP") + "\n" + WHOLE + "\n")
    with pytest.raises(DataError, match="no column RELP"):
        extract_people([file])


def test_unreadable_files_are_reported_without_their_cells(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        extract_people([tmp_path / "nothing.csv"])
    with pytest.raises(DataError, match="no file was given"):
        extract_people([])
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="cannot be read as CSV"):
        extract_people([tmp_path / "empty.csv"])
    packed = tmp_path / "packed.csv"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("person.csv", f"{RAW}\n{WHOLE},tinsmith\n")
    with pytest.raises(DataError) as fault:
        extract_people([packed])
    assert "Unpack" in str(fault.value)
    assert "tinsmith" not in str(fault.value)
