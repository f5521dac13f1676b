"""A client of an engine: it counts what the engine counts, and passes on what the engine refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

completions = beside_the_script("shared", "completions")


class Scripted(BaseHTTPRequestHandler):
    """An engine that says what it is told to: `events` of the stream, or an error."""

    events: tuple[dict[str, Any], ...] = ()
    heard: list[dict[str, Any]]

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append(request)
        if request["max_tokens"] > 100:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "too long"}}')
            return
        self.send_response(200)
        self.end_headers()
        for event in self.events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


@pytest.fixture
def engine() -> Iterator[tuple[str, type[Scripted]]]:
    handler = type("Engine", (Scripted,), {"heard": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


def text(words: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": words}]}


def test_complete_counts_tokens_as_the_engine_does(engine: tuple[str, type[Scripted]]) -> None:
    url, handler = engine
    usage = {"prompt_tokens": 3, "completion_tokens": 5}
    handler.events = (text("a b"), text(" c d e"), {"choices": [], "usage": usage})
    answer = completions.complete(url, "m", [1, 2, 3], 5)
    assert (answer.text, answer.tokens, answer.events, answer.prompt_tokens) == ("a b c d e", 5, 2, 3)
    assert completions.tpot(2.05, 0.05, 101) == pytest.approx(0.020)
    assert completions.tpot(1.0, 0.5, 1) is None, "one token has no time per token"
    assert 0 < answer.ttft_s <= answer.e2e_s
    assert handler.heard[0]["ignore_eos"] is True
    assert handler.heard[0]["stream_options"] == {"include_usage": True}


def test_together_says_what_the_engine_refuses(engine: tuple[str, type[Scripted]]) -> None:
    with pytest.raises(completions.RefusedByEngine, match=r"400.*too long"):
        completions.together(engine[0], "m", ["a", "b"], 101)


def test_complete_refuses_an_answer_without_its_count(engine: tuple[str, type[Scripted]]) -> None:
    engine[1].events = (text("a"),)
    with pytest.raises(completions.RefusedByEngine, match="without its count"):
        completions.complete(engine[0], "m", "a", 5)
