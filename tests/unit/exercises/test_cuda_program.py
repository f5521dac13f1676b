"""The script that runs a CUDA program on a node: with nvcc and a GPU if both are there, else on the emulator."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[3] / "exercises" / "shared" / "cuda_program.py"


@pytest.fixture
def starter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("cuda_program", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(module, "CUDA_FOLDER", tmp_path / "none")
    return module


def put_program(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_node_with_nvcc_and_a_gpu_builds_and_runs_the_program(
    starter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    put_program(tmp_path, "nvidia-smi", "echo NVIDIA A10G")
    put_program(
        tmp_path,
        "nvcc",
        'for word; do last=$word; done; printf "#!/bin/sh\\necho built from $5 with \\$*; exit 7" > "$last"; chmod 755 "$last"',
    )
    monkeypatch.setattr("sys.argv", ["cuda_program.py", "my.cu", "a", "b"])
    assert starter.main() == 7
    output = capfd.readouterr().out
    assert f"my.cu runs on a GPU, NVIDIA A10G, built by {tmp_path}/bin/nvcc" in output
    assert "built from my.cu with a b" in output
    put_program(tmp_path, "nvcc", "exit 2")
    assert starter.main() == 2


def test_node_that_lacks_a_part_uses_the_emulator_and_says_so(
    starter: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    put_program(tmp_path, "nvidia-smi", "exit 9")
    put_program(tmp_path, "nvcc", "exit 2")
    monkeypatch.setattr("sys.argv", ["cuda_program.py", str(tmp_path / "my.cu"), "-n", "3"])
    monkeypatch.syspath_prepend(str(FILE.parent))
    assert starter.main() == 4, "there is no my.cu"
    output = capfd.readouterr().out
    assert "my.cu runs on the emulator, because this node lacks a GPU; no time is measured" in output
    assert "cannot be read" in output
