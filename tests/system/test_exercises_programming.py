"""The exercises of module 5 as a learner runs them, with real processes, judged by the checks of their own manifest."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.cli import Learner
from tests.system.exercising import (
    Finished,
    by_command_line,
    check_plots_and_tables,
    environment,
    lay_out,
    list_failed_checks,
    list_unanswered,
    needs_torch,
    on_cpu,
    run_solved,
    start,
    wait,
    with_faults,
)

pytestmark = [pytest.mark.system, needs_torch]
needs_emulator = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("g++"), reason="the emulator needs g++ on Linux"
)


@pytest.fixture(scope="module")
def programming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with module 5 up."""
    learner = Learner(tmp_path_factory.mktemp("programming") / "workspace")
    learner.takes_ports()
    with learner.leaves_nothing():
        learner.types("deploy", "5")
        yield learner


# --- 5.1 ---------------------------------------------------------------------------------------------------------------

OF_YOUR_KERNELS = {
    "right", "every-order", "ends", "inside", "no-races", "no-divergence", "written-first", "one-atomic",
    "transpose-coalesced", "transpose-banks", "clip-warps", "clip-once",
}  # fmt: skip


@pytest.fixture(scope="module")
def typed_kernels(programming: Learner) -> tuple[Finished, Path]:
    return by_command_line(programming, "5.1", stride="5")


@needs_emulator
@pytest.mark.slow
def test_kernels_of_the_course_are_counted_and_yours_are_open(typed_kernels: tuple[Finished, Path], tmp_path: Path) -> None:
    run, folder = typed_kernels
    assert set(list_unanswered(run)) == OF_YOUR_KERNELS
    assert on_cpu(run) == {*OF_YOUR_KERNELS, "add-fast", "sum-fast"}
    values = run.metrics
    rows = {row["kernel"]: row for row in values["kernels"]}
    loads = {name: row["load_sectors_per_request"] for name, row in rows.items()}
    assert [loads[name] for name in ("copy", "shifted_copy", "strided_copy", "read_field")] == [4, 5, 20, 16]
    assert [rows[name]["bank_conflicts_per_request"] for name in ("column_of_32", "column_of_33")] == [31, 0]
    assert (rows["transpose"]["store_sectors_per_request"], rows["clip_sum"]["lanes_per_request"]) == (32, 16)
    assert rows["vector_add"]["out_of_bounds"] > 0
    assert rows["vector_add"]["where"].startswith("my_kernels.cu:17: thread (1,0,0) of block (0,0,0) reads")
    assert (values["blocks"], values["bytes_off"], values["copy_gb_per_s"]) == (16, 0, None)
    assert (folder / "outputs/node0/emulator.json").is_file()
    assert_all_comes_home(run, folder, {"sectors.png"})
    check_plots_and_tables(run, tmp_path)


def assert_all_comes_home(run: Finished, folder: Path, pictures: set[str]) -> None:
    assert "no picture" not in run.output
    wanted = [item.source for item in run.exercise.deliverables if item.evidence != "gpu"]
    assert [source for source in wanted if not list(folder.glob(source))] == []
    assert {path.name for path in folder.glob("*.png")} == pictures, "what needs a GPU is not drawn"


@pytest.mark.slow
@needs_emulator
def test_the_solutions_pass_every_check_that_a_cpu_can_answer(tmp_path: Path) -> None:
    run = run_solved("5.1", tmp_path / "work", "my_kernels.cu", "my_warps.cu", block="64", elements="100000")
    assert run.code == 0, run.output
    assert list_unanswered(run) == {}
    assert (run.metrics["blocks"], run.metrics["sizes"]) == (1563, [1, 31, 257, 1000])


@pytest.mark.slow
@needs_emulator
@pytest.mark.parametrize(
    ("file", "old", "new", "failed", "said"),
    [
        ("my_kernels.cu", "#include <cuda_runtime.h>", "int x = ;", {"compiles"}, "my_kernels.cu:8: error: "),
        ("my_kernels.cu", "void block_sum(", "void sum_of_blocks(", {"compiles"}, "has no kernel block_sum: keep its name"),
        (
            "my_warps.cu", '  OPEN("transpose: how can a warp write a row of out after it has read a row of in?");\n', "",
            {"transpose-coalesced"}, "transpose (yours): right; 4 sectors a load, 32 sectors a store",
        ),
    ],
    ids=["syntax", "renamed", "direct"],
)  # fmt: skip
def test_kernels_that_are_wrong_end_the_run_well_and_fail_their_check(
    file: str, old: str, new: str, failed: set[str], said: str, tmp_path: Path
) -> None:
    run = with_faults("5.1", tmp_path / "work", (file, old, new))
    assert run.code == 0, run.output
    assert list_failed_checks(run) == failed
    assert said in run.output
    assert "Traceback" not in run.output


@pytest.mark.parametrize(
    ("words", "compilers", "code", "said"),
    [
        (["--block=96"], True, 2, "--block must be 32, 64, 128, 256, 512 or 1024"),
        (["--stride=65"], True, 2, "--stride from 1 to 64"),
        (["--elements=4096"], False, 1, "the emulator needs g++, which is not installed here: apt-get install g++"),
    ],
    ids=["block", "stride", "no compiler"],
)
def test_what_5_1_cannot_do_is_said_before_anything_starts(
    words: list[str], compilers: bool, code: int, said: str, tmp_path: Path
) -> None:
    _, script = lay_out("5.1", tmp_path / "work")
    path = {} if compilers else {"PATH": str(tmp_path)}
    process = start([sys.executable, script.name, *words], script.parent, environment(script.parent) | path)
    output = wait(process)
    assert process.returncode == code
    assert said in output
    assert "Traceback" not in output


# --- 5.3 ---------------------------------------------------------------------------------------------------------------

OF_THE_KERNELS = {"yours-right", "no-races", "no-conflicts", "tiled-saves", "registers-save"}


@needs_emulator
def test_three_products_are_counted_and_two_are_open(tmp_path: Path) -> None:
    run = with_faults("5.3", tmp_path / "work", n="64", arch="sm_75")
    assert run.code == 0, run.output
    assert on_cpu(run) >= OF_THE_KERNELS
    assert list_failed_checks(run) == set()
    values = run.metrics
    assert (values["asked_mb"], values["naive"]["load_sectors_per_request"]) == (8 * 64**3 / 1e6, 16.5)
    assert (values["coalesced"]["load_sectors_per_request"], values["tensor"]["flop_per_byte"]) == (2.5, 8.0)
    assert {values[name]["state"] for name in ("tiled", "registers")} == {"not written yet"}
    assert (values["timed"], values["refused"]) == ([], 0), "what needs a GPU is not made up"
    assert {row["kernel"] for row in values["compiled"]} in (set(), {"naive", "coalesced", "tensor"}), "with nvcc, or without"


@pytest.mark.slow
@needs_emulator
def test_products_by_their_command(programming: Learner) -> None:
    run, folder = by_command_line(programming, "5.3", n="64")
    assert_all_comes_home(run, folder, {"sectors.png", "intensity.png", "beside-published.png"})


@pytest.mark.slow
@needs_emulator
@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--n=96,100", "--n 100: a multiple of 32"),
        ("--n=96 --tile=32", "--n 96: a multiple of 64"),
        ("--n=1024", "without a GPU and nvcc the emulator counts"),
        ("--tile=12", "--tile 12: 8, 16 or 32"),
        ("--arch=sm_1", "--arch: sm_1 is not one of"),
    ],
)
def test_a_product_that_cannot_be_is_refused_with_the_rule(word: str, said: str, tmp_path: Path) -> None:
    _, script = lay_out("5.3", tmp_path / "work")
    process = start([sys.executable, script.name, *word.split()], script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 2
    assert said in output
    assert "Traceback" not in output


@pytest.mark.slow
@needs_emulator
def test_an_error_on_line_1_ends_the_run_with_that_line(tmp_path: Path) -> None:
    _, script = lay_out("5.3", tmp_path / "work")
    kernels = script.with_name("my_gemm.cu")
    kernels.write_text(f"int x = ;\n{kernels.read_text(encoding='utf-8')}", encoding="utf-8")
    process = start([sys.executable, script.name, "--n=64"], script.parent, environment(script.parent))
    output = wait(process)
    assert process.returncode == 1
    assert re.search(r"my_gemm\.cu does not compile:\n(.*\n)?my_gemm\.cu:1:(\d+:)? error: ", output)


# --- 5.7 ---------------------------------------------------------------------------------------------------------------

SMALL = {"size": "512", "gemm_small": "8", "gemm_large": "256"}


@pytest.mark.slow
def test_eight_kernels_lie_under_the_roofs_of_this_computer(tmp_path: Path) -> None:
    run = with_faults("5.7", tmp_path / "work", **SMALL)
    assert run.code == 0, run.output
    values = run.metrics
    assert list_unanswered(run) == {
        "bounds-run": "not_measured: not written yet: find_bound in my_bounds.py",
        "words": "not_measured: not written yet: find_bound in my_bounds.py",
        "stencil-moves-less": "failed: 0 %",
    }
    assert {"large-gemm", "stencil-faster"} <= on_cpu(run)
    assert [row["kernel"] for row in values["kernels"]] == [
        "saxpy", "layer norm", "stencil", "sparse x vector", "FFT 4096", "all-pairs forces", "GEMM 8", "GEMM 256",
        "stencil, yours",
    ]  # fmt: skip
    assert values["memory_bound"] + values["compute_bound"] == 8
    assert values["roof"]["gb_per_s"] == max(loop["gb_per_s"] for loop in values["loops"])
    assert (values["delivered_bytes"], values["yours_bytes"], values["sheet"]["gb_per_s"]) == (104, 104, None)
    assert values["forces_moved_times"] > 1000
    assert [row["flop_per_byte"] for row in values["drawn"]] == sorted(row["flop_per_byte"] for row in values["drawn"])
    check_plots_and_tables(run, tmp_path, with_gaps=True)


@pytest.mark.slow
def test_faults_of_a_roofline_are_found(tmp_path: Path) -> None:
    twice = ("roof_kernels.py", "2 * n**3, 12 * n * n", "40 * n**3, 12 * n * n")
    half = ("my_stencil.py", "change = c * (vertical + horizontal)", "change = (c * (vertical + horizontal)).half()")
    words = (
        "my_bounds.py",
        'raise NotImplementedError("find_bound: how many operations does each kernel perform per byte?")',
        'return ""',
    )
    run = with_faults("5.7", tmp_path / "work", twice, half, words, **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) >= {"possible", "stencil-right", "words"}


@pytest.mark.slow
def test_a_roof_taken_on_a_busy_computer_is_taken_again(tmp_path: Path) -> None:
    busy = ("roofline.py", '"gb_per_s": width *', '"gb_per_s": (1e-3 if len(loops) < 12 else 1) * width *')
    run = with_faults("5.7", tmp_path / "work", busy, **SMALL)
    assert run.code == 0, run.output
    assert run.metrics["refused"] == 0, "the computer is no fault of the kernels"
    assert len(run.metrics["loops"]) >= 16, "the first three times each loop was a thousand times too slow"


@pytest.mark.slow
def test_a_step_that_raises_is_named_and_the_rest_is_measured(tmp_path: Path) -> None:
    run = with_faults("5.7", tmp_path / "work", ("my_stencil.py", "centre + change", "centre + changed"), **SMALL)
    assert run.code == 0, run.output
    assert list_failed_checks(run) == {"step-runs"}
    assert run.metrics["step_broken"].startswith("NameError")
    assert (run.metrics["saved_percent"], run.metrics["stencil_speedup"]) == (None, None)


# --- 5.8 ---------------------------------------------------------------------------------------------------------------

FEW = {"signals": "64", "batch_sizes": "1,16"}
OF_THE_FILTER = {"fast-length", "template-once", "in-batches", "faster"}  # what is wrong with it as delivered


def test_a_filter_is_right_and_slow_as_it_is_delivered(tmp_path: Path) -> None:
    run = with_faults("5.8", tmp_path / "work", **FEW)
    assert run.code == 0, run.output
    # Whether it is faster compares two times, which a busy computer bends.
    assert set(list_unanswered(run)) | {"faster"} == OF_THE_FILTER
    assert on_cpu(run) == {"beats-cpu", "plans-kept", "overlap-right"}
    values = run.metrics
    assert (values["plain_length"], values["fast_length"], values["best_batch"] in {1, 16}) == (1123, 1125, True)
    assert (values["delivered_transforms"], values["ring_wrong_scores"], values["ring_found_percent"]) == (128, 123, 0)
    assert (values["template_transforms"], values["signals_per_call"], values["largest_prime_factor"]) == (64, 1, 1123)
    assert values["with_copies_us"] is None, "what needs a GPU is not made up"
    assert "(local mode)" in run.output
    check_plots_and_tables(run, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "failed"),
    [
        ("length = samples + points - 1  #", "length = samples  #", {"filter-right", "finds"}),
        (".conj()", "", {"filter-right", "finds"}),
        ("return torch.stack(scores)", "return torch.stack(scores).abs()", {"filter-right"}),
        ("return torch.stack(scores)", "signals.zero_()\n    return torch.stack(scores)", {"filter-runs"}),
    ],
    ids=["circular", "convolved", "sign-lost", "input-changed"],
)
def test_a_planted_fault_of_a_filter_is_found(old: str, new: str, failed: set[str], tmp_path: Path) -> None:
    run = with_faults("5.8", tmp_path / "work", ("my_filter.py", old, new), **FEW)
    assert run.code == 0, run.output
    assert list_failed_checks(run) - OF_THE_FILTER == failed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exercise", "word", "said"),
    [
        ("5.7", "--size=8", "--size must be 0 or at least 256"),
        ("5.7", "--gemm-small=4096", "below --gemm-large"),
        ("5.7", "--threads=4000", "the cores of this node"),
        ("5.8", "--template=5000", "at most --samples 4096"),
        ("5.8", "--batch-sizes=1,x", "whole numbers with commas"),
        ("5.8", "--batch-sizes=99999", "each must be from 1 to --signals 16384"),
        ("5.8", "--signals=1", "--signals must be at least 16"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_the_rule(exercise: str, word: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    _, script = lay_out(exercise, folder)
    process = start([sys.executable, script.name, word], folder, environment(folder))
    output = wait(process)
    assert process.returncode == 2
    assert said in output
    assert "Traceback" not in output
