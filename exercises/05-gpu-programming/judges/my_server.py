"""Judge my_server.py of 5.5 with requests of several batch sizes.

Each answer is compared with the model's own, kept, and checked again later. Captures, replays and launches are counted. The
graphs are those that the exercise uses without a GPU.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from gpucourse.judge import Part, Way
from gpucourse.judge.verdict import Verdict

if TYPE_CHECKING:
    from graphs import Graphs

VOCABULARY, LENGTH = 32, 8
CAPTURED = (1, 2, 4)  # the sizes that may be captured
SIZES = (2, 2, 1, 3, 2, 1, 6, 3, 1)  # batch sizes of the requests
NEW_SIZE = 5  # the batch size of the wrong request
MAX_OPERATIONS = 3  # a copy in, a replay, a copy out
TOLERANCE = 1e-4
CPU = torch.device("cpu")
DELIVERED = Path(__file__).resolve().parent.parent / "my_server.py"
WAYS = {
    "stale": Way(
        "request {number} got the answer to an earlier request: the graph reads the memory that it was captured with, and "
        "never sees a new tensor. Copy the tokens into that memory before the replay",
        ("        self.inputs[size][: len(tokens)].copy_(tokens)\n", ""),
    ),
    "other-memory": Way(
        "request {number} got a wrong answer, and the graph that was replayed read memory that does not hold its tokens: a "
        "graph keeps the addresses that it was captured with, and sees nothing that is written into another tensor",
        (
            "        self.inputs[size][: len(tokens)].copy_(tokens)\n",
            "        for other in self.inputs.values():\n            other.zero_()\n",
        ),
    ),
    "never-replayed": Way(
        "request {number} got the answer to an earlier request, and no graph was ever replayed: capture computes once, and "
        "each later answer needs a graph.replay()",
        ("        graph.replay()\n", ""),
    ),
    "memory-replaced": Way(
        "request {number} got an earlier answer: a tensor that the graph was captured with has other memory now, but the graph "
        "still reads the old address. copy_ writes into the memory that is there",
        (
            "self.inputs[size][: len(tokens)].copy_(tokens)",
            "self.inputs[size].data = torch.cat([tokens, tokens.new_zeros(size - len(tokens), tokens.shape[1])])",
        ),
    ),
    "one-behind": Way(
        "request {number} got the answer to the request before it: the output was copied before the replay, or the tokens were "
        "copied into the graph's memory after it",
        (
            "        graph.replay()\n        return graph.output[: len(tokens)].clone()\n",
            "        result = graph.output[: len(tokens)].clone()\n        graph.replay()\n        return result\n",
        ),
    ),
    "shared-output": Way(
        "the answer to request {number} changed after it was returned: every replay writes to the same memory, and the caller "
        "got that memory. Return a copy",
        ("graph.output[: len(tokens)].clone()", "graph.output[: len(tokens)]"),
    ),
    "callers-tokens": Way(
        "the tokens of request {number} changed after it was answered: they belong to the caller. The graph needs its own "
        "input memory, which no caller gets",
        (
            "self.inputs[size] = tokens.new_zeros(size, tokens.shape[1])",
            "self.inputs[size] = tokens if len(tokens) == size else tokens.new_zeros(size, tokens.shape[1])",
        ),
    ),
    "not-captured": Way(
        "it gave up on a model that cannot be captured ({error}). Its requests still need an answer: call the model itself for "
        "them",
        ("        except RuntimeError:\n            self.graphs[size] = None\n", "        finally:\n            pass\n"),
    ),
    "tries-again": Way(
        "it tried {attempts} times to capture a model that cannot be captured, for {sizes} batch sizes. Remember that it "
        "failed: each attempt costs more than the request",
        ("size not in self.graphs:", "self.graphs.get(size) is None:"),
    ),
    "captured-each-time": Way(
        "it captured {captures} graphs for {sizes} batch sizes: a capture takes as long as serving dozens of "
        "requests, so capture each size once and keep its graph",
        ("if size and size not in self.graphs:", "if size:"),
    ),
    "off-for-all": Way(
        "the model cannot be captured for batches of {size} sequences. After such a request, a request of another size takes "
        "{operations} operations from Python: its graph is lost, or was never made. Remember the failure for one size only",
        ("self.graphs[size] = None", "self.graphs = dict.fromkeys(range(64))"),
    ),
    "off-after-an-error": Way(
        "a request with a token that does not exist raised {error}, and then a good one of the same size takes "
        "{operations} operations from Python. A wrong request says nothing about the model: "
        "only capture's RuntimeError does",
        ("except RuntimeError:", "except Exception:"),
    ),
    "padding-returned": Way(
        "a request of {wanted} sequences got {given} answers: a graph computes the whole batch that it was captured with, but "
        "only its first {wanted} rows belong to the request",
        ("graph.output[: len(tokens)].clone()", "graph.output.clone()"),
        seen="a request of {wanted} sequences got {given} answers",
    ),
    "other-size": Way(
        "a request of {wanted} sequences was served by a graph for {given}, but only batches of {sizes} may be captured: each "
        "graph takes time and memory. Fill up the batch to one of these sizes",
        ("next((size for size in self.sizes if size >= len(tokens)), 0)", "len(tokens)"),
    ),
    "larger-than-needed": Way(
        "right, but a request of {wanted} sequences was served by the graph for {given}: the one for {enough} computes fewer",
        ("if size >= len(tokens)), 0)", "if self.sizes[-1] == size >= len(tokens)), 0)"),
    ),
    "no-size-fits": Way(
        "a request of {wanted} sequences, more than any of the sizes {sizes}, ended with {error}. It still needs an answer: "
        "the model itself can compute a batch of any size",
        ("next((size for size in self.sizes if size >= len(tokens)), 0)", "min(s for s in self.sizes if s >= len(tokens))"),
    ),
    "not-replayed": Way(
        "a request takes {operations} operations from Python, but a copy in, a replay and a copy out are 3: the model itself "
        "still runs, one launch after the other",
        ("        if graph is None:\n", "        if True:\n"),
        seen="a request takes {operations} operations from Python, but a copy in, a replay and a copy out are 3",
    ),
}


def judge(part: Part) -> None:
    """Judge a model that can be captured, a wrong request, and models that branch on a value, always or for one size."""
    if part.text == DELIVERED.read_text(encoding="utf-8"):
        raise Verdict("open", sentence="as delivered: most requests do not get their own answer")
    from graphs import Graphs
    from served_models import EarlyExit, ReadsAtOneSize, Transformer

    try:
        inspect.signature(part.function("Server")).bind(None, None, CAPTURED)
    except TypeError:
        says = "Server accepts no third argument: the batch sizes that may be captured. Begin its __init__ as the comment says"
        raise Verdict("failed", "no-sizes", f"{says} (gpucourse reset 5.5 restores the course's file)") from None
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(VOCABULARY, LENGTH, 16, 2, 2).eval()
    sizes = len(CAPTURED)
    with torch.no_grad():
        graphs, branchy = Graphs(CPU), Graphs(CPU)
        operations = _judge_requests(part, model, graphs, "a transformer", chooses_sizes=True)
        if graphs.captures > sizes:
            raise part.wrong("captured-each-time", captures=graphs.captures, sizes=sizes)
        if operations > MAX_OPERATIONS:
            raise part.wrong("not-replayed", output=operations, operations=operations)
        _judge_error(part, model)
        _judge_requests(part, EarlyExit(model).eval(), branchy, "a model that branches on a value")
        if branchy.failures > sizes:
            raise part.wrong("tries-again", attempts=branchy.failures, sizes=sizes)
        for size in CAPTURED[1:]:  # the size of the first request, and one that is needed after others
            case = f"a model that reads a value for {size} sequences only"
            operations = _judge_requests(part, ReadsAtOneSize(model, size).eval(), Graphs(CPU), case)
            if operations > MAX_OPERATIONS:
                raise part.wrong("off-for-all", case, size=size, operations=operations)
    part.note(f"{len(SIZES)} requests right, {graphs.captures} captures, {operations} operations per request")


def _judge_error(part: Part, model: Any) -> None:
    """Judge a request that the model refuses, then good requests of the same size, which a graph has to serve."""
    from graphs import Graphs, OperationCounter

    case, graphs, name = f"{NEW_SIZE} sequences, the first time with a token that does not exist", Graphs(CPU), ""
    server = part.call(part.function("Server"), model, graphs.capture, (NEW_SIZE,), case=case)
    try:
        server.answer(torch.full((NEW_SIZE, LENGTH), VOCABULARY))
    except Exception as error:  # noqa: BLE001  # how it refuses is its own choice
        name = type(error).__name__
    for _ in range(2):
        tokens = torch.randint(VOCABULARY, (NEW_SIZE, LENGTH))
        right, replays, counter = model(tokens), graphs.replays, OperationCounter()
        with counter:
            answer = part.call(server.answer, tokens, case=case)
        _judge_shape(part, answer, right, case)
        if not torch.allclose(answer, right, atol=TOLERANCE):
            raise Verdict("failed", "other", "after a wrong request, the answer to a good one is not the model's", case)
        operations = counter.count + graphs.replays - replays
    if operations > MAX_OPERATIONS:
        raise part.wrong("off-after-an-error", case, error=name, operations=operations)


@dataclass(frozen=True)
class Request:
    """One request: its tokens and its answer, both as they are now and as they were at first.

    It also has the model's own answer, whether the tokens were hidden from the replayed graph, and how many sequences this
    graph computed (0 without a graph).
    """

    tokens: torch.Tensor
    original_tokens: torch.Tensor
    answer: torch.Tensor
    original_answer: torch.Tensor
    right: torch.Tensor
    unseen: bool
    computed: int


def _judge_requests(part: Part, model: Any, graphs: Graphs, case: str, *, chooses_sizes: bool = False) -> int:
    """Send requests of all sizes, and return how many operations the last request took. A replay counts as one operation."""
    from graphs import CaptureError, OperationCounter

    server = part.call(part.function("Server"), model, graphs.capture, CAPTURED, case=case)
    requests: list[Request] = []
    for size in SIZES:
        tokens = torch.randint(VOCABULARY, (size, LENGTH))
        request, right, replays, counter = tokens.clone(), model(tokens), graphs.replays, OperationCounter()
        try:
            with counter:
                answer = server.answer(tokens)
        except CaptureError as error:
            raise part.wrong("not-captured", case, error=error) from None
        except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the verdict shows the error
            verdict = part.make_verdict(error, case)
            if size > CAPTURED[-1] and verdict.way == "error":
                error_text, sizes = f"{type(error).__name__}: {error}".rstrip(": "), _list_sizes()
                raise part.wrong("no-size-fits", case, wanted=size, sizes=sizes, error=error_text) from None
            raise verdict from None
        _judge_shape(part, answer, right, f"{case}, request {len(requests) + 1}")
        replayed = graphs.replays > replays
        unseen, computed = replayed and not _hold(graphs.last, request), len(graphs.last.output) if replayed else 0
        requests.append(Request(tokens, request, answer, answer.clone(), right, unseen, computed))
    _judge_answers(part, requests, case, graphs)
    if chooses_sizes:
        _judge_sizes(part, requests, case)
    return int(counter.count + graphs.replays - replays)


def _judge_sizes(part: Part, requests: Sequence[Request], case: str) -> None:
    """Check that each replayed graph has a permitted batch size, and is the smallest one that fits the request."""
    for request in requests:
        wanted, given = len(request.tokens), request.computed
        if given and given not in CAPTURED:
            raise part.wrong("other-size", case, wanted=wanted, given=given, sizes=_list_sizes())
        enough = next((size for size in CAPTURED if size >= wanted), 0)
        if enough and given > enough:
            raise part.wrong("larger-than-needed", case, wanted=wanted, given=given, enough=enough)


def _list_sizes() -> str:
    return ", ".join(map(str, CAPTURED))


def _hold(graph: Any, tokens: torch.Tensor) -> bool:
    """Return whether all these sequences are in some memory that a graph reads."""
    memories = [memory for memory in graph.list_memory() if memory.dtype == tokens.dtype and memory.shape[-1:] == (LENGTH,)]
    return any((memory.view(1, -1, LENGTH) == tokens[:, None]).all(2).any(1).all() for memory in memories)


def _judge_shape(part: Part, answer: Any, right: torch.Tensor, case: str) -> None:
    if not isinstance(answer, torch.Tensor):
        raise Verdict("failed", "no-answer", f"it returned {type(answer).__name__}, not a tensor: is the return missing?", case)
    if answer.shape != right.shape:
        if answer.shape[1:] == right.shape[1:]:
            raise part.wrong("padding-returned", case, output=answer, wanted=len(right), given=len(answer))
        says = f"the answer has the shape {tuple(answer.shape)}, the model's has {tuple(right.shape)}"
        raise Verdict("failed", "other-shape", says, case)


def _judge_answers(part: Part, requests: Sequence[Request], case: str, graphs: Graphs) -> None:
    """Judge whether each answer was right at first, and whether tokens and answer are still unchanged."""
    ways = [_name_wrong_answer(requests[:at], request) for at, request in enumerate(requests)]
    wrong = next((at for at, way in enumerate(ways) if way), None)
    if wrong is not None:
        raise _name_wrong_answers(part, requests, ways, case, graphs)
    for number, request in enumerate(requests, 1):
        if not torch.equal(request.tokens, request.original_tokens):
            raise part.wrong("callers-tokens", case, number=number)
        if not torch.equal(request.answer, request.original_answer):
            raise part.wrong("shared-output", case, number=number)


def _name_wrong_answers(part: Part, requests: Sequence[Request], ways: Sequence[str], case: str, graphs: Graphs) -> Verdict:
    """Return the verdict on requests with some wrong answers."""
    wrong = [at for at, way in enumerate(ways) if way]
    unseen = all(requests[at].unseen for at in wrong)
    if "other" in ways:
        first = ways.index("other")
        if unseen:
            return part.wrong("other-memory", case, number=first + 1)
        right = [str(at + 1) for at, way in enumerate(ways) if not way]
        beside = f"; the answers to requests {', '.join(right)} are right" if right else ""
        says = f"the answer to request {first + 1} is neither the model's nor an earlier one{beside}"
        return Verdict("failed", "other", says, case)
    way = "one-behind" if "stale" not in ways else "stale" if unseen else ""
    way = "memory-replaced" if graphs.moved else "never-replayed" if not graphs.replays else way
    if way:
        return part.wrong(way, case, number=wrong[0] + 1)
    return Verdict("failed", "other", f"request {wrong[0] + 1} got the answer to an earlier request", case)


def _name_wrong_answer(earlier: Sequence[Request], request: Request) -> str:
    """Return a word for a wrong answer, or an empty text if the answer was right.

    "one-behind": it was the previous answer of the same size. A single earlier answer counts as the previous one.
    "stale": it was an even older answer.
    "other": it was neither.
    """
    if torch.allclose(request.original_answer, request.right, atol=TOLERANCE):
        return ""
    same_size = [old.right for old in earlier if old.right.shape == request.right.shape]
    equal = [torch.allclose(request.original_answer, old, atol=TOLERANCE) for old in same_size]
    if not any(equal):
        return "other"
    return "one-behind" if equal[-1] else "stale"
