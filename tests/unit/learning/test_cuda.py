"""Options and files that `cuda` refuses before it builds a program, and reports of the emulator that cannot be used."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.errors import ExerciseFailed, GpucourseError, MissingError, UsageError
from gpucourse.learning.cuda import CudaOptions, list_sources, list_watched_files, run_cuda

EMPTY = '{"state": "%s", "message": "%s", "notes": [], "code": 0, "output": "", "orders": [], "faults": [], "kernels": []}'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "my.cu"
    path.write_text('#include "tile.h"\nint main() {}\n')
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (CudaOptions(includes=(Path("none"),)), "-I none: there is no such folder"),
        (CudaOptions(defines=("2=1",)), "-D 2=1: not of the form NAME or NAME=VALUE"),
        (CudaOptions(defines=("A=1\n#error",)), "not of the form NAME"),
        (CudaOptions(order="4"), "--order 4: the orders are 0, 1, 2, 3, all"),
        (CudaOptions(limit_s=0), "--limit needs more than 0 seconds"),
    ],
)
def test_run_cuda_with_a_wrong_option_builds_nothing(source: Path, options: CudaOptions, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run_cuda(source, options)


@pytest.mark.parametrize(
    ("name", "words"), [("none.cu", "no such file"), (".", "not a file"), ("my.txt", "no CUDA or Triton kernels")]
)
def test_run_cuda_of_a_file_without_kernels_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "my.txt").touch()
    with pytest.raises(UsageError, match=words):
        run_cuda(tmp_path / name, CudaOptions())


def test_run_cuda_of_an_exercise_names_the_command_that_tries_it() -> None:
    with pytest.raises(UsageError) as caught:
        run_cuda(Path("5.1"), CudaOptions())
    assert caught.value.hint.endswith("gpucourse try 5.1")


@pytest.mark.parametrize(
    "options",
    [
        CudaOptions(includes=(Path(),)),
        CudaOptions(defines=("N=1",)),
        CudaOptions(order="all"),
        CudaOptions(every=True),
        CudaOptions(devices=2),
    ],
)
def test_run_cuda_of_triton_refuses_an_option_for_cuda(tmp_path: Path, options: CudaOptions) -> None:
    (kernel := tmp_path / "my.py").touch()
    with pytest.raises(UsageError, match="for CUDA programs, not for Triton kernels"):
        run_cuda(kernel, options)


def test_run_cuda_without_triton_names_the_command_that_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel := tmp_path / "my.py").touch()
    monkeypatch.setattr("gpucourse.learning.cuda.importlib.util.find_spec", lambda name: None if name == "triton" else name)
    monkeypatch.setattr("gpucourse.model.launching.sys.platform", "linux")
    with pytest.raises(MissingError, match="needs triton, which this Python does not have") as error:
        run_cuda(kernel, CudaOptions())
    assert "-m pip install 'gpucourse[kernels]'" in error.value.hint


def test_list_sources_of_several_programs_needs_compare_and_compare_needs_two() -> None:
    paths = [Path("a.cu"), Path("b.cu")]
    assert list_sources(paths, compare=True) == tuple(paths)
    with pytest.raises(UsageError) as error:
        list_sources(paths, compare=False)
    assert error.value.hint == "gpucourse cuda a.cu b.cu --compare"
    with pytest.raises(UsageError, match="needs two programs, not 1"):
        list_sources(paths[:1], compare=True)


@pytest.mark.parametrize(
    ("report", "kind", "words"),
    [
        ("", GpucourseError, "the emulator left no report.*: boom"),
        ('{"state": "ended"}', GpucourseError, "the emulator left no report"),
        (EMPTY % ("unsupported", "it needs g++: sudo apt-get install g++"), MissingError, "it needs g\\+\\+$"),
        (EMPTY % ("not compiled", "my.cu:1: no"), ExerciseFailed, "my.cu:1: no"),
        (EMPTY % ("ended by the emulator", "the program did not end within 2 s"), ExerciseFailed, "did not end"),
    ],
)
def test_run_cuda_of_a_program_without_a_result_is_an_error(
    source: Path, monkeypatch: pytest.MonkeyPatch, report: str, kind: type[GpucourseError], words: str
) -> None:
    def run(command: list[str], **_options: Any) -> Any:
        Path(command[command.index("--report") + 1]).write_text(report)
        return SimpleNamespace(stderr=b"Traceback\nboom\n")

    monkeypatch.setattr("gpucourse.learning.cuda.subprocess.run", run)
    with pytest.raises(kind, match=words) as error:
        run_cuda(source, CudaOptions(limit_s=2))
    assert error.value.hint


def test_run_cuda_names_a_program_that_a_signal_ended(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = SimpleNamespace(stderr=b"", returncode=-6)
    monkeypatch.setattr("gpucourse.learning.cuda.subprocess.run", lambda *_, **_options: process)
    with pytest.raises(ExerciseFailed, match=r"my\.cu was ended by signal 6"):
        run_cuda(source, CudaOptions())


def test_list_watched_files_returns_the_program_and_what_it_includes_in_its_folder(source: Path) -> None:
    (source.parent / "tile.h").write_text('#include "deep/more.h"\n#include <cstdio>\n#include "../outside.h"\n')
    (source.parent / "deep").mkdir()
    (source.parent / "deep/more.h").write_text('#include "../tile.h"\n#include "missing.h"\n')
    assert [path.name for path in list_watched_files(source)] == ["my.cu", "more.h", "tile.h"]
