"""What surrounds an inference engine: which one is chosen, the command of vLLM, and the settings of a batch."""

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


SETTINGS = {"num_blocks", "max_batch_tokens", "max_requests_per_batch", "allow_block_sharing", "use_cuda_graph",
            "use_async_batching", "per_request_processors", "seed"}  # fmt: skip


@pytest.mark.parametrize(
    ("version", "extra_names"),
    [("5.17", {"block_size"}), ("5.18", {"page_size"}), ("5.19 to 5.23", {"page_size", "auto_switch_to_flash"})],
)
def test_choose_batching_uses_the_names_of_the_installed_version(
    shared_files: Any, version: str, extra_names: set[str]
) -> None:
    """What is beside the common names in ContinuousBatchingConfig of each version of transformers."""
    known_names = (
        SETTINGS | extra_names | ({"block_size"} if version != "5.17" else set())
    )  # newer ones still know the old name
    settings = shared_files.engines.choose_batching(known_names, requests=4, longest=100)
    assert set(settings) == SETTINGS | extra_names
    assert settings["num_blocks"] == 4 * (100 // 32 + 1)
    assert (settings["max_batch_tokens"], settings["allow_block_sharing"]) == (256, False)
    chosen = shared_files.engines.choose_batching(known_names, requests=4, longest=100, budget=64, is_sharing=True)
    assert (chosen["max_batch_tokens"], chosen["allow_block_sharing"]) == (64, True)
