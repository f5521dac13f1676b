"""A small inference server with the course's engine (paged_engine.py, paged_model.py) and the same HTTP API as vLLM.

You will learn    what an engine does between a prompt and the text: tokens in, one step for all running requests, tokens out
You will produce  nothing by itself: engines.py starts it, completions.py talks to it
Run it            python serve.py --model FOLDER --port 8000; then curl -s localhost:8000/v1/completions -d
                  '{"model": "m", "prompt": "def ", "max_tokens": 8}'
Your part         read `compute` and `answer`: one thread computes for all, and one thread for each request waits
Reading           modules/01-basic-gpu/lesson-2-engine.md, "What an engine does"
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import language_models
import torch
from paged_engine import PAGE, Engine, PagePool, PrefixPool, Request, prompts_first
from paged_model import HubModel, PagedModel, Runner
from transformers import AutoModelForCausalLM, AutoTokenizer

GREEDY = 1e-6  # a temperature at which only the likeliest token is left

parser = argparse.ArgumentParser(description="serve a language model over the OpenAI-style completions API")
parser.add_argument("--model", type=str, required=True, help="a folder, or a name on the hub")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--max-num-seqs", type=int, default=16, help="requests that compute at the same time")
parser.add_argument("--max-model-len", type=int, default=512, help="tokens of prompt and answer together")
parser.add_argument("--kv-share", type=float, default=1.0, help="of these requests: how many the cache has pages for")
parser.add_argument("--max-num-batched-tokens", type=int, default=0, help="most tokens in a step; 0: chosen for the device")
parser.add_argument("--part", action="append", type=Path, default=[],
                    help="my_scheduler.py or my_prefix.py, instead of the engine's own scheduler or pages")  # fmt: skip
args = parser.parse_args()

if Path(args.model).name == "tiny" and not (Path(args.model) / "config.json").exists():
    language_models.make_tiny(Path(args.model))
device = torch.device("cuda" if torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo" else "cpu")
if device.type == "cpu":
    torch.set_num_threads(1)  # the model is small: two threads would wait for each other, and the client needs a core
dtype = torch.float16 if device.type == "cuda" else torch.float32
tokenizer = AutoTokenizer.from_pretrained(args.model)
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype).to(device).eval()
sys.path += [str(part.resolve().parent) for part in args.part]
parts = {part.name: importlib.import_module(part.stem) for part in args.part}
texts: dict[str, list[int]] = {}
pages = max(1, int(args.max_num_seqs * args.kv_share)) * (args.max_model_len // PAGE + 1)
pool = PagePool(pages)
if "my_prefix.py" in parts:
    pool = PrefixPool(parts["my_prefix.py"].PrefixCache(pages, PAGE), PAGE, texts)
# A step takes as many prompt tokens as keep the device busy.
budget = args.max_num_batched_tokens or max(2048 if device.type == "cuda" else 256, args.max_num_seqs)
schedule = parts["my_scheduler.py"].schedule if "my_scheduler.py" in parts else prompts_first
engine = Engine(schedule, pool, budget=budget, max_requests=args.max_num_seqs)
runner = Runner(PagedModel(HubModel(model), pages, PAGE, device=device.type), pool, texts)
names = itertools.count()


@dataclass(frozen=True)
class Caller:
    """A request, its temperature, the token that ends its answer (-1: none), and its tokens for the thread that waits."""

    request: Request
    temperature: float
    stop: int
    tokens: queue.SimpleQueue[int | Exception] = field(default_factory=queue.SimpleQueue)


arrivals: queue.SimpleQueue[tuple[Caller, list[int]]] = queue.SimpleQueue()
callers: dict[str, Caller] = {}


def compute() -> None:
    """Compute step after step, and pass each token to the thread that waits for it."""
    while True:
        while not arrivals.empty() or not (engine.waiting or engine.running):
            caller, ids = arrivals.get()
            callers[caller.request.name], texts[caller.request.name] = caller, ids
            engine.waiting.append(caller.request)
        step = engine.plan_step(time.monotonic_ns())
        new = runner.compute(step, choose) if step.plan else {}
        for name, token in new.items():
            caller = callers[name]
            if token == caller.stop:
                caller.request.answer_tokens = caller.request.generated_tokens + 1
            caller.tokens.put(token)
        for request in engine.finish_step(step, time.monotonic_ns()):
            del callers[request.name], texts[request.name]


def choose(name: str, scores: torch.Tensor) -> int:
    """Return the next token of a request, by its temperature."""
    temperature = callers[name].temperature
    return int(scores.argmax() if temperature <= GREEDY else torch.multinomial(torch.softmax(scores / temperature, -1), 1))


def compute_or_fail() -> None:
    """Compute until a part or the engine fails. Then fail all requests."""
    try:
        compute()
    except Exception as error:  # noqa: BLE001 (a learner's part may raise anything)
        traceback.print_exc()
        for caller in callers.values():
            caller.tokens.put(error)
        while True:
            arrivals.get()[0].tokens.put(error)


def answer(body: dict) -> Iterator[tuple[list[int], bool]]:
    """Yield all tokens of one request so far, at each new token, and whether the answer is finished."""
    prompt, count = body["prompt"], body["max_tokens"]
    ids = list(prompt) if isinstance(prompt, list) else tokenizer(prompt)["input_ids"]
    request = Request(f"cmpl-{next(names)}", time.monotonic_ns(), len(ids), count, max_answer_tokens=count)
    stop = -1 if body.get("ignore_eos") else model.config.eos_token_id
    caller, tokens = Caller(request, float(body.get("temperature", 1.0)), stop), list[int]()
    arrivals.put((caller, ids))
    while len(tokens) < count and stop not in tokens[-1:]:
        token = caller.tokens.get(timeout=300)
        if isinstance(token, Exception):
            raise token
        tokens.append(token)
        yield tokens, len(tokens) == count or token == stop


class Completions(BaseHTTPRequestHandler):
    """GET /health and /v1/models; POST /v1/completions, streamed or whole."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing, because the engine's log contains only faults."""

    def do_GET(self) -> None:
        pages = {"/health": {}, "/v1/models": {"data": [{"id": args.model, "object": "model"}]}}
        self.document(200 if self.path in pages else 404, pages.get(self.path, {"error": "no such page"}))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = request.get("prompt", "")
        length = len(prompt if isinstance(prompt, list) else tokenizer(prompt)["input_ids"])
        max_tokens = request.setdefault("max_tokens", 16)
        if not length or max_tokens < 1 or length + max_tokens > args.max_model_len:
            message = (
                f"{length} prompt tokens and {max_tokens} to generate: at least 1 of each, "
                f"and at most {args.max_model_len} together"
            )
            self.document(400, {"error": {"message": message}})
        elif request.get("stream"):
            self.stream(request, length)
        else:
            tokens = [tokens for tokens, _ in answer(request)][-1]
            self.document(
                200, {"choices": [{"index": 0, "text": tokenizer.decode(tokens)}], "usage": usage(length, len(tokens))}
            )

    def stream(self, request: dict, length: int) -> None:
        """Send each token as soon as it is generated, as one of the API's server-sent events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        sent_text = ""
        for tokens, completion in answer(request):
            text = tokenizer.decode(tokens)
            if text.endswith("\ufffd") and not completion:
                text = sent_text  # half a character; the rest comes with the next token
            new, sent_text = text[len(sent_text) :], text
            self.event({"choices": [{"index": 0, "text": new, "finish_reason": "length" if completion else None}]})
        self.event({"choices": [], "usage": usage(length, len(tokens))})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, content: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")

    def document(self, status: int, content: dict) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def end_with_parent() -> None:
    """End when the process that started this one ends. Otherwise, an abandoned engine would keep the GPU."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


threading.Thread(target=end_with_parent, daemon=True).start()
threading.Thread(target=compute_or_fail, daemon=True).start()
ThreadingHTTPServer.request_queue_size = 1024  # Linux resets connections beyond the queue, and the default is 5
server = ThreadingHTTPServer(("127.0.0.1", args.port), Completions)
print(f"serving {args.model} on {device} at port {args.port}", file=sys.stderr, flush=True)
server.serve_forever()
