"""The branches of exercises that only a GPU takes, on a GPU that is played by the processor (tests/fake_gpu)."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.parts import needs_module
from tests.system.exercising import (
    SLOW_16_BITS,
    list_failed_checks,
    needs_emulator,
    needs_torch,
    run_exercise,
    run_on_a_gpu,
    with_a_gpu,
)

pytestmark = [pytest.mark.system, needs_torch]


@pytest.mark.slow
def test_the_processor_has_float32_beside_16_bits_on_a_gpu(tmp_path: Path) -> None:
    run = run_on_a_gpu("1.1", tmp_path / "work", SLOW_16_BITS, small="64", size="128", repeats="3", dtype="float16")
    assert re.search(r"GPU is compared with: CPU, \d+ threads?, float32\n", run.output)
    rows = {row["device"]: row for row in run.metrics["rows"] if (row["size"], row["what"]) == (128, "warm")}
    assert (run.metrics["dtype"], run.metrics["reference_dtype"]) == ("float16", "float32")
    assert rows[run.metrics["reference"]]["error"] < 1e-5 < rows["GPU"]["error"], "each has the rounding of its own format"


@pytest.mark.slow
def test_a_gpu_without_a_data_sheet_has_derived_ceilings_and_no_percentage(tmp_path: Path) -> None:
    name = {"FAKE_GPU_NAME": "NVIDIA H100 of Tomorrow"}
    run = run_on_a_gpu("4.2", tmp_path / "work", env=name, sizes="64,128", dtypes="float32", sustained_s="0")
    sentence = r"derived from its processors and clock, it can do at most: float32 7\d\.\d TFLOP/s, .*float16 1,070"
    assert re.search(sentence, run.output)
    assert run.metrics["derived_peaks"]["float16"] == pytest.approx(989 * 1.98 / 1.83, rel=0.001)
    assert (run.metrics["gpu"], {row["percent_of_peak"] for row in run.metrics["rows"]}) == (None, {None})


@pytest.mark.slow
@needs_module("psutil")
def test_the_monitor_waits_for_vllm_before_it_records(tmp_path: Path) -> None:
    """Wait for the installation. Otherwise, the curve would begin with an idle GPU for as long as the installation takes."""
    state = tmp_path / "node" / "var/lib/gpucourse/vllm"
    state.parent.mkdir(parents=True)
    state.write_text(f"installing {int(time.time()) + 1000} downloading\n")
    installed = ("engines.py", "time.sleep(pause_s)", "VLLM_STATE.write_text('installed')")
    files = {"loads.py": "LOADS = {'idle': lambda device, seconds: exit(print('a load is recorded'))}\n"}
    node = {"GPUCOURSE_NODE_ROOT": str(tmp_path / "node")}
    run = run_on_a_gpu("1.3", tmp_path / "work", installed, files=files, env=node, **{"with": "1.2"})
    assert re.findall("waiting for vLLM|a load is recorded", run.output) == ["waiting for vLLM", "a load is recorded"]


FAKE_NVCC = """#!/bin/sh
case "$*" in *-cubin*) for name in {kernels}; do
  echo "Compiling entry function '_Z${{name}}PKfS0_Pfi' for 'sm_75'"
  echo "    0 bytes stack frame, 0 bytes spill stores, 8 bytes spill loads"
  echo "Used 20 registers, 4096 bytes smem"
done; exit 0;; esac
while [ "$1" != -o ]; do shift; done
cat > "$2" <<'END'
#!/bin/sh
{program}
END
chmod +x "$2"
"""
PRODUCTS = """row() {
  echo "{\\"version\\": \\"$1\\", \\"n\\": $2, \\"error\\": 0, \\"allowed\\": 1, \\"unwritten\\": 0, \\"ms\\": [$3]}"
}
for version in naive coalesced tensor tiled; do row $version $1 1000; done
row registers $1 0.000001"""
KERNELS_BY_HAND = """echo '{"size": 1, "wrong": 0}'
case "$2" in block_sum) echo '{"seconds": [0.0000001]}';; *) echo '{"seconds": [0.001, 0.001, 0.001]}';; esac"""


def plant_nvcc(folder: Path, kernels: str, program: str) -> dict[str, str]:
    """Write an nvcc whose programs report invented times. Return the variables by which it is found first."""
    nvcc = folder / "nvcc"
    nvcc.write_text(FAKE_NVCC.format(kernels=kernels, program=program), encoding="utf-8")
    nvcc.chmod(0o755)
    return {"PATH": f"{folder}:{with_a_gpu(folder)['PATH']}"}


@pytest.mark.slow
@needs_emulator
def test_products_are_timed_and_one_that_is_too_fast_is_refused(tmp_path: Path) -> None:
    env = plant_nvcc(tmp_path, "5naive", PRODUCTS)
    run = run_on_a_gpu("5.3", tmp_path / "work", env=env, n="64", arch="sm_75")
    values = run.metrics
    assert [row["kernel"] for row in values["compiled"]] == ["naive"]
    assert [row["what"] for row in values["library"]] == ["float32", "float16", "tf32"]
    speeds = {row["version"]: row["gflop_per_s"] for row in values["timed"]}
    assert speeds.pop("registers") is None
    assert speeds == dict.fromkeys(("naive", "coalesced", "tensor", "tiled"), pytest.approx(2 * 64**3 / 1e9))
    assert (values["refused"], values["steps_down"]) == (1, None)


@pytest.mark.slow
@needs_emulator
def test_kernels_by_hand_are_timed_beside_the_gpus_own_copy(tmp_path: Path) -> None:
    env = plant_nvcc(tmp_path, "4copy 10vector_add", KERNELS_BY_HAND)
    run = run_on_a_gpu("5.1", tmp_path / "work", solved=True, env=env, elements="100000000")
    values = run.metrics
    rows = {row["kernel"]: row for row in values["kernels"]}
    assert (values["copy_gb_per_s"], values["vector_add"]["percent_of_copy"]) == (pytest.approx(800), pytest.approx(150))
    assert rows["strided_copy"]["gb_per_s"] == pytest.approx(400), "half of the elements, for the array stays as long"
    assert rows["transpose"]["gb_per_s"] == pytest.approx(800)
    assert (rows["block_sum"]["gb_per_s"], values["block_sum"]["percent_of_copy"], values["refused"]) == (None, None, 1)
    assert (rows["vector_add"]["registers"], rows["vector_add"]["spill_bytes"], rows["clip_sum"]["registers"]) == (20, 8, None)
    assert "(local mode)" not in run.output


@pytest.mark.slow
@needs_emulator
def test_first_kernels_are_compared_on_the_gpu_as_well(tmp_path: Path) -> None:
    wrong_dot = """for size in 1 31 257 1000 992; do
    if [ "$1 $size" = "dot 257" ]; then echo '{"size": 257, "wrong": 1}'; else echo '{"size": 1, "wrong": 0}'; fi; done"""
    run = run_on_a_gpu("5.0", tmp_path / "work", solved=True, env=plant_nvcc(tmp_path, "3map", wrong_dot))
    counts = {row["kernel"]: row["wrong_on_gpu"] for row in run.metrics["kernels"]}
    assert (counts.pop("dot"), set(counts.values()), run.metrics["wrong_on_gpu"]) == (1, {0}, 1)


SMALL_LOOP = {"steps": "10", "hidden": "64", "precision": "float16"}


@pytest.mark.slow
def test_a_loop_on_a_gpu_has_its_memory_and_its_speedup(tmp_path: Path) -> None:
    run = run_on_a_gpu("5.2", tmp_path / "work", solved=True, **SMALL_LOOP)
    assert {row["way"]: row["device"] for row in run.metrics["runs"]} == {
        "as delivered": "cpu",
        "yours, float32": "cuda",
        "yours, float16": "cuda",
    }
    assert run.metrics["runs"][1]["peak_gpu_memory_bytes"] == 1 << 20
    assert run.metrics["speedup"] > 0


@pytest.mark.slow
def test_a_pipeline_on_a_gpu_is_timed_with_its_own_streams(tmp_path: Path) -> None:
    run = run_on_a_gpu("5.4", tmp_path / "work", solved=True, chunks="3", megabytes="1")
    values = run.metrics
    assert (values["broken"], values["gpu"]["chunks_wrong"]) == ("no error", 0)
    assert values["gpu"]["async_engines"] is None, "there is no driver that could say"
    assert min(values["gpu"][key] for key in ("sequential_ms", "pageable_ms", "best_ms", "compute_ms")) > 0


@pytest.mark.slow
def test_requests_on_a_gpu_are_timed_eager_as_graphs_and_compiled(tmp_path: Path) -> None:
    small = {"layers": "1", "batch_sizes": "1", "requests": "10"}
    run = run_on_a_gpu("5.5", tmp_path / "work", solved=True, env={"TORCHDYNAMO_DISABLE": "1"}, **small)
    assert {row["way"]: row["p50_us"] > 0 for row in run.metrics["rows"]} == dict.fromkeys(("eager", "yours", "compile"), True)
    assert run.metrics["graph"]["operations_per_request"] == 3
    assert list_failed_checks(run) == set()


@pytest.mark.slow
def test_the_roofs_of_a_gpu_are_compared_with_its_data_sheet(tmp_path: Path) -> None:
    run = run_on_a_gpu("5.7", tmp_path / "work", size="512", gemm_small="16", gemm_large="128")
    assert run.metrics["sheet"] == {"gb_per_s": 3350, "gflop_per_s": 67_000}
    assert run.metrics["last_cache_mib"] == 50
    assert run.metrics["stencil_speedup"] > 0


@pytest.mark.slow
def test_a_filter_on_a_gpu_has_copies_streams_and_a_processor_beside_it(tmp_path: Path) -> None:
    small = {"signals": "32", "samples": "300", "batch_sizes": "1,16", "long_samples": "8192"}
    run = run_on_a_gpu("5.8", tmp_path / "work", solved=("my_long_filter.py",), **small)
    values = run.metrics
    assert (values["pieces_broken"], values["pieces_speedup"]) == ("no error", None), (
        "the limit for the speed is of a processor"
    )
    assert values["overlapped_error"] < 1e-5
    keys = ("filter_percent_of_copies", "with_copies_us", "overlapped_us", "plan_first_ms", "times_cpu")
    assert min(values[key] for key in keys) > 0
    assert (values["gpu"], values["refused"]) == ("H100 SXM", 0)


@pytest.mark.slow
def test_a_training_on_a_gpu_says_what_blocks(tmp_path: Path) -> None:
    unread = ("ablation = repair_one_by_one()", 'ablation = [{"fault": 1, "alone_repaired": 1.0}]')  # most of the time
    run = run_on_a_gpu("5.9", tmp_path / "work", unread, samples="32", rounds="1")
    assert run.metrics["blocking_moves_per_step"] is not None
    assert run.metrics["speedup"] > 0


@pytest.mark.slow
def test_memory_of_a_step_on_a_gpu_is_the_allocators(tmp_path: Path) -> None:
    estimate = ("large = estimates.plan_large()", "large = None")  # which is the same in every run, and takes half of it
    small = {"layers": "2", "width": "64", "length": "64", "budget_mib": "64"}
    run = run_on_a_gpu("6.1", tmp_path / "work", estimate, solved=True, **small)
    values = run.metrics
    assert (values["measured_peak_mib"], values["yours"]["peak_mib"], values["simulated"]) == (1, 1, None), "as it plays one"
    assert values["gpu_peak_of_plain"] is None, "a peak of 1 MiB is below the floor"
    assert (tmp_path / "work" / "memory-snapshot.pickle").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise_id", "settings", "keys"),
    [
        ("9.2", {"experts": "4", "top": "2", "tokens": "16", "width": "8", "steps": "8"}, ("exchange_ms", "grouped_ms")),
        ("9.3", {"length": "32", "heads": "4", "kv_heads": "2", "head_width": "8"}, ("flash_ms", "ring_ms")),
        ("9.6", {"layers": "5", "trace_width": "16"}, ()),  # its trace has no kernels, because no GPU computes
        (
            "9.7",
            {"widths": "16,32", "rates": "-8,-7", "sweep_steps": "4", "steps": "2", "width": "16", "step_width": "16"},
            ("step_ms", "iterations_ms"),
        ),
    ],
)
def test_ranks_with_a_gpu_each_time_their_messages_and_products(
    tmp_path: Path, exercise_id: str, settings: dict[str, str], keys: tuple[str, ...]
) -> None:
    env = with_a_gpu(tmp_path / "work") | {"FAKE_GPU_COUNT": "2"}
    run = run_exercise(exercise_id, tmp_path / "work", ranks=2, env=env, ranks_per_node="1", **settings)
    assert run.code == 0, run.output
    times = run.metrics.get("gpu", {})
    assert all(times[key] > 0 for key in keys)
    assert (times.get("rows_wrong", 0), times.get("grouped_off", 0)) == (0, 0)
    assert times.get("lse_off", 0) < 1e-3
    assert run.metrics["device"] == "NVIDIA H100 80GB HBM3"
