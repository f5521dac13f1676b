"""What Terraform's lines become, from recorded outputs of 1.11 and 1.15 and from junk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.model.event import Event, Note, ResourceEvent
from gpucourse.provision.transcript import Transcript

RECORDED = Path(__file__).parent.parent.parent / "data" / "terraform"
NODE, SLOT = ["terraform_data.node[0]", "terraform_data.node[1]"], ["terraform_data.slot[0]", "terraform_data.slot[1]"]


def tick() -> Iterator[float]:
    now = 0.0
    while True:
        now += 1.0
        yield now


def read(lines: list[bytes]) -> tuple[Transcript, list[Event]]:
    ticks = tick()
    transcript = Transcript(clock=lambda: next(ticks))
    return transcript, [event for line in lines for event in transcript.read(line)]


def read_recorded(name: str) -> tuple[Transcript, list[Event]]:
    return read((RECORDED / f"{name}.jsonl").read_bytes().split(b"\n"))


def resources(events: list[Event], state: str) -> list[tuple[str, str]]:
    return sorted(
        (event.action, event.address) for event in events if isinstance(event, ResourceEvent) and event.state == state
    )


@pytest.fixture(params=["1.11", "1.15"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_read_a_plan(version: str) -> None:
    transcript, events = read_recorded(f"plan-{version}")
    assert sorted(transcript.planned) == [("create", address) for address in NODE + SLOT] == resources(events, "planned")
    assert not transcript.changing
    assert transcript.errors == []
    assert transcript.finished == []
    replan, _ = read_recorded(f"replan-{version}")
    assert (replan.planned, replan.changing) == ([("replace", NODE[1])], False)


def test_read_an_apply(version: str) -> None:
    transcript, events = read_recorded(f"apply-{version}")
    assert transcript.outputs is not None
    assert transcript.outputs["nodes"]["value"] == [0, 1]
    assert sorted(transcript.finished) == [("create", NODE[1]), ("delete", NODE[1])]
    assert transcript.changing
    details = [event.detail for event in events if isinstance(event, ResourceEvent) and event.state == "progress"]
    assert details == ["node 1 is trying", "port 2222 is taken"]
    creations = [e for e in events if isinstance(e, ResourceEvent) and (e.state, e.action) == ("done", "create")]
    assert [0.2 < event.seconds < 5 for event in creations] == [True]
    assert "There are some problems with the CLI configuration:" in transcript.text


def test_read_an_apply_that_failed(version: str) -> None:
    transcript, events = read_recorded(f"apply-failed-{version}")
    assert resources(events, "failed") == [("create", NODE[1])]
    assert resources(events, "done") == [("create", address) for address in [NODE[0], *SLOT]]
    [error] = transcript.errors
    assert error.summary == "local-exec provisioner error"
    assert error.address == NODE[1]
    assert error.place == "main.tf line 9"
    assert error.detail.endswith("node 1 is trying\nport 2222 is taken")


def test_read_a_destroy(version: str) -> None:
    transcript, events = read_recorded(f"destroy-{version}")
    expected = [("delete", address) for address in NODE + SLOT]
    assert sorted(transcript.finished) == sorted(transcript.planned) == resources(events, "started") == expected


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b'{"no": "message"}',
        b'{"@message": "of a kind that does not exist yet", "type": "wonder"}',
        b'{"@message": "a strange hook", "type": "apply_start", "hook": []}',
        b'{"@message": "no address", "type": "apply_complete", "hook": {"action": "create", "resource": {}}}',
        b'{"@message": "no change", "type": "planned_change", "change": null}',
        b'{"@message": "no summary", "type": "diagnostic", "diagnostic": {"severity": "error"}}',
        b'{"type":"provision_progress", half a li',
        b"[" * 100_000,
    ],
)
def test_read_ignores_junk(line: bytes) -> None:
    transcript, events = read([line])
    assert events == []
    assert transcript.errors == []
    assert not transcript.changing
    transcript, events = read([line, *(RECORDED / "destroy-1.11.jsonl").read_bytes().split(b"\n")])
    assert len(transcript.finished) == 4


def hook(kind: str, action: str | None = "create", **options: object) -> bytes:
    hook_fields = {"resource": {"addr": "terraform_data.x"}, **({"action": action} if action else {}), **options}
    return json.dumps(
        {"@message": "m", "@timestamp": "2026-01-01T00:00:00.000000Z", "type": kind, "hook": hook_fields}, separators=(",", ":")
    ).encode()


def test_read_removes_control_characters_of_a_node() -> None:
    _, [_, event] = read(
        [hook("apply_start"), hook("provision_progress", None, output="\x1b]0;title\x07\x1b[2Jhello\tyou\r\n")]
    )
    assert isinstance(event, ResourceEvent)
    assert event.detail == "�]0;title��[2Jhello you"
    assert (event.action, event.state) == ("create", "progress")


def test_read_reports_waiting_for_the_state() -> None:
    _, [event] = read([b'{"@message":"Acquiring state lock.","@timestamp":"2026-11-21T01:59:49Z","type":"state_lock_acquire"}'])
    assert isinstance(event, Note)
    assert "another Terraform holds the state" in event.text
