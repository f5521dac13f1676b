"""The logs of a run under Slurm: each has the name of its node and continues where it ended, whatever Slurm answers."""

from __future__ import annotations

import io
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gpucourse.remote.agent import frames, main
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, follow, submit
from gpucourse.remote.answers import read_frames
from tests.unit.remote.scripted import Scripted, details, row, spec, write_end_note
from tests.waiting import STUCK_S, until


def test_follow_sends_logs_from_their_offset_with_the_name_of_the_node(
    script_slurm: Callable[..., Scripted], tmp_path: Path
) -> None:
    answers = [row("7", "RUNNING", node="node2"), row("7", "COMPLETED", node="node2")]
    script_slurm(sbatch="7\n", squeue=answers, scontrol=details("7", "COMPLETED"))
    submit.submit(spec())
    Path(Job("r1").path("logs", "7-node2.out")).write_bytes(b"one\ntwo\n")
    write_end_note("7", 0)
    out = tmp_path / "stream"
    with out.open("wb") as file:
        follow.follow(Job("r1"), {"node2/0": 4, "/-": 0}, file.fileno())
    frame_list = list(read_frames("node0", iter([out.read_bytes()])))
    names = {stream: json.loads(payload) for kind, stream, _, payload in frame_list if kind == frames.NAMED}
    assert list(names.values()) == [{"node": "node2", "rank": 0}, {"node": "", "rank": None}]
    of_rank = [(at, payload) for kind, stream, at, payload in frame_list if kind == frames.LOG and names[stream]["rank"] == 0]
    assert of_rank == [(4, b""), (4, b"two\n")]
    assert frame_list[-1][0] == frames.END
    assert json.loads(frame_list[-1][3])["code"] == 0


def test_follow_reads_the_offsets_of_many_logs_as_input(
    script_slurm: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script_slurm(sbatch="7\n", squeue=row("7", "COMPLETED", node="node2"), scontrol=details("7", "COMPLETED"))
    submit.submit(spec())
    Path(Job("r1").path("logs", "7-node2.out")).write_bytes(b"one\ntwo\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("node2/0=4\n/-=0"))
    assert main.main(["follow", "r1", "-"]) == 0
    stream = capfd.readouterr().out
    assert "two" in stream
    assert "one" not in stream


@pytest.mark.parametrize(
    ("files", "options", "names"),
    [
        (["7-laptop.out"], {}, {("node2", 0)}),
        (
            ["7-laptop.out", "laptop-rank0.log", "laptop-rank3.log"],
            {"spread": True, "ranks": 4},
            {("node2", None), ("node2", 0), ("node3", 3)},
        ),
        (["7-elsewhere.out"], {}, {("elsewhere", 0)}),
        (["7-laptop.out"], {}, set()),  # Slurm named no node: it is the log of the node that tells it
    ],
)
def test_follow_names_a_log_after_the_node_of_slurm(
    script_slurm: Callable[..., Scripted],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[str],
    options: dict[str, object],
    names: set[tuple[str, int | None]],
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop.example.org")
    nodes = "node[2-3]" if options else "node2" if names else ""
    answers = [row("7", state, node=nodes) for state in ("RUNNING", "COMPLETED")]
    script_slurm(sbatch="7\n", squeue=answers, scontrol=details("7", "COMPLETED"))
    submit.submit(spec(**options))
    for name in files:
        Path(Job("r1").path("logs", name)).write_bytes(b"here\n")
    write_end_note("7", 0)
    out = tmp_path / "stream"
    with out.open("wb") as file:
        follow.follow(Job("r1"), {}, file.fileno())
    events = [
        json.loads(payload) for kind, _, _, payload in read_frames("node0", iter([out.read_bytes()])) if kind == frames.NAMED
    ]
    assert {(log_frame["node"], log_frame["rank"]) for log_frame in events if log_frame["node"]} == names


def test_follow_sends_logs_while_slurm_does_not_answer(script_slurm: Callable[..., Scripted], tmp_path: Path) -> None:
    event = threading.Event()

    class Slow(Scripted):
        def __call__(self, *words: str, folder: str | None = None, variables: Mapping[str, str] = commands.NOTHING) -> str:
            if words[0] == "squeue":
                assert event.wait(STUCK_S)
            return super().__call__(*words, folder=folder, variables=variables)

    script_slurm(sbatch="7\n")
    submit.submit(spec())
    script_slurm(Slow, squeue=row("7", "COMPLETED", node="n"), scontrol="")
    Path(Job("r1").path("logs", "7-n.out")).write_bytes(b"said while it waits\n")
    out = tmp_path / "stream"
    with out.open("wb") as file:
        thread = threading.Thread(target=follow.follow, args=(Job("r1"), {}, file.fileno()))
        thread.start()
        until(lambda: b"said while it waits" in out.read_bytes(), "the log")
        event.set()
        thread.join(STUCK_S)
    assert not thread.is_alive()
