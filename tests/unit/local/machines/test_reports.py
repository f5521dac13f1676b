"""The meaning of logs, and what Slurm says of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.local.machines import reports


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ("error: Munge decode failed: Rewound credential\nerror: If munged is up, restart with --num-threads=10", "future"),
        ("error: Munge decode failed: Expired credential", "clock"),
        ("error: Munge decode failed: Invalid credential", "munge.key"),
        ("error: Munge decode failed: Expired credential\nerror: x: Protocol authentication error", "clock"),
        ("error: Munge decode failed: Expired credential\nslurmd version 22.05.8 started\n", ""),
        ("sched: JobId=3 has invalid account", "reasons"),
        ("error: Duplicate jobid on nodes node1, set to state DRAIN", "killed"),
        ("slurmd version 22.05.8 started", ""),
    ],
)
def test_symptom_explains_a_log(log: str, word: str) -> None:
    symptom = reports.symptom(log)
    assert word in symptom
    assert bool(symptom) == bool(word)


def test_symptom_is_the_newest_one() -> None:
    assert "munge.key" in reports.symptom("Expired credential\nlater: Invalid credential\n")


def test_end_of_returns_the_last_bytes_of_a_log_as_text(tmp_path: Path) -> None:
    log = tmp_path / "slurmd.log"
    log.write_bytes(b"x" * 20_000 + "é".encode() + b"\xff end\n")
    text = reports.end_of(log)
    assert text.endswith("xé\ufffd end\n")
    assert len(text.encode("utf-8", "replace").replace(b"\xef\xbf\xbd", b"?")) == 16_384
    log.write_bytes(b"short\n")
    assert reports.end_of(log) == "short\n"
    assert reports.end_of(tmp_path / "missing.log") == ""


def test_states_explains_each_node() -> None:
    listing = (
        "node1|idle|gpu:1|none\nnode2|down*|gpu:1|Not responding\nnode3|mixed|gpu:1|none\n"
        "node4|drained|gpu:1|Duplicate jobid\nnode5|idle|(null)|none\nnode6|idle*|gpu:1|none\n"
        "node7|mixed-|gpu:1|none\n"
    )
    node_states = reports.read_states(listing)
    assert node_states["node1"] == node_states["node3"] == node_states["node7"] == ""
    assert node_states["node2"] == "Slurm says down*: Not responding"
    assert node_states["node4"] == "Slurm says drained: Duplicate jobid"
    assert "no GPU" in node_states["node5"]
    assert node_states["node6"].startswith("Slurm says idle*")
