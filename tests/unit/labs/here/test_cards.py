"""The GPUs of this computer, as its driver and its Python list them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.labs.here.cards import list_cards, require_gpus
from tests.unit.labs.here.computer import make_program, make_python


def test_list_cards_asks_the_driver(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)\nGPU 1: Tesla T4 (UUID: GPU-2)")
    assert list_cards({"PATH": str(tmp_path / "bin")}) == ("NVIDIA L4", "Tesla T4")
    make_program(tmp_path / "bin" / "nvidia-smi", "Failed to initialize NVML: Driver/library version mismatch", code=18)
    assert list_cards({"PATH": str(tmp_path / "bin")}) == ()


def test_require_gpus_names_a_card_that_torch_cannot_use(tmp_path: Path) -> None:
    make_program(tmp_path / "bin" / "nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)")
    environ = {"PATH": str(tmp_path / "bin")}
    python = make_python(tmp_path, "2.11.0+cpu", [])
    with pytest.raises(
        MissingError, match=r"NVIDIA L4 is in this computer, but .*: its torch 2\.11\.0\+cpu cannot see the GPU"
    ) as lacks:
        require_gpus(python, environ, "")
    assert f"{python} -m pip install torch" in lacks.value.hint
    with pytest.raises(MissingError, match="it has no torch"):
        require_gpus(make_python(tmp_path, "", []), environ, "")
    for python in (str(make_program(tmp_path / "bin" / "python", "Segmentation fault")), f"{sys.executable}-gone"):
        with pytest.raises(MissingError, match="could not be queried about torch"):
            require_gpus(python, {}, "")
