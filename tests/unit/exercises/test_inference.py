"""What surrounds an inference engine: ceilings on GPUs that are not here, vLLM's words, a client that counts rightly."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.parts import need_module
from tests.unit.exercises.scripts import beside_the_script

completions = beside_the_script("shared", "completions")
vllm_bench = beside_the_script("04-benchmarking", "vllm_bench")
best_setting = beside_the_script("04-benchmarking", "best_setting")
language_models = beside_the_script("shared", "language_models")
BESIDE = ("bench", "gpus", "language_models", "engines", "ceilings")


@pytest.fixture
def shared_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The shared files as a script imports them."""
    need_module("torch")
    monkeypatch.syspath_prepend(str(find_course({}).exercises / "shared"))
    for name in BESIDE:
        monkeypatch.delitem(sys.modules, name, raising=False)
    import torch

    yield SimpleNamespace(torch=torch, **{name: importlib.import_module(name) for name in BESIDE})
    for name in BESIDE:
        sys.modules.pop(name, None)


# --- ceilings --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "batch", "ceiling"),
    [
        ("Tesla T4", "opt-1.3b", 1, 121.6),  # 320 GB/s over 2.63 GB, a little less for the cache of 256 tokens
        ("NVIDIA L4", "opt-1.3b", 1, 114.0),
        ("Tesla T4", "gpt2", 1, 1286),
        ("NVIDIA L4", "gpt2", 1, 1205),
    ],
)
def test_one_at_a_time_the_memory_is_the_limit(
    shared_files: Any, monkeypatch: pytest.MonkeyPatch, name: str, model: str, batch: int, ceiling: float
) -> None:
    limit = on(shared_files, monkeypatch, name, model).of(batch, 128, 128)
    assert limit.tok_per_s == pytest.approx(ceiling, rel=0.04)
    assert "reads all weights" in limit.reason


def test_a_large_batch_ends_at_the_arithmetic(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = on(shared_files, monkeypatch, "Tesla T4", "opt-1.3b")
    alone, some, many = (limits.of(batch, 1, 2).tok_per_s for batch in (1, 64, 512))
    assert many == pytest.approx(65e12 / (2 * 1_315_758_080))
    assert many > some > alone


def test_a_step_reads_the_cache_as_it_grows_and_not_as_it_ends(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_files.ceilings.mean_cached_tokens(128, 1) == 0, "the prompt's own step reads nothing"
    assert shared_files.ceilings.mean_cached_tokens(128, 3) == (129 + 130) / 3
    limit = on(shared_files, monkeypatch, "Tesla T4", "gpt2").of(64, 128, 128).tok_per_s
    weights, cache = 124_439_808 * 2, 64 * 36_864
    at_the_end = 64 * 320e9 / (weights + cache * 256)
    assert limit == pytest.approx(64 * 320e9 / (weights + cache * 190.5))
    assert limit > 1.15 * at_the_end, "a good engine would be refused by the cache at its largest"


def test_an_unknown_gpu_has_no_ceiling_and_refuses_nothing(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = on(shared_files, monkeypatch, "NVIDIA Tomorrow 1000", "gpt2", capability=(99, 0)).of(1, 128, 128)
    assert unknown.tok_per_s is None
    assert shared_files.ceilings.limit_to_possible(1e9, unknown) == 1e9


def test_an_unknown_gpu_of_a_known_generation_has_a_derived_ceiling(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = on(shared_files, monkeypatch, "NVIDIA Tomorrow 1000", "gpt2").of(1, 128, 128)
    of_a_t4 = on(shared_files, monkeypatch, "Tesla T4", "gpt2").of(1, 128, 128)
    assert own.tok_per_s == pytest.approx(of_a_t4.tok_per_s, rel=0.01), "the same bus and clock"
    assert own.reason.startswith("this GPU's derived 320 GB/s")


def test_above_the_ceiling_there_is_no_figure(shared_files: Any) -> None:
    ceiling = shared_files.ceilings.Ceiling(122.0, "a reason")
    assert shared_files.ceilings.limit_to_possible(200.0, ceiling) is None, "200 tokens/s of opt-1.3b on a T4, one at a time"
    assert shared_files.ceilings.limit_to_possible(90.0, ceiling) == 90.0


def test_a_processor_is_limited_by_its_own_fastest_product(shared_files: Any) -> None:
    limits = shared_files.ceilings.Ceilings(shared_files.language_models.MODELS["tiny"], shared_files.torch.device("cpu"))
    assert limits.of(1, 32, 24).tok_per_s == limits.of(8, 32, 24).tok_per_s > 100
    assert "measured here" in limits.of(1, 32, 24).reason


def on(shared_files: Any, monkeypatch: pytest.MonkeyPatch, name: str, model: str, capability: tuple[int, int] = (7, 5)) -> Any:
    props = SimpleNamespace(
        major=capability[0], minor=capability[1], multi_processor_count=40, clock_rate=1_590_000, memory_clock_rate=5_001_000,
        memory_bus_width=256,
    )  # fmt: skip
    monkeypatch.setattr(shared_files.torch.cuda, "get_device_name", lambda _: name)
    monkeypatch.setattr(shared_files.torch.cuda, "get_device_properties", lambda _: props)
    return shared_files.ceilings.Ceilings(shared_files.language_models.MODELS[model], shared_files.torch.device("cuda", 0))


def test_sizes_of_models() -> None:
    gpt2, opt = language_models.MODELS["gpt2"], language_models.MODELS["opt-1.3b"]
    assert gpt2.weight_bytes(2) == pytest.approx(0.25e9, rel=0.01)
    assert opt.weight_bytes(2) == pytest.approx(2.63e9, rel=0.001)
    assert (gpt2.kv_bytes(1, 2), opt.kv_bytes(1, 2)) == (36_864, 196_608)


# --- engines ---------------------------------------------------------------------------------------------------------------


def test_vllm_on_a_t4_gets_float16_and_no_prefix_cache(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, bool] = {}

    def native(*, including_emulation: bool = True) -> bool:
        asked["including_emulation"] = including_emulation
        return including_emulation  # Turing imitates it

    monkeypatch.setattr(shared_files.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shared_files.torch.cuda, "is_bf16_supported", native)
    words = shared_files.engines.command("vllm", "openai-community/gpt2", 8000, max_num_seqs=64, max_model_len=256, eager=True)
    assert words[:3] == ["vllm", "serve", "openai-community/gpt2"]
    assert {"--no-enable-prefix-caching", "--dtype=half", "--enforce-eager", "--max-num-seqs=64"} <= set(words)
    assert asked == {"including_emulation": False}
    assert "--enforce-eager" not in shared_files.engines.command("vllm", "m", 1, max_num_seqs=1, max_model_len=9, eager=False)


def test_the_version_of_an_engine_is_the_one_that_is_installed(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(code: int, text: str) -> Any:
        return lambda words, **_: SimpleNamespace(returncode=code, stdout=text) if words == ["vllm", "--version"] else None

    monkeypatch.setattr(shared_files.engines.subprocess, "run", answer(0, "INFO loading\n0.21.1\n"))
    assert shared_files.engines.version("vllm") == "0.21.1"
    monkeypatch.setattr(shared_files.engines.subprocess, "run", answer(1, ""))
    assert shared_files.engines.version("vllm") is None
    if importlib.util.find_spec("transformers"):
        assert shared_files.engines.version("transformers") == importlib.metadata.version("transformers")


def test_the_engine_follows_the_hardware(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files.engines.shutil, "which", lambda _: "/usr/bin/vllm")
    monkeypatch.delenv("GPUCOURSE_BACKEND", raising=False)
    monkeypatch.setattr(shared_files.torch.cuda, "is_available", lambda: True)
    assert shared_files.engines.choose("auto") == "vllm"
    monkeypatch.setenv("GPUCOURSE_BACKEND", "gloo")
    assert shared_files.engines.choose("auto") == "transformers", "asked to leave the GPU alone"
    monkeypatch.setattr(shared_files.torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="vLLM needs a GPU"):
        shared_files.engines.choose("vllm")


def test_choose_waits_for_vllm_until_it_is_installed(
    shared_files: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engines, state = shared_files.engines, tmp_path / "vllm"
    until = int(time.time()) + 600
    texts = iter([f"installing {until} downloading\n", f"installing {until} downloading\n", "installed\n"])
    monkeypatch.setattr(engines, "VLLM_STATE", state)
    monkeypatch.setattr(engines.time, "sleep", lambda _: state.write_text(next(texts)))
    monkeypatch.setattr(engines.shutil, "which", lambda _: None if "installing" in state.read_text() else "/usr/bin/vllm")
    monkeypatch.delenv("GPUCOURSE_BACKEND", raising=False)
    monkeypatch.setattr(shared_files.torch.cuda, "is_available", lambda: True)
    state.write_text(f"installing {until} compiler and headers\n")
    assert engines.choose("auto") == "vllm"
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("(")[2].partition(")")[0] for line in lines] == ["compiler and headers", "downloading"]
    assert "10 more minutes" in lines[0]


@pytest.mark.parametrize(
    "text", ["", "installed\n", "failed see the log\n", "installing 1000 downloading\n", "installing soon x\n"]
)
def test_wait_for_vllm_ends_at_once_if_nothing_is_being_installed(
    shared_files: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared_files.engines, "VLLM_STATE", tmp_path / "vllm")
    if text:
        (tmp_path / "vllm").write_text(text)
    shared_files.engines.wait_for_vllm()
    assert ("could not be installed" in capsys.readouterr().out) == text.startswith("failed")


SETTINGS = {"num_blocks", "max_batch_tokens", "max_requests_per_batch", "allow_block_sharing", "use_cuda_graph",
            "use_async_batching", "per_request_processors", "seed"}  # fmt: skip


@pytest.mark.parametrize(
    ("version", "own"),
    [("5.17", {"block_size"}), ("5.18", {"page_size"}), ("5.19 to 5.23", {"page_size", "auto_switch_to_flash"})],
)
def test_batching_uses_the_names_of_the_installed_version(shared_files: Any, version: str, own: set[str]) -> None:
    """What is beside the common names in ContinuousBatchingConfig of each version of transformers."""
    known = SETTINGS | own | ({"block_size"} if version != "5.17" else set())  # newer ones still know the old name
    settings = shared_files.engines.choose_batching(known, requests=4, longest=100)
    assert set(settings) == SETTINGS | own
    assert settings["num_blocks"] == 4 * (100 // 32 + 1)


def test_a_smaller_cache_has_fewer_pages_and_room_for_one_request(shared_files: Any) -> None:
    pages = [shared_files.engines.choose_batching(SETTINGS, requests=8, longest=100, kv_share=share)["num_blocks"]
             for share in (1.0, 0.5, 0.1)]  # fmt: skip
    assert pages == [8 * 4, 4 * 4, 4]
    words = shared_files.engines.command("vllm", "m", 1, max_num_seqs=8, max_model_len=9, eager=True, kv_share=0.5)
    assert "--gpu-memory-utilization=0.425" in words


def test_a_gpu_takes_more_prompt_tokens_a_step(shared_files: Any) -> None:
    on_cpu, on_gpu = (
        shared_files.engines.choose_batching(SETTINGS, requests=4, longest=100, on_gpu=gpu)["max_batch_tokens"]
        for gpu in (False, True)
    )
    assert (on_cpu, on_gpu) == (256, 2048)


# --- the best setting --------------------------------------------------------------------------------------------------------


def sweep(*rounds: tuple[float, float, float]) -> list[dict[str, float]]:
    """A row for the batch sizes 1, 2, 4 ...: the slowest, the median and the fastest round."""
    keys = ("low_tok_per_s", "output_tok_per_s", "high_tok_per_s")
    return [{"batch": 2**power} | dict(zip(keys, figures, strict=True)) for power, figures in enumerate(rounds)]


def test_the_best_setting_is_certain_where_the_rounds_agree() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (400, 402, 405))
    assert best_setting.choose_best(rows)["batch"] == 4
    assert best_setting.within_the_spread(rows) == [4]


def test_one_outlier_does_not_make_a_best_setting() -> None:
    rows = sweep((98, 100, 101), (198, 200, 201), (390, 395, 397), (380, 440, 520))
    assert best_setting.choose_best(rows)["batch"] == 8
    assert best_setting.within_the_spread(rows) == [4, 8], "by its slowest round 8 at a time is no faster than 4"
    assert best_setting.within_the_spread([]) == []


# --- the client --------------------------------------------------------------------------------------------------------------


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


def test_tokens_are_counted_by_the_engine_and_not_by_events(engine: tuple[str, type[Scripted]]) -> None:
    url, handler = engine
    used = {"prompt_tokens": 3, "completion_tokens": 5}
    handler.events = (text("a b"), text(" c d e"), {"choices": [], "usage": used})
    answer = completions.complete(url, "m", [1, 2, 3], 5)
    assert (answer.text, answer.tokens, answer.events, answer.prompt_tokens) == ("a b c d e", 5, 2, 3)
    assert 0 < answer.ttft_s <= answer.e2e_s
    assert handler.heard[0]["ignore_eos"] is True
    assert handler.heard[0]["stream_options"] == {"include_usage": True}


def test_what_an_engine_refuses_is_said_in_its_words(engine: tuple[str, type[Scripted]]) -> None:
    with pytest.raises(completions.RefusedByEngine, match=r"400.*too long"):
        completions.together(engine[0], "m", ["a", "b"], 101)


def test_an_answer_without_its_count_is_no_answer(engine: tuple[str, type[Scripted]]) -> None:
    engine[1].events = (text("a"),)
    with pytest.raises(completions.RefusedByEngine, match="without its count"):
        completions.complete(engine[0], "m", "a", 5)


# --- vLLM's own benchmark -------------------------------------------------------------------------------------------------

WRITTEN = {
    "elapsed_time": 12.5,
    "num_requests": 64,
    "total_num_tokens": 16384,
    "requests_per_second": 5.12,
    "tokens_per_second": 1310.72,
}


def test_vllm_bench_counts_in_and_out_together() -> None:
    figures = vllm_bench.read(json.dumps(WRITTEN), 128, 128)
    assert (figures["total_tok_per_s"], figures["output_tok_per_s"]) == (1310.72, 655.36)
    assert figures["total_tok_per_s"] == pytest.approx(WRITTEN["total_num_tokens"] / WRITTEN["elapsed_time"])


@pytest.mark.parametrize("document", ["{}", "[]", '{"elapsed_time": "soon"}', "{torn"])
def test_another_document_is_not_taken_for_it(document: str) -> None:
    with pytest.raises(ValueError):
        vllm_bench.read(document, 128, 128)


def test_a_benchmark_that_fails_says_so(tmp_path: Any) -> None:
    outcome, why = vllm_bench.beside([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "none.json", 1, 1)
    assert (outcome, why) == (None, "vllm bench ended with code 3")
