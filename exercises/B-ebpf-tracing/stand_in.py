"""A stand-in for an inference engine on a GPU: a process that makes the same CUDA calls and keeps a ledger of them.

`build` compiles the runtime (cudart.c), the engine (engine.c) and the tracer that does not need root (count_calls.c).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

HERE = Path(__file__).resolve().parent
LIBRARY, ENGINE, COUNTER, HEADER = "libcudart.so.13", "engine", "count_calls.so", "counters.h"
FLAGS = ("-O2", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")  # to walk stacks and name functions
STEPS = {
    LIBRARY: ("cudart.c", "-shared", "-fPIC", f"-Wl,-soname,{LIBRARY}"),
    ENGINE: ("engine.c", f"./{LIBRARY}", "-rdynamic", "-Wl,-rpath,$ORIGIN"),
    COUNTER: ("count_calls.c", "-shared", "-fPIC", "-ldl"),
}
COMPILE_S = 120.0
MAX_KEPT = 3  # builds in the cache
PAGE = 16  # tokens per page of the engine's cache; engine.c has the same number


class UnsupportedMachine(Exception):
    """The stand-in cannot be built or used on this computer. The text says what to do."""


class CompilerRefused(UnsupportedMachine):
    """The compiler refused a file. The text has its first error."""


class EngineEnded(Exception):
    """The engine ended before it answered, or something in its process printed between its answers. The text says which."""


class InsideTracer(Protocol):
    """A tracer that runs inside the engine, with the variables that the engine's environment needs from the beginning."""

    environment: Mapping[str, str]
    descriptors: Sequence[int]


def build(cache: Path | None = None, *, is_measured: bool = True) -> Path:
    """Return the folder with the runtime, the engine and the counter. They are built now or taken from `cache`.

    If `cache` is None, it is the user's cache. Raises UnsupportedMachine without Linux, without a compiler, or if the compiler
    fails. Also raises it on a computer with a GPU, unless `is_measured` is false: a judge measures nothing, so it may use the
    stand-in anywhere.
    """
    if is_measured and Path("/dev/nvidia0").exists():
        raise UnsupportedMachine("this computer has a GPU, so the stand-in is refused here (--engine torch uses the GPU)")
    return _build(cache)


def build_counter(cache: Path | None = None) -> Path:
    """Return the library that counts calls from inside a process (count_calls.so), with or without a GPU.

    Raises UnsupportedMachine.
    """
    return _build(cache) / COUNTER


def _build(cache: Path | None) -> Path:
    if sys.platform != "linux":
        raise UnsupportedMachine(
            f"uprobes and LD_PRELOAD need Linux, but this is {platform.system()}: use your own Linux machine "
            "(--target hosts), or one on AWS (--target aws)"
        )
    compiler = _find_compiler()
    texts = [(HERE / name).read_bytes() for name in (HEADER, *(words[0] for words in STEPS.values()))]
    key = hashlib.sha256(b"\0".join([*texts, repr([compiler, platform.machine(), FLAGS, STEPS]).encode()])).hexdigest()[:20]
    store = _choose_store(cache)
    if not (store / key / COUNTER).is_file():
        with tempfile.TemporaryDirectory(prefix=".build-", dir=store) as folder:
            built = Path(folder) / "built"
            built.mkdir(mode=0o755)
            for target, (source, *words) in STEPS.items():
                _compile([compiler, *FLAGS, str(HERE / source), *words, "-o", target], built)
            with suppress(OSError):  # another process has put the same files there in the meantime
                built.rename(store / key)
        for old in sorted(store.glob("[0-9a-f]*"), key=lambda path: path.stat().st_mtime)[:-MAX_KEPT]:
            shutil.rmtree(old, ignore_errors=True)
    return store / key


def build_library(source: Path, folder: Path) -> Path:
    """Compile a C file into a library in `folder` that can be loaded before the runtime, and return its path.

    Raises UnsupportedMachine without a compiler, and CompilerRefused with the compiler's first error.
    """
    target = folder / f"{source.stem}.so"
    words = (str(source), "-I", str(HERE), "-shared", "-fPIC", "-ldl", "-o", str(target))
    _compile([_find_compiler(), *FLAGS, *words], folder)
    return target


def _find_compiler() -> str:
    if (compiler := shutil.which("cc") or shutil.which("gcc")) is None:
        raise UnsupportedMachine("a C compiler is needed, but none is installed: sudo apt-get install gcc libc6-dev")
    return compiler


def _choose_store(cache: Path | None) -> Path:
    """Return a writable folder for built files that belongs to this user alone. Raises UnsupportedMachine."""
    home = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or ".") / ".cache"
    caches = Path(os.environ.get("GPUCOURSE_CACHE") or Path(home) / "gpucourse")  # on a node, removed with the lab
    for place in (cache or caches / "tracing", Path("build").absolute()):
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            status = place.stat()
            if status.st_uid == os.getuid() and not status.st_mode & 0o022 and os.access(place, os.W_OK | os.X_OK):
                return place
    raise UnsupportedMachine("no cache folder belongs to you alone: set XDG_CACHE_HOME to a folder that does")


def _compile(words: Sequence[str], folder: Path) -> None:
    process = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False
    )
    if process.returncode != 0:
        first = next((line for line in process.stderr.splitlines() if "error" in line), "it does not say why")
        raise CompilerRefused(f"cc cannot compile {Path(words[len(FLAGS) + 1]).name}: {first[:300]}")


class Engine:
    """An engine process. Use it with `with`. It ends with the block, or with this process if that ends first.

    `layers` and `seed` determine its computations (engine.c). `memory` is the GPU's memory in bytes. `tracer` counts inside the
    process. `prefix` is put before its command, such as `unshare ...`. `pid` is the process id of the started command.
    """

    def __init__(
        self, *, layers: int = 6, seed: int = 1, memory: int | None = None, tracer: InsideTracer | None = None,
        prefix: Sequence[str] = (), folder: Path | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder or build()
        self._start_as([*prefix, str(self.folder / ENGINE), str(layers), str(seed)], tracer)
        if memory is not None:
            self._environment["STAND_IN_MEMORY"] = str(memory)

    def _start_as(self, command: Sequence[str], tracer: InsideTracer | None) -> None:
        """Store how the process will be started."""
        self._command = list(command)
        self._environment = dict(os.environ) | dict(tracer.environment if tracer else {})
        self._descriptors = tuple(tracer.descriptors) if tracer else ()
        self._lock = threading.Lock()  # one request at a time, even with several clients

    def __enter__(self) -> Engine:  # noqa: PYI034 (Self is newer than Python 3.10)
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self._environment,
            pass_fds=self._descriptors,
        )  # fmt: skip
        try:
            self.ledger()  # once it answers, its libraries are loaded, and a tracer can find them
        except EngineEnded:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with suppress(OSError):  # the engine may already have ended
            self._stdin.close()  # the engine ends when its input ends
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()

    @property
    def pid(self) -> int:
        """Return the process id of the started command."""
        return self._process.pid

    @property
    def library(self) -> Path:
        """Return the CUDA runtime that the engine uses."""
        return self.folder / LIBRARY

    def load(self) -> str | None:
        """Load the weights. Return None, or the reason why they could not be loaded."""
        return self._ask("load")["error"]

    def request(self, prompt: int, tokens: int) -> tuple[int, str | None]:
        """Send a request with `prompt` tokens. Return how many of `tokens` were generated, and why not all, or None."""
        answer = self._ask(f"request {prompt} {tokens}")
        return answer["tokens"], answer["error"]

    def ledger(self) -> dict[str, Any]:
        """Return the engine's true counts since its start: `calls`, `bytes`, `failed`, `alive_bytes`, `kernels`, `sites`."""
        return self._ask("ledger")

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Yield the address of an HTTP server in front of the engine.

        As in vLLM, it accepts POST /v1/completions with `prompt` and `max_tokens`. `prompt` is a list of tokens, or a text, of
        which each word counts as a token.
        """
        engine = self

        class Front(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                try:
                    body = json.loads(self.rfile.read(min(int(self.headers["Content-Length"]), 1 << 20)))
                    prompt = body["prompt"]
                    count = len(prompt.split() if isinstance(prompt, str) else list(prompt))
                    token_count, reason = engine.request(max(1, count), max(1, int(body["max_tokens"])))
                except (KeyError, TypeError, ValueError) as error:
                    return self._answer(400, {"error": f"prompt and max_tokens are needed: {error}"})
                usage = {"prompt_tokens": count, "completion_tokens": token_count, "total_tokens": count + token_count}
                text = " ".join(["token"] * token_count)
                answer = {"object": "text_completion", "choices": [{"index": 0, "text": text}], "usage": usage}
                return self._answer(500 if reason else 200, {"error": reason} if reason else answer)

            def _answer(self, status: int, content: Mapping[str, object]) -> None:
                text = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_words: object) -> None:
                """Log nothing, because the run's log is for the exercise's own output."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Front) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()

    def _ask(self, words: str) -> Any:
        with self._lock:
            try:
                self._stdin.write(words + "\n")
                self._stdin.flush()
            except OSError:
                line = ""
            else:
                line = self._stdout.readline()
        if not line:
            raise EngineEnded(f"the engine ended (exit {self._process.wait()}) before it answered: {words}")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not answer:
            raise EngineEnded(
                f"something in its process prints to stdout, where its answers go; use stderr: {line.strip()[:100]}"
            )
        return answer

    @property
    def _stdin(self) -> Any:
        return self._process.stdin

    @property
    def _stdout(self) -> Any:
        return self._process.stdout
