"""Rare and meaningless lines in Terraform's output. tests/system reads the output of two real releases."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from gpucourse.model.event import Event, Note, ResourceEvent
from gpucourse.provision.transcript import Diagnostic, Transcript


def tick() -> Iterator[float]:
    now = 0.0
    while True:
        now += 1.0
        yield now


def read(lines: list[bytes]) -> tuple[Transcript, list[Event]]:
    ticks = tick()
    transcript = Transcript(clock=lambda: next(ticks))
    return transcript, [event for line in lines for event in transcript.read(line)]


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
    transcript, events = read([line, hook("apply_start"), hook("apply_complete")])
    assert transcript.finished == [("create", "terraform_data.x")]


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
    assert "another Terraform process holds the state" in event.text


def test_read_finds_the_place_of_an_error() -> None:
    place = {"filename": "main.tf", "start": {"line": 9}}
    diagnostic = {"severity": "error", "summary": "s", "detail": "d", "address": "a.b", "range": place}
    transcript, _ = read([json.dumps({"@message": "Error: s", "type": "diagnostic", "diagnostic": diagnostic}).encode()])
    assert transcript.errors == [Diagnostic(summary="s", detail="d", address="a.b", place="main.tf line 9")]
