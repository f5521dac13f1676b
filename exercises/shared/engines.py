"""Start an inference engine, wait until it answers, measure its memory, and always stop it.

The engine is vLLM if there is a GPU and vLLM is installed, and otherwise serve.py, beside this file. Both have the same HTTP
API, so a script sees no difference.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.metadata
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import bench
import language_models
import torch

UNREACHED = (
    "couldn't connect to",
    "LocalEntryNotFoundError",
    "OfflineModeIsEnabled",
    "Max retries exceeded",
    "name resolution",
)
# A node on AWS writes here how far it is with vLLM, which it installs once the rest is ready.
VLLM_STATE = Path(os.environ.get("GPUCOURSE_NODE_ROOT") or "/", "var/lib/gpucourse/vllm")
CACHE_LINES = r"Available KV cache memory: ([\d.]+) GiB", r"GPU KV cache size: ([\d,]+) tokens"  # as vLLM's V1 engine logs them
READY_S = {"vllm": 900, "transformers": 180}  # vLLM's first start downloads weights and compiles


@dataclass(frozen=True)
class Engine:
    """A running engine: its `url`, the name under which it serves its `model`, how long it took to load, its process."""

    kind: str
    url: str
    model: str
    load_s: float
    process: subprocess.Popen[bytes]

    def memory_bytes(self) -> int | None:
        """Return the memory that the engine holds, or None if it is unknown.

        On a GPU, it is the driver's figure for all processes. Otherwise, it is the engine's resident memory. The model is in
        another process, so this process's own allocations say nothing.
        """
        if torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo":
            free, total = torch.cuda.mem_get_info(0)
            return total - free
        try:
            import psutil
        except ImportError:
            return None
        return psutil.Process(self.process.pid).memory_info().rss


def wait_for_vllm(pause_s: float = 2.0) -> None:
    """Wait until this node has finished installing vLLM, and print a message meanwhile. On other computers, return at once.

    The wait ends at the latest when the node stops the installation, at a time that the node announces.
    """
    shown_step, shown_at = "", 0.0
    while True:
        text = VLLM_STATE.read_text(encoding="utf-8", errors="replace")[:200] if VLLM_STATE.is_file() else ""
        state, _, details = text.strip().partition(" ")
        until, _, step = details.partition(" ")
        seconds = float(until) - time.time() if until.isdigit() else 0.0
        if state == "failed":
            bench.say(f"vLLM could not be installed on this node: {details}")
        if state != "installing" or seconds <= 0:
            return
        if step != shown_step or time.monotonic() > shown_at + 60:
            bench.say(
                f"waiting for vLLM, which this node is still installing ({step}); at most {seconds / 60:.0f} more minutes"
            )
            shown_step, shown_at = step, time.monotonic()
        time.sleep(pause_s)


def choose(kind: str) -> str:
    """Return the engine for this computer. End the script with a message if the requested engine cannot run here."""
    has_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
    if has_gpu and kind != "transformers":
        wait_for_vllm()
    if kind == "auto":
        return "vllm" if has_gpu and shutil.which("vllm") else "transformers"
    if kind == "vllm" and not has_gpu:
        sys.exit("vLLM needs a GPU, but there is none here: --engine transformers (or auto)")
    if kind == "vllm" and not shutil.which("vllm"):
        sys.exit("vLLM is not installed here: pip install vllm, best in a separate environment, and put it on the PATH")
    return kind


def version(kind: str) -> str | None:
    """Return the version of the running engine, or None if it does not report one. Speeds depend on it."""
    if kind == "transformers":
        return importlib.metadata.version("transformers")
    process = subprocess.run(["vllm", "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return process.stdout.split()[-1] if process.returncode == 0 and process.stdout.split() else None


def command(
    kind: str, model: str, port: int, *, max_num_seqs: int, max_model_len: int, eager: bool, kv_share: float = 1.0,
    budget: int = 0, is_sharing: bool = False, part: Path | None = None, part_budget: int = 0,
) -> list[str]:  # fmt: skip
    """Return the command that serves `model` to at most `max_num_seqs` requests at a time.

    `kv_share` makes the cache of keys and values smaller: 1 has room for all of these requests. `budget` is the largest number
    of tokens in a step, or 0 for the engine's own. With `is_sharing`, vLLM's requests share the pages of a common prefix.
    `part` is the learner's my_scheduler.py or my_prefix.py: serve.py then serves a second engine with it, and with its own
    `part_budget`, as the model `paged_engine.PART_ENGINE`.
    """
    common = [f"--port={port}", f"--max-num-seqs={max_num_seqs}", f"--max-model-len={max_model_len}"]
    common += [f"--max-num-batched-tokens={budget}"] if budget else []
    if kind == "transformers":
        server = str(Path(__file__).resolve().with_name("serve.py"))
        part_options = [f"--part={part}", f"--part-budget={part_budget}"] if part else []
        return [sys.executable, server, f"--model={model}", *common, f"--kv-share={kv_share:g}", *part_options]
    words = vllm_words(eager=eager, kv_share=kv_share)
    words += ["--enable-prefix-caching" if is_sharing else "--no-enable-prefix-caching"]
    return ["vllm", "serve", model, "--host=127.0.0.1", *common, *words]


def vllm_words(*, eager: bool, kv_share: float = 1.0) -> list[str]:
    """Return the options that vLLM always gets here: a limit of memory, float16 if the hardware lacks bfloat16, no CUDA
    graphs.

    vLLM's cache takes the rest of vLLM's share of the GPU's memory, after the weights. So `kv_share` makes that share smaller.
    """
    half = torch.cuda.is_available() and not torch.cuda.is_bf16_supported(including_emulation=False)
    return [
        f"--gpu-memory-utilization={0.85 * kv_share:.3g}",
        *(["--dtype=half"] if half else []),
        *(["--enforce-eager"] if eager else []),
    ]


def read_cache_size(log: str) -> tuple[float, int] | None:
    """Return the GiB and the tokens of the cache that vLLM announces in its log, or None if the log has no such lines."""
    gib, tokens = (re.search(line, log) for line in CACHE_LINES)
    return (float(gib[1]), int(tokens[1].replace(",", ""))) if gib and tokens else None


@contextlib.contextmanager
def running(
    kind: str,
    model: str,
    folder: Path,
    *,
    max_num_seqs: int,
    max_model_len: int,
    eager: bool = True,
    kv_share: float = 1.0,
    budget: int = 0,
    is_sharing: bool = False,
    part: Path | None = None,
    part_budget: int = 0,
) -> Iterator[Engine]:
    """Yield the engine, ready to answer, for as long as the block lasts. Its log is `engine.log` in `folder`. The settings are
    those of `command`.

    End the script with the log's last lines if the engine does not start. Also stop the engine if the script is terminated.
    """
    claim = socket.socket()  # holds the port until the engine has it, so that no other program gets it meanwhile
    claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    claim.bind(("127.0.0.1", 0))
    port = claim.getsockname()[1]
    if sys.platform != "linux":  # only Linux lets the engine listen at a port to which another socket is bound
        claim.close()
    scratch = tempfile.TemporaryDirectory()
    model_path = language_models.place(model, Path(scratch.name))
    if kind == "vllm" and not language_models.MODELS[model].hub:
        language_models.make_tiny(Path(model_path))  # serve.py makes it by itself
    limits = {"max_num_seqs": max_num_seqs, "max_model_len": max_model_len}
    shares = {"kv_share": kv_share, "budget": budget, "is_sharing": is_sharing}
    words = command(kind, model_path, port, **limits, eager=eager, **shares, part=part, part_budget=part_budget)
    quiet = {"TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}
    quiet |= {} if language_models.MODELS[model].hub else {"HF_HUB_OFFLINE": "1"}
    log = folder / "engine.log"
    earlier_handler = signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    start = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, env={**os.environ, **quiet})
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, url, start + READY_S[kind], log, model)
        claim.close()
        yield Engine(kind, url, model_path, time.perf_counter() - start, process)
    finally:
        claim.close()
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        scratch.cleanup()
        signal.signal(signal.SIGTERM, earlier_handler)


def offline(model: str, log: str) -> str:
    """Return a command to type if the engine's log says that the model could not be downloaded.

    For any other failure, return an empty string.
    """
    hub = language_models.MODELS[model].hub
    if not hub or not any(sign in log for sign in UNREACHED):
        return ""
    return (
        f"\n{model} has to be downloaded ({hub}), and the hub could not be reached. The model tiny is created here: "
        "gpucourse run ... --set model=tiny, or --model=tiny by hand"
    )


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, deadline: float, log: Path, model: str) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError):
            time.sleep(0.05)
        if process.poll() is not None or time.perf_counter() > deadline:
            reason = f"ended with code {process.poll()}" if process.poll() is not None else "did not answer in time"
            text = log.read_text(encoding="utf-8", errors="replace")
            last = "\n".join(text.splitlines()[-15:])
            sys.exit(f"the engine {reason}; the end of its log, {log.name}:\n{last}{offline(model, text)}")
