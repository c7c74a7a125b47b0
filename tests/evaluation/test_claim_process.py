"""Verification in a process of its own: the same claim, however the process ends."""

import subprocess
import sys

import pytest

from deniable.evaluation import claim_process
from deniable.evaluation.claim_process import reading_claim
from deniable.evaluation.release_claim import read_claim

pytestmark = pytest.mark.slow


@pytest.fixture
def started(monkeypatch):
    """Let every release have its process; collect the processes."""
    processes = []
    start = subprocess.Popen

    def popen(*arguments, **options):
        processes.append(start(*arguments, **options))
        return processes[-1]

    monkeypatch.setattr(claim_process, "_MIN_BYTES", 1)
    monkeypatch.setattr(claim_process, "count_cores", lambda: 2)
    monkeypatch.setattr(claim_process.subprocess, "Popen", popen)
    return processes


@pytest.mark.slow
@pytest.mark.parametrize("place", ["synthetic.csv", ""])
def test_the_claim_of_a_process_is_the_claim_read_here(release, started, place):
    with reading_claim(release / place) as wait_for_claim:
        claim = wait_for_claim()
    assert claim == read_claim(release / place)
    assert claim.holds
    assert [process.returncode for process in started] == [0]


@pytest.mark.slow
def test_a_changed_file_fails_in_a_process_too(release, tmp_path, started):
    changed = tmp_path / "synthetic.csv"
    changed.write_bytes((release / "synthetic.csv").read_bytes() + b"\n")
    (tmp_path / "manifest.json").write_bytes((release / "manifest.json").read_bytes())
    with reading_claim(changed) as wait_for_claim:
        assert wait_for_claim().failures == read_claim(changed).failures != ()
    assert len(started) == 1


@pytest.mark.slow
def test_records_without_a_manifest_have_no_claim(release, tmp_path, started):
    alone = tmp_path / "alone.csv"
    alone.write_bytes((release / "synthetic.csv").read_bytes())
    with reading_claim(alone) as wait_for_claim:
        assert wait_for_claim() is None
    assert len(started) == 1


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "import os; os.abort()"])
def test_a_process_that_fails_is_replaced_by_verification_here(
    release, started, monkeypatch, program
):
    def start(_synthetic):
        return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)

    monkeypatch.setattr(claim_process, "_start", start)
    with reading_claim(release) as wait_for_claim:
        assert wait_for_claim() == read_claim(release)
    assert started[0].returncode


def test_a_report_that_fails_ends_the_process(release, started):
    with pytest.raises(ZeroDivisionError), reading_claim(release):
        raise ZeroDivisionError
    assert started[0].returncode is not None


def test_small_releases_frames_and_single_cores_need_no_process(
    release, small_table, started, monkeypatch
):
    with reading_claim(small_table) as wait_for_claim:
        assert wait_for_claim() is None
    with monkeypatch.context() as patch:
        patch.setattr(claim_process, "_MIN_BYTES", 2**30)
        with reading_claim(release) as wait_for_claim:
            assert wait_for_claim().holds
    monkeypatch.setattr(claim_process, "count_cores", lambda: 1)
    with reading_claim(release) as wait_for_claim:
        assert wait_for_claim().holds
    assert started == []
