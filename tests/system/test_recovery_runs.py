"""Ranks that fail, fall silent, print too much or misbehave: each run ends with the right word, the right code, and nothing
left.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system import scripts
from tests.system.cli import Learner

pytestmark = pytest.mark.system

STOPS = """\
import os, signal, time
rank = int(os.environ["RANK"])
for step in range(200):
    print("step", step, "of rank", rank, flush=True)
    time.sleep(0.05)
    if rank == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
"""
FAILS = """\
import os, sys, time
print("begins", flush=True)
if os.environ["RANK"] == "1":
    sys.exit(3)
time.sleep(600)
"""
ODD = """\
import os, pathlib
os.write(1, b"\\x1b[2J\\x1b]0;owned\\x07\\xff\\xfe bad \\x80 utf\\r\\nnext\\n")
out = pathlib.Path(os.environ["GPUCOURSE_OUT"])
(out / "metrics.json").write_text("{oops")
(out / "good.txt").write_text("good")
(out / "leak").symlink_to("/etc/passwd")
(out / "folder").symlink_to("/etc")
(out / 'we ird\\n"name').write_text("odd")
with open(out / "huge.bin", "wb") as file:
    file.truncate(3 << 30)
"""


def run(lab: Learner, script: str, *options: str, code: int) -> tuple[str, str]:
    """Run a script without torch on both nodes. Return standard output and standard error."""
    result = lab.types("run", "--script", script, "--launcher", "python", *options, code=code)
    assert "Traceback" not in result.err
    lab.check_nothing_runs()
    return result.out, result.err


def write(folder: Path, text: str) -> str:
    (folder / "script.py").write_text(text)
    return str(folder / "script.py")


def test_rank_that_exits_is_named_at_once_and_with_its_last_lines(lab: Learner, tmp_path: Path) -> None:
    out, err = run(lab, write(tmp_path, FAILS), code=4)
    lines = err.splitlines()
    failure_line = lines.index("! rank 1 on node1 failed with exit code 3")
    assert failure_line < next(number for number, line in enumerate(lines) if "running script.py" in line), (
        "before the others end"
    )
    assert "rank 1 on node1 was the first to fail, with code 3" in out
    record = lab.newest_run()
    assert (record["state"], record["first_failure"]["rank"]) == ("failed", 1)
    assert [(diagnosis["symptom"], diagnosis["ranks"]) for diagnosis in record["diagnoses"]] == [("rank-exited", [1])]
    assert f"gpucourse logs {record['id']} --rank 1" in out


@pytest.mark.slow
def test_silent_rank_is_named_with_what_its_process_does_until_the_time_limit(lab: Learner, tmp_path: Path) -> None:
    out, err = run(lab, write(tmp_path, STOPS), "--silence", "2s", "--timeout", "8s", code=4)
    silence_line = next(
        number for number, line in enumerate(err.splitlines()) if "1 on node1 has printed nothing for 2 s" in line
    )
    assert "its process is stopped by a signal; its last line: step 3 of rank 1" in err.splitlines()[silence_line]
    assert any("of rank 0" in line for line in err.splitlines()[silence_line:]), "it is named while the others go on"
    assert "failed with exit code" not in err, "who was ended by the time limit did not fail"
    record = lab.newest_run()
    assert record["state"] == "timed_out"
    assert "time limit" in out
    assert (1, "stopped") in [(item["rank"], item["doing"]) for item in record["silences"]]
    assert [(item["symptom"], 1 in item["ranks"]) for item in record["diagnoses"]] == [("silent-rank", True)]
    assert "[silent-rank]" in out
    assert "gpucourse logs" in record["diagnoses"][0]["next"]


def test_odd_outputs_are_collected_as_they_are_or_refused_by_name(lab: Learner, tmp_path: Path) -> None:
    out, err = run(lab, write(tmp_path, ODD), code=0)
    assert "\x1b" not in out + err
    assert "\x07" not in out + err
    raw = b"\x1b[2J\x1b]0;owned\x07\xff\xfe bad \x80 utf\r\nnext\n"
    assert (lab.run_folder() / "logs/node0-rank0.log").read_bytes() == raw
    assert "is not JSON" in err
    outputs = lab.run_folder() / "outputs/node0"
    assert (outputs / "good.txt").read_text() == "good"
    assert {path.name for path in outputs.iterdir()} <= {"good.txt", "metrics.json"}
    refusals = {(item["node"], item["name"]) for item in lab.newest_run()["refused"]}
    for name in ("leak", "folder", "huge.bin"):
        assert {("node0", name), ("node1", name)} <= refusals
        assert name in out + err
    assert "GiB" in out + err
    [name] = {name for _, name in refusals if "ird" in name}
    assert "\n" not in name, "a line break in a name would forge a line"


def test_cancel_ends_a_detached_run_once(lab: Learner, tmp_path: Path) -> None:
    lab.types("run", "--script", scripts.write(tmp_path, "hangs"), "--launcher", "python", "--detach")
    assert lab.documents("runs")["runs"][-1]["state"] == "running"
    lab.types("cancel", "latest")
    record = lab.newest_run()
    assert record["state"] == "cancelled"
    assert f"run {record['id']} has ended already: cancelled" in lab.types("cancel", "latest", code=2).err
    lab.check_nothing_runs()


def test_run_that_went_well_has_no_diagnosis(lab: Learner, tmp_path: Path) -> None:
    run(lab, write(tmp_path, "print('Connection refused, address already in use: said, and not meant')\n"), code=0)
    record = lab.newest_run()
    assert (record["state"], record["diagnoses"], record["silences"]) == ("succeeded", [], [])
    assert set(record["clock_skew_s"]) == {"node0", "node1"}
