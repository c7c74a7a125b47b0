"""``generate`` with conditions and given rows, and ``verify`` with an artefact, as commands."""

from pathlib import Path

import pytest

from conftest import PETS

pytestmark = pytest.mark.slow


def test_given_rows_are_completed_internally_with_a_warning(deniable, artefact, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text(f"years,pet\n30,\n,{PETS[0]}\n45,\n")
    run = ("generate", artefact, "--given", rows, "--records-each", 2, "--out", "r.csv", "--key", 1)
    result = deniable(*run)
    assert result.code == 0
    assert "6 records in r.csv.internal" in result.out
    assert "must not leave" in result.err
    quiet = deniable(*run[:-3], "q.csv", "--quiet")
    assert quiet.out == ""
    assert "q.csv.internal" in quiet.err
    assert "must not leave" in quiet.err
    checked = deniable("verify", "r.csv.internal", "--artefact", artefact, "--given", rows)
    assert checked.code == 0
    assert "regenerated records" in checked.out
    public = deniable(*run[:-4], "--out", "p.csv", "--given-is-public", "--json").json
    assert (public["file"], public["internal"], public["records"]) == ("p.csv", False, 6)


def test_conditions_and_shares(deniable, artefact):
    result = deniable(
        "generate",
        artefact,
        "--where",
        "years >= 40 and boats < 3",
        "--records",
        50,
        "--out",
        "w.csv",
    )
    assert result.code == 0
    assert deniable("verify", "w.csv", "--artefact", artefact).code == 0
    result = deniable("generate", artefact, "--balance", "home", "--records", 50, "--out", "b.csv")
    assert result.code == 0


BAD = [
    (("--out", "r.csv"), "--records"),
    (("--records", 5, "--given-is-public", "--out", "r.csv"), "need --given"),
    (("--records", 5, "--where", "year > 5", "--out", "r.csv"), 'did you mean "years"'),
    (("--records", 5, "--where", "years > 70 and years < 60", "--out", "r.csv"), "no value"),
    (("--given", "absent.csv", "--out", "r.csv"), "no such file"),
    (("--given", "absent.csv", "--records", 3, "--out", "r.csv"), "exclude each other"),
    (("--records", 5, "--balance", "years", "--where", "years > 5", "--out", "r.csv"), "balance"),
]


@pytest.mark.parametrize(("args", "words"), BAD)
def test_bad_requests_end_with_exit_code_two(deniable, artefact, args, words):
    assert deniable("generate", artefact, *args).complains(2, words)


def test_a_bad_cell_is_never_shown(deniable, artefact, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("years,pet\n30,\n44,walrus\n")
    result = deniable("generate", artefact, "--given", rows, "--out", "r.csv")
    assert result.complains(2, 'column "pet", line 3 of rows.csv')
    assert "walrus" not in result.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--master", "spark://h:7077"), "--master and --accept-open-cluster need --engine spark"),
        (("--accept-open-cluster",), "--master and --accept-open-cluster need --engine spark"),
        (("--format", "parquet"), "--format needs --engine spark"),
    ],
)
def test_options_of_a_cluster_are_not_ignored(deniable, artefact, words, expected):
    result = deniable("generate", artefact, "--records", 5, "--out", "n.csv", *words)
    assert result.code == 2
    assert expected in result.err
    assert not Path("n.csv").exists()
