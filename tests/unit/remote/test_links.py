"""Several questions in one request: each answer goes to whoever asks for it, whatever becomes of the others. And a link that
is kept for the next who connects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpucourse.errors import StorageError, UnreachableError, UsageError
from gpucourse.remote import jobs, links
from gpucourse.remote.collect import ask_for_outputs
from gpucourse.remote.jobs import StreamRequest, stream_verb
from gpucourse.remote.links import AheadLink, KeptTransport
from gpucourse.remote.logfile import ask_to_follow
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.agent_link import AgentLink, AgentNodes, make_ended_job
from tests.unit.remote.test_host_probe import HEAD

RUNS = ("r1", "r2", "r3")
PACK = json.dumps({"globs": [], "have": {}, "max_bytes": 1 << 30, "output_limit": 1 << 30, "max_files": 100}).encode()
QUESTIONS = tuple(
    request for run in RUNS for request in (StreamRequest(("follow", run, "0=0")), StreamRequest(("pack", run), PACK))
)


@pytest.fixture
def link(tmp_path: Path) -> AgentLink:
    for run in RUNS:
        make_ended_job(tmp_path, run, run.encode() * 1000, {"result": b"-end000" * 1000 + run.encode()})
    link = AgentLink(tmp_path)
    for question in QUESTIONS[1::2]:  # what a node tells of a run changes when its outputs are sent for the first time
        _ask(link, question)
    link.asked.clear()
    return link


def _ask(link: AheadLink | AgentLink, request: StreamRequest, *, most: int | None = None) -> bytes:
    """The answer; of one that has more pieces than `most` no more is read."""
    with stream_verb(link, *request.words, stdin=request.stdin) as pieces:
        return b"".join(piece for _, piece in zip(range(most or 1 << 30), pieces, strict=False))


def _streams(link: AgentLink) -> list[str]:
    return [verb for verb in link.asked if verb in {"several", "follow", "pack"}]


def test_ahead_link_gives_each_question_its_own_answer(link: AgentLink) -> None:
    alone = [_ask(link, question) for question in QUESTIONS]
    assert all(len(answer) > 1000 for answer in alone)
    link.asked.clear()
    ahead = AheadLink(link, QUESTIONS)
    assert [_ask(ahead, question) for question in QUESTIONS] == alone
    assert _streams(link) == ["several"]


def test_ahead_link_gives_the_reason_of_a_question_that_fails(link: AgentLink) -> None:
    missing = StreamRequest(("pack", "r0"), PACK)
    ahead = AheadLink(link, (QUESTIONS[0], missing, QUESTIONS[2]))
    assert _ask(ahead, QUESTIONS[0])
    with pytest.raises(UsageError, match="there is no run r0 on this node"):
        _ask(ahead, missing)
    assert _ask(ahead, QUESTIONS[2])
    assert _streams(link) == ["several", "pack"]


def test_ahead_link_raises_when_the_node_dies(link: AgentLink) -> None:
    ahead = AheadLink(link, QUESTIONS)
    assert _ask(ahead, QUESTIONS[0])
    ahead = AheadLink(link, QUESTIONS)
    link.cut_after = 3000
    with pytest.raises(UnreachableError, match="cut"):
        _ask(ahead, QUESTIONS[1])
    assert not ahead.alive


class _Liar(AgentLink):
    """A node whose answer to several questions is made up: `pieces`, where `MARK` stands for the word of the marks."""

    def __init__(self, home: Path, *pieces: bytes) -> None:
        super().__init__(home)
        self.pieces = pieces

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        self.asked.append("several" if b'"mark"' in stdin else "alone")
        mark = json.loads(stdin)["mark"].encode() if b'"mark"' in stdin else b""
        yield (piece.replace(b"MARK", mark) for piece in self.pieces)


@pytest.mark.parametrize("lie", [(b"nonsense",), (b"MARK-out", b"half")])
def test_ahead_link_refuses_fewer_answers_than_questions(tmp_path: Path, lie: tuple[bytes, ...]) -> None:
    with pytest.raises(UnreachableError, match="answered 6 questions fewer"):
        _ask(AheadLink(_Liar(tmp_path, *lie), QUESTIONS), QUESTIONS[0])


def test_ahead_link_gives_up_an_answer_without_end(tmp_path: Path) -> None:
    piece = bytes(links.MOST_PASSED_OVER // 4)
    link = _Liar(tmp_path, b"MARK-out", *[piece] * 100)
    ahead = AheadLink(link, QUESTIONS)
    _ask(ahead, QUESTIONS[0], most=1)
    _ask(ahead, QUESTIONS[2], most=1)
    _ask(ahead, QUESTIONS[4], most=1)
    assert link.asked == ["several", "alone", "alone"]


def test_ask_to_follow_leaves_out_a_log_that_is_a_link(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    paths.logs.mkdir()
    paths.rank_log("node0", 0).symlink_to(tmp_path / "nowhere")
    assert ask_to_follow("r1", HEAD, paths, scheduled=True).words[:2] == ("follow", "r1")


def test_ask_for_outputs_refuses_outputs_that_are_a_link(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "run")
    paths.outputs.mkdir(parents=True)
    tmp_path.joinpath("private").mkdir()
    paths.node_outputs("node0").symlink_to(tmp_path / "private")
    with pytest.raises(StorageError, match="is a link"):
        ask_for_outputs("r1", HEAD, (), paths, 1 << 20, 1 << 20, 1)


def test_cancel_all_ends_several_runs_in_one_request(link: AgentLink) -> None:
    told = jobs.cancel_all(link, [*RUNS, "r4"], 0.1)
    assert {run: result.state for run, result in told.items()} == {**dict.fromkeys(RUNS, "ended"), "r4": "absent"}
    assert link.asked == ["cancels"]


def test_kept_transport_keeps_a_link_for_the_next(tmp_path: Path) -> None:
    nodes = AgentNodes(tmp_path)
    transport = KeptTransport(lambda: nodes)
    first, second = (transport.connect(HEAD) for _ in range(2))
    first.close()
    assert not first.alive
    assert second.alive
    second.close()
    assert transport.connect(HEAD).alive
    assert len(nodes.links) == 1
    transport.close()
    assert not nodes.links[0].alive


def test_kept_transport_drops_a_link_on_which_something_failed(tmp_path: Path) -> None:
    nodes = AgentNodes(tmp_path, cut_after=0)
    transport = KeptTransport(lambda: nodes)
    link = transport.connect(HEAD)
    with pytest.raises(UnreachableError), link.stream("echo a") as pieces:
        next(pieces)
    link.close()
    again = transport.connect(HEAD)
    assert len(nodes.links) == 2
    with pytest.raises(UnreachableError, match="ended with code 3"), again.stream("exit 3") as pieces:
        list(pieces)
    again.close()
    assert transport.connect(HEAD).alive
    assert len(nodes.links) == 2, "a command that fails says nothing of its link"
