"""A small inference server with the course's engine (paged_engine.py, paged_model.py) and the same HTTP API as vLLM.

You will learn    what an engine does between a prompt and the text: tokens in, one step for all running requests, tokens out
You will produce  nothing directly: engines.py starts it, completions.py talks to it
Run it            python serve.py --model FOLDER --port 8000; then curl -s localhost:8000/v1/completions -d
                  '{"prompt": "def ", "max_tokens": 8}'
Your part         read `Service`: one thread computes for all, and one thread for each request waits
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
from paged_engine import PAGE, PART_ENGINE, Engine, PagePool, PrefixPool, Request, prompts_first
from paged_model import HubModel, PagedModel, Runner
from transformers import AutoModelForCausalLM, AutoTokenizer

GREEDY = 1e-6  # a temperature at which only the likeliest token is left
LIMIT_S, LIMIT_S_PART = 300, 20  # the longest time of a step; a learner's part serves a small model

parser = argparse.ArgumentParser(description="serve a language model over the OpenAI-style completions API")
parser.add_argument("--model", type=str, required=True, help="a folder, or a name on the hub")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--max-num-seqs", type=int, default=16, help="requests that compute at the same time")
parser.add_argument("--max-model-len", type=int, default=512, help="tokens of prompt and answer together")
parser.add_argument("--kv-share", type=float, default=1.0, help="of these requests: how many the cache has pages for")
parser.add_argument("--max-num-batched-tokens", type=int, default=0, help="most tokens in a step; 0: chosen for the device")
parser.add_argument("--part", type=Path, help="my_scheduler.py or my_prefix.py: the model `yours` is an engine with it")
parser.add_argument("--part-budget", type=int, default=0, help="most tokens in a step of that engine; 0: as for the other one")
args = parser.parse_args()

if Path(args.model).name == "tiny" and not (Path(args.model) / "config.json").exists():
    language_models.make_tiny(Path(args.model))
device = torch.device("cuda" if torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo" else "cpu")
if device.type == "cpu":
    torch.set_num_threads(1)  # the model is small: two threads would wait for each other, and the client needs a core
dtype = torch.float16 if device.type == "cuda" else torch.float32
tokenizer = AutoTokenizer.from_pretrained(args.model)
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype).to(device).eval()
# A step takes as many prompt tokens as keep the device busy.
budget = args.max_num_batched_tokens or max(2048 if device.type == "cuda" else 256, args.max_num_seqs)
names = itertools.count()
decoder, computing = HubModel(model), threading.Lock()  # one model, which computes for one engine at a time


@dataclass(frozen=True)
class Caller:
    """A request, its temperature, the token that ends its answer (-1: none), and its tokens for the thread that waits."""

    request: Request
    temperature: float
    stop: int
    tokens: queue.SimpleQueue[int | BaseException] = field(default_factory=queue.SimpleQueue)


class Service:
    """An engine, the tokens of its requests, and the thread that computes them."""

    def __init__(self, budget: int, part: Path | None = None) -> None:
        """`part` is the learner's file, which may raise or hang: only the thread of this engine imports and calls it."""
        self.budget, self.part = budget, part
        self.arrivals: queue.SimpleQueue[tuple[Caller, list[int]]] = queue.SimpleQueue()
        self.callers: dict[str, Caller] = {}
        self.texts: dict[str, list[int]] = {}
        self.last_step_s = time.monotonic()
        self.thread = threading.Thread(target=self.compute_or_fail, daemon=True)
        self.thread.start()

    def compute(self) -> None:
        """Compute step after step, and pass each token to the thread that waits for it."""
        count = max(1, int(args.max_num_seqs * args.kv_share)) * (args.max_model_len // PAGE + 1)
        pool, schedule = PagePool(count), prompts_first
        if self.part:
            sys.path.append(str(self.part.resolve().parent))
            module = importlib.import_module(self.part.stem)
            if self.part.name == "my_prefix.py":
                pool = PrefixPool(module.PrefixCache(count, PAGE), PAGE, self.texts)
            else:
                schedule = module.schedule
        engine = Engine(schedule, pool, budget=self.budget, max_requests=args.max_num_seqs)
        runner = Runner(PagedModel(decoder, count, PAGE, device=device.type), pool, self.texts)
        while True:
            while not self.arrivals.empty() or not (engine.waiting or engine.running):
                caller, ids = self.arrivals.get()
                self.callers[caller.request.name], self.texts[caller.request.name] = caller, ids
                engine.waiting.append(caller.request)
            step = engine.plan_step(time.monotonic_ns())
            with computing:
                new = runner.compute(step, self.choose) if step.plan else {}
            self.last_step_s = time.monotonic()
            for name, token in new.items():
                caller = self.callers[name]
                if token == caller.stop:
                    caller.request.answer_tokens = caller.request.generated_tokens + 1
                caller.tokens.put(token)
            for request in engine.finish_step(step, time.monotonic_ns()):
                del self.callers[request.name], self.texts[request.name]

    def choose(self, name: str, scores: torch.Tensor) -> int:
        """Return the next token of a request, by its temperature."""
        temperature = self.callers[name].temperature
        return int(scores.argmax() if temperature <= GREEDY else torch.multinomial(torch.softmax(scores / temperature, -1), 1))

    def compute_or_fail(self) -> None:
        """Compute until a part or the engine fails. Then fail all requests."""
        try:
            self.compute()
        except BaseException as error:  # noqa: BLE001 (a learner's part may raise anything, and may call sys.exit)
            traceback.print_exc()
            for caller in self.callers.values():
                caller.tokens.put(error)
            while True:
                self.arrivals.get()[0].tokens.put(error)

    def answer(self, body: dict) -> Iterator[tuple[list[int], bool]]:
        """Yield all tokens of one request so far, at each new token, and whether the answer is finished."""
        prompt, count = body["prompt"], body["max_tokens"]
        ids = list(prompt) if isinstance(prompt, list) else tokenizer(prompt)["input_ids"]
        request = Request(f"cmpl-{next(names)}", time.monotonic_ns(), len(ids), count, max_answer_tokens=count)
        stop = -1 if body.get("ignore_eos") else model.config.eos_token_id
        caller, tokens = Caller(request, float(body.get("temperature", 1.0)), stop), list[int]()
        self.arrivals.put((caller, ids))
        while len(tokens) < count and stop not in tokens[-1:]:
            tokens.append(self.wait_for_token(caller))
            yield tokens, len(tokens) == count or tokens[-1] == stop

    def wait_for_token(self, caller: Caller) -> int:
        """Return the next token. Raises RuntimeError if the engine has failed, TimeoutError if it is stuck.

        The log then shows where it is stuck.
        """
        limit_s, start_s = LIMIT_S_PART if self.part else LIMIT_S, time.monotonic()
        while True:
            try:
                token = caller.tokens.get(timeout=limit_s)
            except queue.Empty:
                if time.monotonic() - max(start_s, self.last_step_s) < limit_s:
                    continue  # other requests come first
                traceback.print_stack(sys._current_frames()[self.thread.ident])  # noqa: SLF001 (the way that Python documents)
                raise TimeoutError(f"no step ended in {limit_s} s; above is where the engine is") from None
            if isinstance(token, BaseException):
                raise RuntimeError(f"the engine has failed: {token!r}") from token
            return token


class Completions(BaseHTTPRequestHandler):
    """GET /health and /v1/models; POST /v1/completions, streamed or whole."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing, because the engine's log contains only faults."""

    def do_GET(self) -> None:
        pages = {"/health": {}, "/v1/models": {"data": [{"id": name, "object": "model"} for name in services]}}
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
        elif (name := request.get("model", args.model)) not in services:
            self.document(404, {"error": {"message": f"no model {name}"}})
        elif request.get("stream"):
            self.stream(services[name], request, length)
        else:
            tokens = [tokens for tokens, _ in services[name].answer(request)][-1]
            self.document(
                200, {"choices": [{"index": 0, "text": tokenizer.decode(tokens)}], "usage": usage(length, len(tokens))}
            )

    def stream(self, service: Service, request: dict, length: int) -> None:
        """Send each token as soon as it is generated, as one of the API's server-sent events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        sent_text = ""
        for tokens, completion in service.answer(request):
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
services = {args.model: Service(budget)}
if args.part:
    services[PART_ENGINE] = Service(args.part_budget or budget, args.part)
ThreadingHTTPServer.request_queue_size = 1024  # Linux resets connections beyond the queue, and the default is 5
server = ThreadingHTTPServer(("127.0.0.1", args.port), Completions)
print(f"serving {args.model} on {device} at port {args.port}", file=sys.stderr, flush=True)
server.serve_forever()
