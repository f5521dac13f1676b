"""Figures that lessons quote are those of the course's tables of GPUs and prices."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script
from tests.unit.exercises.test_bandwidth import GIB, MIB, p4de

CATALOG = load(find_course({}))
bandwidth = beside_the_script("shared", "bandwidth")
costs = beside_the_script("04-benchmarking", "costs")
gpus = beside_the_script("shared", "gpus")
HPC, CUDA = "07-hpc-systems", "05-gpu-programming"
DECISIONS = "lesson-5-decisions.md"
T4 = next(gpu for gpu in gpus.table() if gpu.gpu == "T4")


def lesson(number: str) -> str:
    """A lesson in one line, without the breaks of its lines."""
    return " ".join(CATALOG.lesson(CATALOG.module(number)).split())


def test_lesson_3_quotes_the_busbw_of_the_published_curve() -> None:
    quoted = re.search(r"Two nodes of 8 A100 give a busbw of (\d+) GB/s at 32 MiB, .* and of (\d+) GB/s at 2 GiB", lesson("3"))
    assert quoted
    sizes, busbw = p4de(12)
    assert [int(figure) for figure in quoted.groups()] == [round(busbw[sizes.index(32 * MIB)]), round(busbw[-1])]


def test_lesson_1_quotes_the_speed_of_tensor_cores() -> None:
    (row,) = re.findall(r"\| tensor core \| [^|]*? or less: ([^|]*) \|", lesson("1"))
    quoted = {name: int(times) for times, name in re.findall(r"(\d+)[a-z ]* on an? (\w+)", row)}
    assert set(quoted) == {"A10G", "L4", "T4", "A100"}
    for name, times in quoted.items():
        of_name = [gpu for gpu in gpus.table() if gpu.gpu.split()[0] == name]
        assert [round(gpu.fp16 / gpu.fp32) for gpu in of_name] == [times] * len(of_name), name


HINT = next(hint for hint in CATALOG.exercise("1.1")[1].hints if hint.startswith("A launch costs"))


@pytest.mark.parametrize("text", [lesson("1"), HINT], ids=["lesson", "hint"])
def test_lesson_1_quotes_the_time_of_a_small_product(text: str) -> None:
    whole_us = 2 * 100**3 / (T4.fp32 * 1e12) * 1e6
    assert whole_us == pytest.approx(0.25, abs=0.01)
    assert "a quarter of a microsecond" in text
    assert f"two of them need {whole_us * T4.sms / 2:.0f}" in text


def test_lesson_4_quotes_the_price_of_spot() -> None:
    shares = [[spot / price.usd_per_hour for spot in price.spot] for price in costs.prices()[0] if price.spot]
    low, high = (100 * limit(share for pair in shares for share in pair) for limit in (min, max))
    assert f"**Spot** costs {low:.0f} to {high:.0f}% of the price on demand, by type and zone;" in lesson("4")
    assert max(min(pair) for pair in shares) < 0.5
    assert "in the cheapest zone it is less than half" in lesson("4")
    assert any(task.startswith("In its cheapest zone spot costs less than half.") for task in CATALOG.exercise("4.4")[1].tasks)


SHARED_BYTES_PER_CLOCK = gpus.document()["shared_bytes_per_clock"]


def read_part(folder: str, file: str) -> str:
    """Return one file of a lesson in one line, without the breaks of its lines."""
    return " ".join((CATALOG.folders.modules / folder / file).read_text(encoding="utf-8").split())


def find_share_of_peak(gpu: Any, reads_per_product: float) -> float:
    """Return the percentage of the float32 peak that shared memory allows if each product reads that many words."""
    products_per_clock: float = SHARED_BYTES_PER_CLOCK[gpu.capability] / 4 / reads_per_product
    return float(min(100.0, 100 * products_per_clock / gpu.cores_per_sm))


def test_lesson_1_quotes_the_shared_memory_of_a_t4() -> None:
    gb_per_s = T4.sms * SHARED_BYTES_PER_CLOCK[T4.capability] * T4.boost_ghz
    assert gb_per_s == pytest.approx(4070, abs=1)  # Jia et al., 2019
    assert f"shared memory 2.5 MB at {gb_per_s / 1000:.1f} TB/s" in lesson("1")


@pytest.mark.parametrize("side", [1, 4, 8])
def test_lesson_5_quotes_what_shared_memory_allows(side: int) -> None:
    reads = 2 * side / side**2
    text = read_part(CUDA, "lesson-6-products.md")
    row = re.search(rf"R = {side} .*?\b{side**2} products? +([\d.]+)[a-z ]* ([\d.]+) %", text)
    assert row
    assert (float(row[1]), float(row[2])) == (reads, find_share_of_peak(T4, reads))


def test_lesson_7_quotes_the_speed_of_nvlink() -> None:
    text = read_part(HPC, "lesson-2-links.md")
    generations = {gpu.link.split(",")[0]: gpu.link.split()[2] for gpu in gpus.table() if gpu.link.startswith("NVLink")}
    one_way = {name: int(both_ways) / 2 for name, both_ways in generations.items()}
    assert (one_way["NVLink 4"] / 18, one_way["NVLink 5"] / 18) == (25, 50)
    assert f"NV12 {12 * 25}, NV18 {one_way['NVLink 4']:.0f}; 50 a link for NVLink 5: NV18 {one_way['NVLink 5']:.0f} |" in text


def test_lesson_7_quotes_the_time_of_a_ring_of_eight() -> None:
    text, moved = read_part(HPC, "lesson-2-links.md"), bandwidth.bus_factor("all_reduce", 8) * GIB
    assert f"{moved / 1e9:.3f} GB cross each hop" in text
    table = re.findall(r"\| (?:NVLink|PCIe|Ethernet)[^|]* \| ([\d.]+) \| ([\d.]+) ms \|", text)
    assert len(table) == 4
    assert [milliseconds for _, milliseconds in table] == [f"{moved / float(speed) / 1e6:.3g}" for speed, _ in table]


def test_questions_about_links_have_the_constants_of_their_formulas() -> None:
    constants = {
        question.id: question.value
        for number in ("3.1", "3.3", "7.2")
        for question in CATALOG.exercise(number)[1].questions
        if isinstance(question.value, float)
    }
    assert constants == {
        "sum-of-four": sum(rank + 1 for rank in range(4)),
        "factor-of-four": bandwidth.bus_factor("all_reduce", 4),
        "nvlink3": pytest.approx(bandwidth.bus_factor("all_reduce", 8) * GIB / 300e9 * 1e3, abs=5e-4),
        "one-way": 900 / 2,
    }
    (question,) = [question for question in CATALOG.exercise("7.2")[1].questions if question.id == "one-way"]
    assert f"18 links of {450 // 18} GB/s each way make 450 and 450 (NVLink 4;" in (question.explanation or "")


def test_lesson_1_quotes_the_price_of_a_v100() -> None:
    (name, kind), *others = [
        (name, kind)
        for gpu in gpus.table()
        if gpu.gpu.startswith("V100") and not gpu.aws.get("retired")
        for name, kind in gpu.aws.get("types", {}).items()
    ]
    assert not others
    assert kind["gpus"] == 8
    price = f"AWS has only eight of them together, for {float(kind['usd_per_hour']):.0f} dollars an hour ({name}) |"
    assert price in lesson("1")


def test_lesson_7_quotes_the_first_instances_with_efa() -> None:
    types = {name: kind for gpu in gpus.table() for name, kind in gpu.aws.get("types", {}).items()}
    for family in ("g4dn", "g5", "g6"):
        of_family = [name for name in types if name.startswith(f"{family}.")]
        vcpus_without = [types[name]["vcpus"] for name in of_family if not types[name].get("efa")]
        first = min((name for name in of_family if types[name].get("efa")), key=lambda name: types[name]["vcpus"])
        assert types[first]["vcpus"] > max(vcpus_without)
        assert f"`{first}`" in read_part(HPC, DECISIONS)
