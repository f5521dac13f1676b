"""The answers of an agent: values out of range are refused, and text is made printable."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpucourse.errors import NodeUntrusted
from gpucourse.remote import answers
from gpucourse.remote.agent import frames
from tests.unit.remote.answering import PROBE

SENT = frames.frame(frames.LOG, 1, 0, b"text") + frames.frame(frames.BEAT) + frames.frame(frames.END, 0, 0, b"{}")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_read_frames_joins_pieces_of_any_size(size: int) -> None:
    cut = SENT + frames.frame(frames.LOG, 1, 4, b"incomplete")[:-1]
    pieces = iter([cut[at : at + size] for at in range(0, len(cut), size)])
    assert list(answers.read_frames("node0", pieces)) == [
        (frames.LOG, 1, 0, b"text"), (frames.BEAT, 0, 0, b""), (frames.END, 0, 0, b"{}")
    ]  # fmt: skip


def test_read_frames_refuses_a_message_that_is_too_long() -> None:
    header = frames.HEADER.pack(frames.LOG, 1, 0, answers.MAX_FRAME + 1)
    with pytest.raises(NodeUntrusted, match=f"node0: .* a message of {answers.MAX_FRAME + 1} bytes"):
        list(answers.read_frames("node0", iter([header])))


@pytest.mark.parametrize(
    "host", ["../../../../outside/pwn", "/etc/pwn", "..", "a..b", "a\0b", "\x1b[31m", "-rf", "a" * 300, "", "a\n"], ids=repr
)
def test_host_name_refuses_what_no_machine_is_called(host: str) -> None:
    assert answers.host_name("gpu-17.cluster.example") == "gpu-17.cluster.example"
    with pytest.raises(ValueError, match="is not the name of a machine"):
        answers.host_name(host)


def test_parse_names_the_node_and_its_message() -> None:
    with pytest.raises(NodeUntrusted, match=r"^node0: its answer to state cannot be used: ") as caught:
        answers.parse("node0", "its answer to state", b'{"state": "asleep\x1b[31m"}', answers.JobState)
    assert str(caught.value).isprintable()
    assert answers.parse("node0", "its answer", b'{"state": "ended", "exit": null}', answers.JobState).state == "ended"


@pytest.mark.parametrize("change", [{"python_version": "three"}, {"cores": 0}, {"clock": -1.0}], ids=str)
def test_parse_refuses_a_probe_with_values_out_of_range(change: dict[str, Any]) -> None:
    assert answers.parse("node0", "its answer", json.dumps(PROBE).encode(), answers.Probe).cores == 8
    with pytest.raises(NodeUntrusted):
        answers.parse("node0", "its answer", json.dumps(PROBE | change).encode(), answers.Probe)
