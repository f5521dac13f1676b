"""Ranks that fail, hang, shout and misbehave; each ends with the right word, the right code, and nothing left on a node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system import scripts
from tests.system.cli import Learner

pytestmark = pytest.mark.system


def start(lab: Learner, tmp_path: Path, name: str, *more: str, code: int) -> str:
    """Run one of the scripts on both nodes; what was said."""
    typed = lab.types("run", "--script", scripts.write(tmp_path, name), "--launcher", "python", *more, code=code)
    assert "Traceback" not in typed.err
    lab.check_nothing_runs()
    return typed.out + typed.err


def test_a_rank_that_exits_is_named_with_its_last_lines(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "exits", code=4)
    assert "rank 1 on node1 was the first to fail, with code 3" in said
    assert "rank 1 begins" in said
    record = lab.newest_run()
    assert record["state"] == "failed"
    assert record["first_failure"]["rank"] == 1
    assert f"gpucourse logs {record['id']} --rank 1" in said


@pytest.mark.slow
def test_a_rank_that_exits_under_torchrun(lab: Learner, tmp_path: Path) -> None:
    typed = lab.types("run", "--script", scripts.write(tmp_path, "exits"), code=4)
    assert "rank 1 on node1 was the first to fail, with code 3" in typed.out
    lab.check_nothing_runs()
    assert "ChildFailedError" in (lab.run_folder() / "logs/node1-launcher.log").read_text()


def test_a_rank_that_hangs_meets_the_time_limit(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "hangs", "--timeout", "2s", code=4)
    assert "time limit" in said
    assert lab.newest_run()["state"] == "timed_out"


@pytest.mark.slow
def test_two_hundred_megabytes_arrive_byte_for_byte(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "loud", "--nodes", "1", code=0)
    log = lab.run_folder() / "logs/node0-rank0.log"
    assert log.stat().st_size == 200 * 10000 * 98
    with log.open("rb") as file:
        assert all(file.read(98 * 10000) == (b"0: " + b"x" * 94 + b"\n") * 10000 for _ in range(200))
    assert len(said) > 1000
    log.unlink()


def test_escapes_and_bytes_that_are_no_text(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "escapes", code=0)
    assert "\x1b" not in said
    assert "\x07" not in said
    raw = b"\x1b[2J\x1b]0;owned\x07\xff\xfe bad \x80 utf\r\nnext\n"
    assert (lab.run_folder() / "logs/node0-rank0.log").read_bytes() == raw


def test_links_that_lead_out_are_refused_by_name(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "links", code=0)
    outputs = lab.run_folder() / "outputs/node0"
    assert (outputs / "good.txt").read_text() == "good"
    assert not (outputs / "leak").exists()
    assert not (outputs / "dirlink").exists()
    refused = {(item["node"], item["name"]) for item in lab.newest_run()["refused"]}
    assert {("node0", "leak"), ("node0", "dirlink"), ("node1", "leak"), ("node1", "dirlink")} <= refused
    assert "leak" in said
    assert not [path for path in outputs.iterdir() if "ird" in path.name], "a line break in a name would forge a line"
    [name] = {name for node, name in refused if "ird" in name}
    assert "\n" not in name


def test_a_huge_file_stays_on_the_node_and_is_named_with_the_limit(lab: Learner, tmp_path: Path) -> None:
    said = start(lab, tmp_path, "huge", "--nodes", "1", code=0)
    assert (lab.run_folder() / "outputs/node0/small.txt").exists()
    assert not (lab.run_folder() / "outputs/node0/huge.bin").exists()
    assert "huge.bin" in said
    assert "GiB" in said


def test_a_script_that_cannot_start(lab: Learner, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def :\n")
    typed = lab.types("run", "--script", str(tmp_path / "broken.py"), "--launcher", "python", code=4)
    assert "SyntaxError" in typed.err


def test_metrics_that_are_no_json_are_said(lab: Learner, tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "import os, pathlib\npathlib.Path(os.environ['GPUCOURSE_OUT'], 'metrics.json').write_text('{oops')\n"
    )
    typed = lab.types("run", "--script", str(tmp_path / "odd.py"), "--launcher", "python", code=0)
    assert "is not JSON" in typed.err


def test_a_check_that_fails_says_what_was_seen_and_where_to_look(lab: Learner, tmp_path: Path) -> None:
    wrong = {"ranks": [{"rank": 0, "sum": 4}, {"rank": 1, "sum": 3}], "hosts": 2, "wrong_elements": 5, "expected_sum": 3}
    lab.types("run", "3.1", "--dry-run")  # makes the learner's copy
    (copy,) = (lab.workspace / "exercises").rglob("distributed_hello.py")
    before = copy.read_text()
    copy.write_text(
        f"import os, pathlib\npathlib.Path(os.environ['GPUCOURSE_OUT'], 'metrics.json').write_text('''{json.dumps(wrong)}''')\n"
    )
    typed = lab.types("run", "3.1", "--launcher", "python", code=5)
    copy.write_text(before)
    assert "5 wrong elements; expected 0 wrong elements [allreduce-exact]" in typed.out
    assert "2 failed" in lab.types("check", "3.1", code=5).out, "nor did a rank print what the metrics say"
    assert lab.newest_run()["verdict"] == "failed"
