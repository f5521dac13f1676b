"""What surrounds an inference engine: which one is chosen, and the commands."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest


def test_command_of_vllm_has_float16_and_no_prefix_cache_on_a_t4(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments: dict[str, bool] = {}

    def native(*, including_emulation: bool = True) -> bool:
        arguments["including_emulation"] = including_emulation
        return including_emulation  # Turing imitates it

    monkeypatch.setattr(shared_files.torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(shared_files.torch.cuda, "is_bf16_supported", native)
    words = shared_files.engines.command("vllm", "openai-community/gpt2", 8000, max_num_seqs=64, max_model_len=256, eager=True)
    assert words[:3] == ["vllm", "serve", "openai-community/gpt2"]
    assert {"--no-enable-prefix-caching", "--dtype=half", "--enforce-eager", "--max-num-seqs=64"} <= set(words)
    assert arguments == {"including_emulation": False}
    limits = {"max_num_seqs": 1, "max_model_len": 9, "budget": 64, "is_sharing": True}
    words = shared_files.engines.command("vllm", "m", 1, **limits, eager=False)
    assert "--enforce-eager" not in words
    assert {"--max-num-batched-tokens=64", "--enable-prefix-caching"} <= set(words)


def test_command_of_the_courses_engine_has_the_learners_part(shared_files: Any) -> None:
    limits = {"max_num_seqs": 1, "max_model_len": 9, "part_budget": 64}
    part = Path("my_prefix.py")
    words = shared_files.engines.command("transformers", "m", 1, **limits, eager=True, is_sharing=True, part=part)
    assert words[-2:] == ["--part=my_prefix.py", "--part-budget=64"]
    assert "--enable-prefix-caching" not in words, "its prefix cache is the learner's"


def test_choose_follows_the_hardware(shared_files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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


LOG = """\
(EngineCore_DP0 pid=911) INFO 12-11 00:06:29 [gpu_model_runner.py:3549] Model loading took 14.9889 GiB and 3.20 seconds
(EngineCore_DP0 pid=911) INFO 12-11 00:06:53 [gpu_worker.py:359] Available KV cache memory: 3.81 GiB
(EngineCore_DP0 pid=911) INFO 12-11 00:06:53 [kv_cache_utils.py:1286] GPU KV cache size: 31,232 tokens
(EngineCore_DP0 pid=911) INFO 12-11 00:06:54 [kv_cache_utils.py:1291] Maximum concurrency for 8,192 tokens per request: 3.81x
"""


@pytest.mark.parametrize(
    ("log", "size"), [(LOG, (3.81, 31_232)), (LOG.replace("GPU KV cache size", "other"), None), ("", None)]
)
def test_read_cache_size_of_a_vllm_log(shared_files: Any, log: str, size: tuple[float, int] | None) -> None:
    assert shared_files.engines.read_cache_size(log) == size
