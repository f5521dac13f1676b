"""Several questions in one request: each answer goes to whoever asks for it, whatever becomes of the others. And a link that
is kept for the next who connects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpucourse.errors import StorageError, UnreachableError, UsageError
from gpucourse.model.node import Node
from gpucourse.remote import jobs, links
from gpucourse.remote.collect import ask_for_outputs
from gpucourse.remote.jobs import StreamRequest, stream_verb
from gpucourse.remote.links import AheadLink, KeptTransport, ask_ahead
from gpucourse.remote.logfile import ask_to_follow
from gpucourse.remote.login_shell import MOST_KEPT
from gpucourse.workspace.paths import RunPaths
from tests.unit.remote.agent_link import AgentLink, AgentNodes, make_ended_job, make_nodes
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


class _Deaf:
    """A link that keeps the requests of several questions that came, and answers nothing."""

    node, alive = HEAD, True

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    @contextmanager
    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> Iterator[Iterator[bytes]]:
        assert silence_s
        if command.endswith(" several"):
            self.requests.append(stdin)
        yield iter(())


def _streams(link: AgentLink) -> list[str]:
    return [verb for verb in link.asked if verb in {"several", "follow", "pack"}]


def test_the_answers_are_those_that_each_question_has_alone(link: AgentLink) -> None:
    alone = [_ask(link, question) for question in QUESTIONS]
    assert all(len(answer) > 1000 for answer in alone)
    link.asked.clear()
    ahead = AheadLink(link, QUESTIONS)
    assert [_ask(ahead, question) for question in QUESTIONS] == alone
    assert _streams(link) == ["several"]


def test_what_nobody_takes_or_is_left_in_the_middle_is_passed_over(link: AgentLink) -> None:
    alone = [_ask(link, question) for question in QUESTIONS]
    link.asked.clear()
    ahead = AheadLink(link, QUESTIONS)
    assert len(_ask(ahead, QUESTIONS[1], most=1)) <= 1000
    assert _ask(ahead, QUESTIONS[4]) == alone[4]
    assert _streams(link) == ["several"]
    assert _ask(ahead, QUESTIONS[2]) == alone[2], "it has gone by, and is asked again"
    assert _streams(link) == ["several", "follow"]


def test_anything_else_is_asked_on_the_link_below(link: AgentLink) -> None:
    ahead = AheadLink(link, QUESTIONS)
    other = StreamRequest(("follow", "r1", "0=0", "1=1990"))
    assert b"r1r1r1r1r1" in _ask(ahead, other)
    assert _streams(link) == ["follow"]


def test_while_somebody_reads_an_answer_another_asks_on_the_link_below(link: AgentLink) -> None:
    ahead = AheadLink(link, QUESTIONS)
    with stream_verb(ahead, *QUESTIONS[0].words) as pieces:
        next(pieces)
        assert _ask(ahead, QUESTIONS[1], most=1)
        assert b"".join(pieces)
    assert _streams(link) == ["several", "pack"]


def test_the_reason_of_one_that_fails_is_told_and_the_others_are_answered(link: AgentLink) -> None:
    missing = StreamRequest(("pack", "r0"), PACK)
    ahead = AheadLink(link, (QUESTIONS[0], missing, QUESTIONS[2]))
    assert _ask(ahead, QUESTIONS[0])
    with pytest.raises(UsageError, match="there is no run r0 on this node"):
        _ask(ahead, missing)
    assert _ask(ahead, QUESTIONS[2])
    assert _streams(link) == ["several", "pack"]


def test_a_node_that_dies_in_the_middle_is_unreachable_for_whoever_reads(link: AgentLink) -> None:
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


@pytest.mark.parametrize("lie", [(), (b"nonsense",), (b"MARK-out", b"half"), (b"MARK-outx", b"MARK-en")])
def test_a_node_that_answers_less_than_it_was_asked(tmp_path: Path, lie: tuple[bytes, ...]) -> None:
    with pytest.raises(UnreachableError, match="answered 6 questions fewer"):
        _ask(AheadLink(_Liar(tmp_path, *lie), QUESTIONS), QUESTIONS[0])


def test_a_code_that_is_none_counts_as_a_failure(tmp_path: Path) -> None:
    link = _Liar(tmp_path, b"MARK-outMARK-end-12")
    _ask(AheadLink(link, QUESTIONS), QUESTIONS[0])
    assert link.asked == ["several", "alone"]


def test_a_node_that_answers_without_end_what_nobody_reads_is_given_up(tmp_path: Path) -> None:
    piece = bytes(links.MOST_PASSED_OVER // 4)
    link = _Liar(tmp_path, b"MARK-out", *[piece] * 100)
    ahead = AheadLink(link, QUESTIONS)
    _ask(ahead, QUESTIONS[0], most=1)
    _ask(ahead, QUESTIONS[2], most=1)
    _ask(ahead, QUESTIONS[4], most=1)
    assert link.asked == ["several", "alone", "alone"]


def test_what_came_of_a_broken_answer_is_no_part_of_the_next(tmp_path: Path) -> None:
    link = _Liar(tmp_path, b"MARK-outwholeMARK-end000MARK-outhalf")
    ahead = AheadLink(link, QUESTIONS)
    assert _ask(ahead, QUESTIONS[0]) == b"whole"
    with pytest.raises(UnreachableError, match="answered 5 questions fewer"):
        _ask(ahead, QUESTIONS[1])
    assert b"whole" in _ask(ahead, QUESTIONS[2])
    assert link.asked == ["several", "alone"]


def test_an_answer_that_breaks_off_spoils_no_later_one(tmp_path: Path) -> None:
    link = _Liar(tmp_path, b"MARK-outhalf")
    _ask(AheadLink(link, QUESTIONS), QUESTIONS[1])
    assert link.asked == ["several", "alone"]


def test_a_node_that_sends_something_else_between_its_answers_is_given_up(tmp_path: Path) -> None:
    link = _Liar(tmp_path, b"MARK-outwholeMARK-end000", *[bytes(1 << 18)] * 100)
    ahead = AheadLink(link, QUESTIONS)
    assert _ask(ahead, QUESTIONS[0]) == b"whole"
    with pytest.raises(UnreachableError, match="sends something else than the answers"):
        _ask(ahead, QUESTIONS[1])
    _ask(ahead, QUESTIONS[2], most=1)
    assert link.asked == ["several", "alone"]


def test_the_beginning_of_an_answer_is_not_waited_for_without_end(tmp_path: Path) -> None:
    link = _Liar(tmp_path, *[b"."] * 100)
    with pytest.raises(UnreachableError, match="its next answer took longer than 0 s"):
        _ask(AheadLink(link, QUESTIONS, within_s=0.0), QUESTIONS[0])


def test_a_log_that_is_a_link_keeps_no_other_run_from_being_asked(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path)
    paths.logs.mkdir()
    paths.rank_log("node0", 0).symlink_to(tmp_path / "nowhere")
    assert ask_to_follow("r1", HEAD, paths, scheduled=True).words[:2] == ("follow", "r1")


def test_no_node_is_told_what_is_in_a_folder_that_outputs_lead_to(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "run")
    paths.outputs.mkdir(parents=True)
    tmp_path.joinpath("private").mkdir()
    paths.node_outputs("node0").symlink_to(tmp_path / "private")
    with pytest.raises(StorageError, match="is a link"):
        ask_for_outputs("r1", HEAD, (), paths, 1 << 20, 1 << 20, 1)


def test_several_runs_are_ended_in_one_request(link: AgentLink) -> None:
    told = jobs.cancel_all(link, [*RUNS, "r4"], 0.1)
    assert {run: result.state for run, result in told.items()} == {**dict.fromkeys(RUNS, "ended"), "r4": "absent"}
    assert link.asked == ["cancels"]


def test_a_link_is_kept_for_whoever_connects_next_and_beside(tmp_path: Path) -> None:
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


def test_a_kept_link_on_which_something_failed_is_not_handed_on(tmp_path: Path) -> None:
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


def test_a_kept_link_on_which_one_failed_stays_open_for_the_others(tmp_path: Path) -> None:
    nodes = AgentNodes(tmp_path)
    transport = KeptTransport(lambda: nodes)
    fails, goes_on = (transport.connect(HEAD) for _ in range(2))
    with pytest.raises(UnreachableError), fails.stream("echo"):
        raise UnreachableError("what it sent cannot be used")
    fails.close()
    assert goes_on.alive
    assert goes_on.run("echo here").stdout == b"here\n"
    assert transport.connect(HEAD).alive
    assert len(nodes.links) == 2, "whoever connects now takes another"
    fails.close()
    assert goes_on.alive, "a second close is none"
    goes_on.close()
    assert [link.alive for link in nodes.links] == [False, True]


def test_nodes_are_connected_to_only_when_somebody_asks(tmp_path: Path) -> None:
    def refuse() -> AgentNodes:
        raise AssertionError("nobody asked for a connection")

    KeptTransport(refuse).close()
    nodes = AgentNodes(tmp_path)
    transport = KeptTransport(lambda: nodes)
    made: list[Node] = [transport.connect(node).node for node in make_nodes(3)]
    assert [node.name for node in made] == ["node0", "node1", "node2"]


@pytest.mark.parametrize(("runs", "requests"), [(2, 1), (250, 1), (2000, 1), (5000, 3)])
def test_questions_about_many_runs_are_few_bounded_requests(runs: int, requests: int) -> None:
    ids = [f"20260101-{number:06}-gecko" for number in range(runs)]
    questions = [request for run in ids for request in (StreamRequest(("follow", run)), StreamRequest(("pack", run), PACK))]
    long = StreamRequest(("pack", "r1"), PACK[:-1] + b" " * (8 << 10) + b"}")
    node = _Deaf()
    link = ask_ahead(node, [questions[0], long, *questions[1:]])  # type: ignore[arg-type]  # it uses no more of a link
    for question in questions:
        with suppress(UnreachableError):
            _ask(link, question)  # type: ignore[arg-type]
    assert len(node.requests) == requests
    assert max(map(len, node.requests)) <= MOST_KEPT, "a longer one leaves its shell of no use for another command"
    asked = [json.loads(request) for request in node.requests]
    assert [
        StreamRequest(tuple(question["words"]), request["inputs"][question["input"]].encode())
        for request in asked
        for question in request["questions"]
    ] == questions
