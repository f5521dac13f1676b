"""Links over another link: in a shared folder, kept for the next user, with questions that are sent ahead."""

from __future__ import annotations

import json
import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.ports import CommandResult, Link
from gpucourse.remote.exchange import EndedEarly
from gpucourse.remote.jobs import StreamRequest, command
from gpucourse.remote.links import MOST_PASSED_OVER, KeptTransport, SharedTransport, ask_ahead
from tests.unit.remote.agent_link import AgentNodes, make_nodes
from tests.unit.remote.answering import AnsweringNodes

NODE = make_nodes(1)[0]


def test_shared_link_starts_in_the_folder_of_the_user(tmp_path: Path) -> None:
    shared = tmp_path / "all of us"
    shared.mkdir()
    link = SharedTransport(AgentNodes(tmp_path), str(shared)).connect(NODE)
    own = shared / f"gpucourse-{pwd.getpwuid(os.getuid()).pw_name}"
    assert link.run('pwd; echo "$HOME"').stdout.decode().splitlines() == [str(own), str(own)]
    assert own.stat().st_mode & 0o777 == 0o700
    with link.stream("pwd") as pieces:
        assert b"".join(pieces).decode() == f"{own}\n"
    (tmp_path / "file").touch()
    assert SharedTransport(AgentNodes(tmp_path), str(tmp_path / "file")).connect(NODE).run("pwd").code == 73


def test_kept_transport_shares_a_link_until_its_end() -> None:
    nodes = AnsweringNodes(node0={})
    kept = KeptTransport(lambda: nodes)
    first, second = kept.connect(NODE), kept.connect(NODE)
    first.close()
    assert (first.alive, second.alive) == (False, True)
    second.close()
    assert kept.connect(NODE).alive, "it stays open for the next user"
    assert len(nodes.links) == 1
    kept.close()
    assert not nodes.links[0].alive


@pytest.mark.parametrize(
    ("error", "links"), [(UnreachableError("cut", hint=""), 2), (EndedEarly("node0", 1, b"the command failed"), 1)]
)
def test_kept_transport_replaces_a_link_that_failed(error: UnreachableError, links: int) -> None:
    nodes = AnsweringNodes(node0={"state": error})
    kept = KeptTransport(lambda: nodes)
    first, second = kept.connect(NODE), kept.connect(NODE)
    with pytest.raises(UnreachableError):
        first.run(command(NODE, "state"))
    first.close()
    kept.connect(NODE).close()
    assert len(nodes.links) == links
    assert nodes.links[0].alive, "it has another user"
    second.close()
    assert nodes.links[0].alive == (links == 1)


class Several:
    """A link to a node that answers several questions in one request, each by its verb. Implements ports.Link."""

    node, alive = NODE, True

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers, self.requests = answers, list[list[str]]()

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        raise AssertionError(command, stdin, timeout_s)

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        assert silence_s
        if not command.endswith(" several"):
            self.requests.append([command.rsplit(maxsplit=1)[-1]])
            yield iter([b"below"])
            return
        asked = json.loads(stdin)
        verbs = [question["words"][0] for question in asked["questions"]]
        self.requests.append(verbs)
        yield self._answer(asked["mark"].encode(), verbs)

    def _answer(self, mark: bytes, verbs: list[str]) -> Iterator[bytes]:
        for verb in verbs:
            whole = mark + b"-out" + self.answers[verb] + mark + b"-end000"
            yield from (whole[at : at + (1 << 20)] for at in range(0, len(whole), 1 << 20))

    def close(self) -> None:
        """Stay open: a test looks at it afterwards."""


def ask(link: Link, verb: str) -> bytes:
    with link.stream(command(NODE, verb)) as pieces:
        return b"".join(pieces)


def make_ahead(answers: dict[str, bytes]) -> tuple[Several, Link]:
    below = Several(answers)
    return below, ask_ahead(below, [StreamRequest((verb,)) for verb in answers])


def test_ahead_link_gives_each_caller_the_answer_to_its_question() -> None:
    below, link = make_ahead({"one": b"1", "two": b"2", "three": b""})
    assert ask(link, "two") == b"2"
    assert ask(link, "one") == b"below", "its answer was skipped"
    assert ask(link, "three") == b""
    assert ask(link, "other") == b"below"
    assert below.requests == [["one", "two", "three"], ["one"], ["other"]]


def test_ahead_link_gives_up_after_too_many_skipped_bytes() -> None:
    below, link = make_ahead({"one": b"", "two": bytes(MOST_PASSED_OVER + 1), "three": b"3", "four": b"4"})
    assert ask(link, "one") == b""
    assert ask(link, "three") == b"below"
    assert ask(link, "four") == b"below"
    assert below.requests[1:] == [["three"], ["four"]]
