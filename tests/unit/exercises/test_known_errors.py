"""Twenty-two mistakes that published course scripts make. Each that a test can hold is held here, by its name.

Where another test file is the place to hold it, the name is there; what only a GPU could show is in the manifest as a
check with `evidence: gpu`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.model.manifest import Exercise
from tests.unit.exercises.scripts import beside_the_script

FOLDERS = find_course({})
CATALOG = load(FOLDERS)
SCRIPTS = sorted(path for path in FOLDERS.exercises.rglob("*.py") if "__pycache__" not in path.parts)
MEASURED = ("01-basic-gpu", "04-benchmarking")

gpus = beside_the_script("shared", "gpus")
completions = beside_the_script("shared", "completions")
costs = beside_the_script("04-benchmarking", "costs")


def source(name: str) -> str:
    """The text of a script, wherever it lies."""
    (path,) = (path for path in SCRIPTS if path.name == name and path.parent.name != "solutions")
    return path.read_text(encoding="utf-8")


def exercise(number: str) -> Exercise:
    return CATALOG.exercise(number)[1]


def checks(number: str) -> set[str]:
    return {check.id for check in exercise(number).checks}


def calls(text: str, name: str) -> Iterator[ast.Call]:
    """Calls of a function or method of that name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name:
            yield node


def test_01_bandwidth_of_an_allreduce_has_its_factor() -> None:
    bandwidth = beside_the_script("shared", "bandwidth")
    assert bandwidth.bus_factor("all_reduce", 2) == 1, "twice too much for two ranks, where the factor is left at 2"
    assert bandwidth.bus_factor("all_reduce", 16) == pytest.approx(2 * 15 / 16)


def test_02_repeated_sums_in_place_do_not_grow_without_end() -> None:
    assert "source.zero_()" in source("communication_profile.py")


def test_03_a_plateau_is_only_named_where_the_curve_is_flat() -> None:
    bandwidth = beside_the_script("shared", "bandwidth")
    sizes = [1 << power for power in range(20, 26)]
    assert bandwidth.plateau(sizes, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]).size is None


def test_04_accumulation_does_not_synchronise_the_inner_steps() -> None:
    assert list(calls(source("gradient_accumulation.py"), "no_sync"))


def test_05_every_rank_sees_the_same_data_set_in_its_own_share() -> None:
    for name in ("ddp_training.py", "local_ddp.py"):
        assert "DistributedSampler(" in source(name)
        assert "SEED" in source(name)


def test_06_a_gpu_is_chosen_by_local_rank() -> None:
    assert not [
        path.name for path in SCRIPTS if re.search(r"rank\s*%\s*torch\.cuda\.device_count", path.read_text(encoding="utf-8"))
    ]
    assert 'int(os.environ["LOCAL_RANK"])' in source("ranks.py")


def test_07_a_sum_is_not_called_an_average() -> None:
    rows = {column.key for table in exercise("3.1").tables for column in table.columns}
    assert {"sum", "average"} <= rows


def test_08_free_memory_is_the_drivers() -> None:
    text = source("memory_management.py")
    assert "memory.capacity() - memory.in_use()" in text
    assert "capacity() - memory.allocated()" not in text
    assert "predicted" in checks("1.4")


def test_09_no_hint_says_that_1_6_gb_overflow_a_t4() -> None:
    task = next(task for task in exercise("1.4").tasks if "20000 by 20000" in task)
    assert "1.6 GB" in task
    assert 20_000**2 * 4 < 14.6 * 2**30 < 64_000**2 * 4, "nine fit; one of 64000 by 64000 does not"
    assert {"ran-out", "same-error"} <= checks("1.4"), "that it overflowed is measured, not said"


def test_10_cold_and_warm_are_two_rows_and_never_one_mean() -> None:
    text = source("hello_gpu.py")
    assert text.index("cold = bench.time_each") < text.index("warm = bench.measure")
    for folder in MEASURED:
        for path in (FOLDERS.exercises / folder).glob("*.py"):
            assert "time.time()" not in path.read_text(encoding="utf-8"), path.name


def test_11_tflops_stand_beside_the_peak_and_the_clock() -> None:
    keys = {column.key for table in exercise("4.2").tables for column in table.columns}
    assert {"peak_tflops", "best_percent", "sustained", "clock_mhz", "power_w", "limiter"} <= keys


def test_12_latency_is_each_requests_own() -> None:
    assert completions.tpot(2.05, 0.05, 101) == pytest.approx(0.020)
    keys = {column.key for table in exercise("4.3").tables for column in table.columns}
    assert {"ttft_p50_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p99_ms"} <= keys


def test_13_an_engines_memory_is_not_asked_of_the_client() -> None:
    for name in ("engines.py", "first_inference.py", "inference_throughput.py"):
        assert not list(calls(source(name), "memory_allocated"))
    assert "whose-memory" in checks("1.2")


def test_14_equal_work_and_no_prefix_cache() -> None:
    assert '"ignore_eos": True' in source("completions.py")
    assert "--no-enable-prefix-caching" in source("engines.py")
    assert '"allow_block_sharing": False' in source("engines.py")
    assert {"equal-work", "nothing-kept"} <= checks("4.3")


def test_15_specifications_and_prices_are_data_with_a_source() -> None:
    a10g, h100 = (next(gpu for gpu in gpus.table() if gpu.gpu == name) for name in ("A10G", "H100 SXM"))
    assert (a10g.sms * a10g.cores_per_sm, a10g.tdp_w, h100.fp16) == (10_240, 300, 989)
    listed, sources = costs.prices()
    by_name = {price.instance: price.usd_per_hour for price in listed}
    assert by_name["g6.2xlarge"] == 0.9776, "and not 1.10"
    assert all(sources[kind]["source"] and sources[kind]["date"] for kind in ("on_demand", "spot"))
    for price in by_name.values():
        for path in (FOLDERS.exercises / "04-benchmarking").glob("*.py"):
            if price != 0.526:  # the golden value of the formula
                assert str(price) not in path.read_text(encoding="utf-8"), f"{path.name} has a price in it"


def test_16_no_script_names_a_symbol_that_libraries_do_not_have() -> None:
    assert not [path.name for path in SCRIPTS if re.search(r"cuMemAlloc\b(?!_v2)", path.read_text(encoding="utf-8"))]


def test_17_the_launcher_starts_processes() -> None:
    assert list(calls(source("launcher.py"), "Popen"))


def test_18_one_way_and_both_ways_are_told_apart() -> None:
    links = [gpu.link for gpu in gpus.table() if "NVLink" in gpu.link]
    assert links
    assert all(link.endswith("both ways") for link in links)


def test_19_powersgd_begins_within_the_run() -> None:
    begin = exercise("3.8").parameter("start_iteration")
    assert begin is not None
    assert begin.default == 5, "a start at step 1000 never compresses in a short run"
    assert "args.steps < args.start_iteration" in source("gradient_compression.py"), "and it is refused"


def test_20_ranks_are_aggregated() -> None:
    assert "all-ranks" in checks("3.2")
    assert "world.over_ranks" in source("ddp_training.py") or "slowest" in source("ddp_training.py")


def test_21_utilisation_is_never_called_efficiency() -> None:
    question = next(question for question in exercise("1.3").questions if question.id == "not-efficiency")
    assert question.choices[question.key or ""] == "for 95% of the time at least one kernel was running, however small"
    assert "busy-without-work" in checks("1.3")
    for number in ("1.3", "4.2", "4.3"):
        for check in exercise(number).checks:
            assert not ("utilisation" in check.value and "fficien" in check.title)


def test_22_no_bfloat16_on_a_t4() -> None:
    t4 = next(gpu for gpu in gpus.table() if gpu.gpu == "T4")
    assert t4.bf16 is None
    for name in ("hello_gpu.py", "matmuls.py", "engines.py"):
        asked = list(calls(source(name), "is_bf16_supported"))
        assert asked, name
        for call in asked:
            assert [(word.arg, ast.literal_eval(word.value)) for word in call.keywords] == [("including_emulation", False)], (
                name
            )


def test_the_list_is_whole() -> None:
    numbers = re.findall(r"^def test_(\d\d)_", Path(__file__).read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(number) for number in numbers] == list(range(1, 23))


def test_no_row_of_the_table_is_without_a_source() -> None:
    data = json.loads((FOLDERS.exercises / "shared" / "gpus.json").read_text(encoding="utf-8"))
    assert set(data["sources"]) == {"sheet", "derived", "device", "shared_bytes_per_clock", "rtx", "measured", "instances"}
    assert data["date"]
