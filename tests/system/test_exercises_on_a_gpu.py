"""The branches of the exercises that only a GPU takes, on a GPU that the processor plays (tests/fake_gpu)."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.exercising import FOLDERS, environment, flags, lay_out, needs_torch, read_finished, start, wait, with_a_gpu

pytestmark = [pytest.mark.system, needs_torch]

TINY = {"small": "64", "size": "256", "repeats": "3"}
NO_KERNEL = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}  # a processor that multiplies 16-bit numbers one by one


@pytest.mark.slow
def test_beside_16_bits_on_a_gpu_the_processor_has_float32(tmp_path: Path) -> None:
    exercise, script = lay_out("1.1", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, **TINY | {"size": "128"}, dtype="float16")]
    process = start(words, script.parent, with_a_gpu(script.parent) | NO_KERNEL)
    output = wait(process)
    assert process.returncode == 0, output
    assert re.search(r"GPU is compared with: CPU, \d+ threads?, float32\n", output)
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    rows = {row["device"]: row for row in values["rows"] if (row["size"], row["what"]) == (128, "warm")}
    assert (values["dtype"], values["reference_dtype"]) == ("float16", "float32")
    assert rows[values["reference"]]["error"] < 1e-5 < rows["GPU"]["error"], "each has the rounding of its own format"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instructions that are taken away are those of x86")
def test_16_bits_without_a_kernel_are_refused_in_a_sentence(tmp_path: Path) -> None:
    exercise, script = lay_out("1.1", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, **TINY, dtype="float16")]
    process = start(words, script.parent, environment(script.parent) | NO_KERNEL)
    output = wait(process)
    assert process.returncode == 1
    assert "no fast kernel for float16: 256 x 256 would take minutes. Use float32" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_a_gpu_without_a_data_sheet_has_derived_ceilings_and_no_percentage(tmp_path: Path) -> None:
    exercise, script = lay_out("4.2", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, sizes="64,128", dtypes="float32", sustained_s="0")]
    process = start(words, script.parent, with_a_gpu(script.parent) | {"FAKE_GPU_NAME": "NVIDIA H100 of Tomorrow"})
    output = wait(process)
    assert process.returncode == 0, output
    assert re.search(
        r"derived from its processors and clock, it can do at most: float32 7\d\.\d TFLOP/s, .*float16 1,070", output
    )
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert values["derived_peaks"]["float16"] == pytest.approx(989 * 1.98 / 1.83, rel=0.001)
    assert (values["gpu"], {row["percent_of_peak"] for row in values["rows"]}) == (None, {None})


@needs_module("psutil")
def test_the_monitor_waits_for_vllm_before_it_records(tmp_path: Path) -> None:
    """The curve of the watched exercise would else begin with a GPU at rest, for as long as the installation takes."""
    exercise, script = lay_out("1.3", tmp_path / "work")
    (script.parent / "loads.py").write_text("LOADS = {'idle': lambda device, seconds: exit(print('a load is recorded'))}\n")
    state = tmp_path / "node" / "var/lib/gpucourse/vllm"
    state.parent.mkdir(parents=True)
    state.write_text(f"installing {int(time.time()) + 1000} downloading\n")
    words = [sys.executable, script.name, *flags(exercise, **{"with": "1.2"})]
    node = with_a_gpu(script.parent) | {"GPUCOURSE_NODE_ROOT": str(tmp_path / "node")}
    shown = []
    with subprocess.Popen(words, cwd=script.parent, env=node, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            shown += [text for text in ("waiting for vLLM", "a load is recorded") if text in line]
            if "waiting for vLLM" in line:
                state.write_text("installed\n")
    assert shown == ["waiting for vLLM", "a load is recorded"]


def test_without_a_gpu_published_runs_are_shown_as_somebody_else_s(tmp_path: Path) -> None:
    exercise, script = lay_out("4.2", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, sizes="64,128", dtypes="float32", sustained_s="0")]
    process = start(words, script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    published = read_finished(exercise, 0, output, script.parent, 1).metrics["published"]
    assert {"gpu": "T4, not yours", "slowest": 24, "fastest": 42.7, "peak": 65} in published
    assert "metrics.published" in [table.rows for table in exercise.tables]


FAKE_NVCC = """#!/bin/sh
case "$*" in *-cubin*) echo "Compiling entry function '_Z5naivePKfS0_Pfi' for 'sm_75'"
  echo "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"; echo "Used 49 registers"; exit 0;; esac
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/sh
for version in naive coalesced tensor tiled; do
  echo "{\\"version\\": \\"$version\\", \\"n\\": $1, \\"error\\": 0, \\"allowed\\": 1, \\"unwritten\\": 0, \\"ms\\": [1000]}"
done
echo "{\\"version\\": \\"registers\\", \\"n\\": $1, \\"error\\": 0, \\"allowed\\": 1, \\"unwritten\\": 0, \\"ms\\": [0.000001]}"
END
chmod +x "$2"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs Linux and g++")
def test_kernels_are_timed_and_one_that_is_too_fast_is_refused(tmp_path: Path) -> None:
    exercise, script = lay_out("5.3", tmp_path / "work")
    (tmp_path / "nvcc").write_text(FAKE_NVCC, encoding="utf-8")
    (tmp_path / "nvcc").chmod(0o755)
    env = with_a_gpu(script.parent)
    words = [sys.executable, script.name, *flags(exercise, n="64", arch="sm_75")]
    process = start(words, script.parent, env | {"PATH": f"{tmp_path}:{env['PATH']}"})
    output = wait(process)
    assert process.returncode == 0, output
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert [row["kernel"] for row in values["compiled"]] == ["naive"]
    assert [row["what"] for row in values["library"]] == ["float32", "float16", "tf32"]
    speeds = {row["version"]: row["gflop_per_s"] for row in values["timed"]}
    assert speeds["registers"] is None
    assert [speeds[version] for version in ("naive", "coalesced", "tiled", "tensor")] == [pytest.approx(2 * 64**3 / 1e9)] * 4
    assert (values["refused"], values["steps_down"]) == (1, None)
    assert "Timed on NVIDIA H100" in (script.parent / "versions.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_filter_on_a_gpu_has_copies_streams_and_a_processor_beside_it(tmp_path: Path) -> None:
    exercise, script = lay_out("5.8", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, signals="32", samples="300", batch_sizes="1,16")]
    process = start(words, script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert values["filter_percent_of_copies"] > 0
    assert values["overlapped_error"] < 1e-5
    assert min(values[key] for key in ("with_copies_us", "overlapped_us", "plan_first_ms", "times_cpu")) > 0
    assert (values["gpu"], values["refused"]) == ("H100 SXM", 0)


@pytest.mark.slow
def test_the_roofs_of_a_gpu_stand_beside_its_data_sheet(tmp_path: Path) -> None:
    exercise, script = lay_out("5.7", tmp_path / "work")
    words = [sys.executable, script.name, *flags(exercise, size="512", gemm_small="16", gemm_large="128")]
    process = start(words, script.parent, with_a_gpu(script.parent))
    output = wait(process)
    assert process.returncode == 0, output
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    assert values["sheet"] == {"gb_per_s": 3350, "gflop_per_s": 67_000}
    assert values["last_cache_mib"] == 50
    assert values["stencil_speedup"] > 0


FAKE_NVCC_OF_KERNELS = """#!/bin/sh
case "$*" in *-cubin*) for name in 4copy 10vector_add; do
  echo "Compiling entry function '_Z${name}PKfPfi' for 'sm_90'"
  echo "    0 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads"
  echo "Used 20 registers, 4096 bytes smem"
done; exit 0;; esac
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/sh
echo '{"size": 1, "wrong": 0}'
case "$2" in block_sum) echo '{"seconds": [0.0000001]}';; *) echo '{"seconds": [0.001, 0.001, 0.001]}';; esac
END
chmod +x "$2"
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs Linux and g++")
def test_kernels_by_hand_are_timed_beside_the_gpus_own_copy(tmp_path: Path) -> None:
    exercise, script = lay_out("5.1", tmp_path / "work")
    for name in ("my_kernels.cu", "my_warps.cu"):
        shutil.copyfile(FOLDERS.exercises / "05-gpu-programming" / "solutions" / name, script.with_name(name))
    (tmp_path / "nvcc").write_text(FAKE_NVCC_OF_KERNELS, encoding="utf-8")
    (tmp_path / "nvcc").chmod(0o755)
    env = with_a_gpu(script.parent)
    words = [sys.executable, script.name, *flags(exercise, elements="100000000")]
    process = start(words, script.parent, env | {"PATH": f"{tmp_path}:{env['PATH']}"})
    output = wait(process)
    assert process.returncode == 0, output
    values = read_finished(exercise, 0, output, script.parent, 1).metrics
    rows = {row["kernel"]: row for row in values["kernels"]}
    assert (values["copy_gb_per_s"], values["vector_add"]["percent_of_copy"]) == (pytest.approx(800), pytest.approx(150))
    assert rows["strided_copy"]["gb_per_s"] == pytest.approx(400), "half of the elements, for the array stays as long"
    assert rows["transpose"]["gb_per_s"] == pytest.approx(800)
    assert (rows["block_sum"]["gb_per_s"], values["block_sum"]["percent_of_copy"], values["refused"]) == (None, None, 1)
    assert (rows["vector_add"]["registers"], rows["vector_add"]["spill_bytes"], rows["clip_sum"]["registers"]) == (20, 8, None)
    assert "timed on NVIDIA H100" in output
    assert "(local mode)" not in output
