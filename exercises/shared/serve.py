"""A small inference server with transformers' continuous batching and paged cache, and with the same HTTP API as vLLM.

You will learn    what an engine does between a prompt and the text: tokens in, one step for all running requests, tokens out
You will produce  nothing by itself: engines.py starts it, completions.py talks to it
Run it            python serve.py --model FOLDER --port 8000; then curl -s localhost:8000/v1/completions -d
                  '{"model": "m", "prompt": "def ", "max_tokens": 8}'
Your part         read `route` and `answer`: one thread computes for all, one thread hands out, one thread a request waits
Reading           modules/01-basic-gpu/lesson.md, "What an engine does"
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import engines
import language_models
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.generation.configuration_utils import ContinuousBatchingConfig

GREEDY = 1e-6  # a temperature at which only the likeliest token is left

parser = argparse.ArgumentParser(description="serve a language model over the OpenAI-style completions API")
parser.add_argument("--model", type=str, required=True, help="a folder, or a name on the hub")
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--max-num-seqs", type=int, default=16, help="requests that compute at the same time")
parser.add_argument("--max-model-len", type=int, default=512, help="tokens of prompt and answer together")
parser.add_argument("--kv-share", type=float, default=1.0, help="of these requests: how many the cache has pages for")
parser.add_argument("--max-num-batched-tokens", type=int, default=0, help="most tokens in a step; 0: chosen for the device")
parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=False,
                    help="requests share the pages of an equal beginning")  # fmt: skip
args = parser.parse_args()

if Path(args.model).name == "tiny" and not (Path(args.model) / "config.json").exists():
    language_models.make_tiny(Path(args.model))
device = torch.device("cuda" if torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo" else "cpu")
if device.type == "cpu":
    torch.set_num_threads(1)  # the model is small: two threads would wait for each other, and the client needs a core
dtype = torch.float16 if device.type == "cuda" else torch.float32
tokenizer = AutoTokenizer.from_pretrained(args.model)
model = AutoModelForCausalLM.from_pretrained(args.model, dtype=dtype, attn_implementation="sdpa").to(device).eval()
manager = model.init_continuous_batching(
    generation_config=GenerationConfig(do_sample=True, temperature=0.5, top_k=0, eos_token_id=-1, pad_token_id=0),
    continuous_batching_config=ContinuousBatchingConfig(
        **engines.choose_batching(
            {field.name for field in dataclasses.fields(ContinuousBatchingConfig)},
            requests=args.max_num_seqs,
            longest=args.max_model_len,
            kv_share=args.kv_share,
            on_gpu=device.type == "cuda",
            budget=args.max_num_batched_tokens,
            is_sharing=args.enable_prefix_caching,
        )
    ),
)
manager.start()
waiting: dict[str, queue.SimpleQueue] = {}
numbers = itertools.count()


def route() -> None:
    """Pass each step's tokens to the requests that wait for them."""
    for output in manager:
        waiting[output.request_id].put(output)


def answer(request: dict) -> Iterator[tuple[list[int], bool]]:
    """Yield all tokens of one request so far, at each new token, and whether the answer is finished."""
    prompt = request["prompt"]
    ids = prompt if isinstance(prompt, list) else tokenizer(prompt)["input_ids"]
    name = f"cmpl-{next(numbers)}"
    waiting[name] = queue.SimpleQueue()
    stop = -1 if request.get("ignore_eos") else model.config.eos_token_id
    warmth = max(float(request.get("temperature", 1.0)), GREEDY)
    manager.add_request(ids, name, request["max_tokens"], streaming=True, eos_token_id=stop, temperature=warmth)
    try:
        while True:
            output = waiting[name].get(timeout=300)
            if output.error:
                raise RuntimeError(output.error)
            yield output.generated_tokens, output.is_finished()
            if output.is_finished():
                return
    finally:
        del waiting[name]


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
threading.Thread(target=route, daemon=True).start()
ThreadingHTTPServer.request_queue_size = 1024  # Linux resets connections beyond the queue, and the default is 5
server = ThreadingHTTPServer(("127.0.0.1", args.port), Completions)
print(f"serving {args.model} on {device} at port {args.port}", file=sys.stderr, flush=True)
server.serve_forever()
