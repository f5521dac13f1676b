"""Figures that lessons quote are those of the course's tables of GPUs and prices."""

from __future__ import annotations

import re

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

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


def test_lesson_1_quotes_the_speed_of_tensor_cores() -> None:
    (row,) = re.findall(r"\| tensor core \| [^|]*? or less: ([^|]*) \|", lesson("1"))
    quoted = {name: int(times) for times, name in re.findall(r"(\d+)[a-z ]* on an? (\w+)", row)}
    assert set(quoted) == {"A10G", "L4", "T4", "A100"}
    for name, times in quoted.items():
        of_name = [gpu for gpu in gpus.table() if gpu.gpu.split()[0] == name]
        assert [round(gpu.fp16 / gpu.fp32) for gpu in of_name] == [times] * len(of_name), name


def test_lesson_4_quotes_the_price_of_spot() -> None:
    shares = [[spot / price.usd_per_hour for spot in price.spot] for price in costs.prices()[0] if price.spot]
    low, high = (100 * limit(share for pair in shares for share in pair) for limit in (min, max))
    assert f"**Spot** costs {low:.0f} to {high:.0f}% of the price on demand, by type and zone;" in lesson("4")
    assert max(min(pair) for pair in shares) < 0.5
    assert "in the cheapest zone it is less than half" in lesson("4")
    assert any(task.startswith("In its cheapest zone spot costs less than half.") for task in CATALOG.exercise("4.4")[1].tasks)


def read_part(folder: str, file: str) -> str:
    """Return one file of a lesson in one line, without the breaks of its lines."""
    return " ".join((CATALOG.folders.modules / folder / file).read_text(encoding="utf-8").split())


def test_lesson_7_quotes_the_speed_of_nvlink() -> None:
    text = read_part(HPC, "lesson-2-links.md")
    generations = {gpu.link.split(",")[0]: gpu.link.split()[2] for gpu in gpus.table() if gpu.link.startswith("NVLink")}
    one_way = {name: int(both_ways) / 2 for name, both_ways in generations.items()}
    assert (one_way["NVLink 4"] / 18, one_way["NVLink 5"] / 18) == (25, 50)
    assert f"NV12 {12 * 25}, NV18 {one_way['NVLink 4']:.0f}; 50 a link for NVLink 5: NV18 {one_way['NVLink 5']:.0f} |" in text


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
