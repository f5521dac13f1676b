"""Figures that lessons quote are those of the course's own formulas and tables."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

import pytest

from tests.course import CATALOG
from tests.unit.exercises.scripts import beside_the_script
from tests.unit.exercises.test_bandwidth import GIB, MIB, p4de

bandwidth = beside_the_script("shared", "bandwidth")
bubble = beside_the_script("shared", "bubble")
costs = beside_the_script("04-benchmarking", "costs")
gpus = beside_the_script("shared", "gpus")
HPC, CUDA = "07-hpc-systems", "05-gpu-programming"
DECISIONS = "lesson-5-decisions.md"
T4 = next(gpu for gpu in gpus.table() if gpu.gpu == "T4")


def lesson(number: str) -> str:
    """Return a lesson in one line, without the breaks of its lines."""
    return " ".join(" ".join(CATALOG.lesson_parts(CATALOG.module(number))).split())


def test_the_busbw_of_two_nodes_is_that_of_the_published_curve() -> None:
    quoted = re.search(r"Two nodes of 8 A100s give a busbw of (\d+) GB/s at 32 MiB, .* and of (\d+) GB/s at 2 GiB", lesson("3"))
    assert quoted
    sizes, busbw = p4de(12)
    assert [int(figure) for figure in quoted.groups()] == [round(busbw[sizes.index(32 * MIB)]), round(busbw[-1])]


@pytest.mark.parametrize(
    ("name", "kind", "rows"),
    [
        ("16 A100, two p4de", "p4de.24xlarge", {8: 164.3, MIB: 309.4, 2 * GIB: 51406}),
        ("16 H100, two p5", "p5.48xlarge", {8: 69.12, MIB: 123.2, 8 * GIB: 33605}),
    ],
)
def test_published_collectives_are_as_their_tables_have_them(name: str, kind: str, rows: dict[int, float]) -> None:
    """awslabs/awsome-distributed-training, micro-benchmarks/nccl-tests: microseconds by bytes."""
    (link,) = [float(gpu.aws["types"][kind]["network_gbps"]) / 8 for gpu in gpus.table() if kind in gpu.aws.get("types", {})]
    (smallest, *large) = rows
    end = rf"([\d.]+) at 1 MiB, (\d+) at {large[-1] // GIB} GiB \|"
    row = re.search(rf"\| {name}, EFA \| {link:.0f} \| {rows[smallest]:.0f} µs at {smallest} B \| {end}", lesson("3"))
    assert row
    busbw = [bandwidth.busbw("all_reduce", size, rows[size] / 1e6, 16) for size in large]
    assert [float(figure) for figure in row.groups()] == [pytest.approx(speed, rel=0.01) for speed in busbw]


def test_tensor_cores_are_as_much_faster_as_the_table_says() -> None:
    (row,) = re.findall(r"\| tensor core \| [^|]*? or smaller formats: ([^|]*) \|", lesson("1"))
    quoted = {name: int(times) for times, name in re.findall(r"(\d+)[a-z ]* on an? (\w+)", row)}
    assert set(quoted) == {"A10G", "L4", "T4", "A100"}
    for name, times in quoted.items():
        of_name = [gpu for gpu in gpus.table() if gpu.gpu.split()[0] == name]
        assert [round(gpu.fp16 / gpu.fp32) for gpu in of_name] == [times] * len(of_name), name


HINT = next(hint.text for hint in CATALOG.exercise("1.1")[1].hints if hint.text.startswith("A launch costs"))


@pytest.mark.parametrize("text", [lesson("1"), HINT], ids=["lesson", "hint"])
def test_a_small_product_takes_as_long_as_its_launch(text: str) -> None:
    whole_us = 2 * 100**3 / (T4.fp32 * 1e12) * 1e6
    assert whole_us == pytest.approx(0.25, abs=0.01)
    assert "a quarter of a microsecond" in text
    assert re.search(rf"[Tt]wo (of them, for example, need|multiprocessors take) {whole_us * T4.sms / 2:.0f} micro", text)


def test_spot_costs_what_the_price_table_says() -> None:
    shares = [[spot / price.usd_per_hour for spot in price.spot] for price in costs.prices()[0] if price.spot]
    low, high = (100 * limit(share for pair in shares for share in pair) for limit in (min, max))
    assert (
        f"**Spot** instances in us-east-1 cost {low:.0f} to {high:.0f} % of the on-demand price, depending on type"
        in lesson("4")
    )
    assert max(min(pair) for pair in shares) < 0.5
    assert "in the cheapest zone they cost less than half" in lesson("4")
    assert any(
        task.startswith("In its cheapest zone a spot instance costs less than half the price on demand.")
        for task in CATALOG.exercise("4.4")[1].tasks
    )


def test_the_training_state_of_a_model_is_sixteen_bytes_a_parameter() -> None:
    width = 2048
    parameters = (64 + 1) * width + (width + 1) * width + (width + 1) * 10
    assert parameters == width**2 + 76 * width + 10
    assert f"At h = {width} that is {parameters:,} parameters and {16 * parameters / 1e6:.1f} MB." in lesson("5")
    assert "A model of 7 billion parameters needs 112 GB" in lesson("5")


def test_what_the_slow_training_reads_in_a_step() -> None:
    (question,) = [item for item in CATALOG.exercise("5.9")[1].questions if item.id == "values-read"]
    assert f"1 + 32 x (10 + 1) = {1 + 32 * (10 + 1)}" in (question.explanation or "")
    assert f"{2048 // 32 * 353:,} at 2,048 samples" in (question.explanation or "")


def test_the_operations_of_the_plain_block_move_nine_tensors() -> None:
    (question,) = [item for item in CATALOG.exercise("5.12")[1].questions if item.id == "fused-for-training"]
    tensors = {"layer norm": 2, "product": 2, "gelu": 2, "sum": 3}
    assert sum(tensors.values()) == 9
    assert "read and write whole tensors, nine altogether" in (question.explanation or "")
    assert question.value == sum(tensors.values()) / len({"x", "h", "gate * h", "result"})


def test_the_intervals_between_saves_are_youngs() -> None:
    text = (CATALOG.folders.modules / "06-training-at-scale/lesson-9-crashes.md").read_text(encoding="utf-8")
    words = " ".join(text.split())
    interval = math.sqrt(2 * 2 * 4 * 3600)
    quoted = re.search(r"= (\d+) s\. Saves and crashes then take ([\d.]+) % each", words)
    assert quoted
    assert (float(quoted[1]), float(quoted[2])) == (interval, round(100 * 2 / interval, 2))
    costs_by_factor = [100 * (2 / (factor * interval) + factor * interval / 2 / (4 * 3600)) for factor in (3, 1)]
    assert f"you lose {costs_by_factor[0]:.1f} % instead of {costs_by_factor[1]:.1f} %" in words
    hours = 3 * 365 * 24 / 1000
    assert f"every {hours:.0f} hours" in words


SHARED_BYTES_PER_CLOCK = gpus.document()["shared_bytes_per_clock"]


def read_part(folder: str, file: str) -> str:
    """Return one file of a lesson in one line, without the breaks of its lines."""
    return " ".join((CATALOG.folders.modules / folder / file).read_text(encoding="utf-8").split())


def find_share_of_peak(gpu: Any, reads_per_product: float) -> float:
    """Return the percentage of the float32 peak that shared memory allows if each product reads that many words."""
    products_per_clock: float = SHARED_BYTES_PER_CLOCK[gpu.capability] / 4 / reads_per_product
    return float(min(100.0, 100 * products_per_clock / gpu.cores_per_sm))


def test_the_shared_memory_of_a_t4_is_as_fast_as_was_measured() -> None:
    gb_per_s = T4.sms * SHARED_BYTES_PER_CLOCK[T4.capability] * T4.boost_ghz
    assert gb_per_s == pytest.approx(4070, abs=1)  # Jia et al., 2019
    assert f"shared memory 2.5 MB at {gb_per_s / 1000:.1f} TB/s" in lesson("1")


@pytest.mark.parametrize("side", [1, 4, 8])
def test_register_tiling_table_matches_the_shared_memory_bound(side: int) -> None:
    reads = 2 * side / side**2
    text = read_part(CUDA, "lesson-5-registers.md")
    row = re.search(rf"R = {side} .*?\b{side**2} products? +([\d.]+)[a-z ]* ([\d.]+) %", text)
    assert row
    assert (float(row[1]), float(row[2])) == (reads, find_share_of_peak(T4, reads))


def test_what_shared_memory_allows_tiled_on_other_gpus() -> None:
    text = read_part(CUDA, "lesson-5-registers.md")
    shares = {
        name: find_share_of_peak(gpu, 2) for gpu in gpus.table() if (name := gpu.gpu.split()[0]) in {"T4", "L4", "V100", "A100"}
    }
    assert shares == {"T4": 12.5, "L4": 12.5, "V100": 25, "A100": 25}
    assert "12.5 % of the peak at best, even if main memory were infinitely fast. An L4, which delivers" in text
    assert "A V100 or an A100 delivers 128 bytes for 64 multiply-adds: 25 %." in text
    per_clock, warp = SHARED_BYTES_PER_CLOCK[T4.capability], 32
    assert f"shared memory delivers {per_clock} bytes per clock" in text
    clocks, words = 4 * warp // per_clock, {2: "two", 4: "four", 8: "eight"}
    assert f"takes {words[clocks]} clocks. Two requests take {words[2 * clocks]} clocks." in text
    assert f"multiply-adds for {words[2 * clocks * T4.cores_per_sm // warp]} warps, but performs them for one" in text
    assert f"one clock on most GPUs, {words[clocks]} on a T4" in lesson("5")
    assert SHARED_BYTES_PER_CLOCK[T4.capability] / 4 / T4.cores_per_sm == 0.25
    assert "a quarter of a read per product. R = 4 needs twice as many reads, and R = 8 exactly as many" in text


def count_numbers_of_the_inner_loop(length: int, d: int, block: int, keys_outside: bool) -> int:
    """Return how many numbers of q, k, v and out the inner loop of FlashAttention loads and stores for one head."""
    visit = 3 * block * d if keys_outside else 2 * block * d  # q and out loaded, out stored; or k and v loaded
    return (length // block) ** 2 * visit


def test_what_the_two_orders_of_flash_attention_move() -> None:
    text = read_part(CUDA, "lesson-12-attention.md")
    length, d, block = 512, 32, 64
    tiles = 2 * length * d + count_numbers_of_the_inner_loop(length, d, block, keys_outside=False)
    plain = 4 * length * d + 4 * length**2
    assert f"4 N d + 4 N² {plain:,} tiles" in text
    assert f"(N / B, rounded up) {tiles:,}, {plain / tiles:.2f} times fewer" in text
    unit = length**2 * d // block
    first, second = (count_numbers_of_the_inner_loop(length, d, block, keys_outside=is_outside) for is_outside in (True, False))
    assert f"its inner loop moves {first // unit} N² d / B numbers; yours moves {second // unit} N² d / B" in text


def test_the_latency_of_a_ring_is_that_of_all_its_messages() -> None:
    text, message_us = lesson("3"), 20
    assert "t(S) = 2(n-1) · latency + 2(n-1)/n · S / bandwidth" in text
    ring = {ranks: 2 * (ranks - 1) * message_us for ranks in (2, 4, 16)}
    assert f"two ranks take {ring[2]} µs for the smallest tensor, four ranks {ring[4]}, and 16 ranks {ring[16]}." in text
    assert "for an AllReduce in a ring, 2(n-1) times the latency of a message, so it grows with the ranks." in text
    exercise = CATALOG.exercise("3.1")[1]
    assert ring[4] == 3 * ring[2]
    assert any("2(n-1) of them in turn, so three times as many with four ranks as with" in hint.text for hint in exercise.hints)
    assert any("starting the 2(n-1) messages of the ring" in (question.explanation or "") for question in exercise.questions)
    tree = round(2 * math.log2(16))
    assert f"{tree} instead of {2 * 15} for 16 ranks, {tree * message_us} µs instead of {ring[16]}." in text


def test_a_link_of_nvlink_is_as_fast_as_the_data_sheets_say() -> None:
    text = read_part(HPC, "lesson-2-links.md")
    generations = {gpu.link.split(",")[0]: gpu.link.split()[2] for gpu in gpus.table() if gpu.link.startswith("NVLink")}
    one_way = {name: int(both_ways) / 2 for name, both_ways in generations.items()}
    assert (one_way["NVLink 4"] / 18, one_way["NVLink 5"] / 18) == (25, 50)
    assert f"NV12 {12 * 25}, NV18 {one_way['NVLink 4']:.0f}; 50 per link for NVLink 5: NV18 {one_way['NVLink 5']:.0f} |" in text


def test_how_long_a_gibibyte_takes_round_a_ring_of_eight() -> None:
    text, hop_bytes = read_part(HPC, "lesson-2-links.md"), bandwidth.bus_factor("all_reduce", 8) * GIB
    assert f"{hop_bytes / 1e9:.3f} GB cross each hop" in text
    table = re.findall(r"\| (?:NVLink|PCIe|Ethernet)[^|]* \| ([\d.]+) \| ([\d.]+) ms \|", text)
    assert len(table) == 4
    assert [milliseconds for _, milliseconds in table] == [f"{hop_bytes / float(speed) / 1e6:.3g}" for speed, _ in table]


def test_constants_of_questions_about_links_follow_from_their_formulas() -> None:
    constants = {
        question.id: question.value
        for number in ("3.1", "3.3", "7.2")
        for question in CATALOG.exercise(number)[1].questions
        if isinstance(question.value, float)
    }
    assert constants == {
        "bytes-on-the-wire": pytest.approx(bandwidth.bus_factor("all_reduce", 8) * 100e6 / 12.5e9 * 1e3),
        "eight-to-thirty-two": pytest.approx(
            0.28 / 14 * 62 + (11.5 - 0.28) * bandwidth.bus_factor("all_reduce", 32) / 1.75, abs=5e-3
        ),
        "more-ranks": pytest.approx(3e9 * bandwidth.bus_factor("all_reduce", 32) / 24e9 * 1e3, abs=0.05),
        "one-way-times": pytest.approx(1800 / 2 / 63, abs=5e-3),
        "two-bridges": pytest.approx(bandwidth.bus_factor("all_reduce", 4) / 20 * 300, abs=5e-3),
        "smallest-bucket": pytest.approx(0.95 / 0.05 * 40e-6 * 5e9 / 1e6),
    }
    (question,) = [question for question in CATALOG.exercise("7.2")[1].questions if question.id == "one-way-times"]
    assert f"18 links of {900 // 18} GB/s each way make 900 and 900 (NVLink 5)" in (question.explanation or "")


def test_constants_of_questions_about_training_and_serving_follow_from_their_formulas() -> None:
    constants = {
        f"{number} {question.id}": question.value
        for number in ("3.2", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.1", "4.2", "4.3", "4.4")
        for question in CATALOG.exercise(number)[1].questions
        if isinstance(question.value, float)
    }
    strong_hours, fractions = 40 / 5.6, [(seconds - 1 / n) / (1 - 1 / n) for seconds, n in ((0.56, 2), (0.38, 4))]
    peak, reached = 142 * 512 * 2 * 2.52e9, 2 * 8192**3 / 3.9e-3
    rounds = {8: [620, 610, 625], 16: [700, 640, 712], 32: [705, 640, 711], 64: [722, 716, 600]}
    medians = {batch: statistics.median(speeds) for batch, speeds in rounds.items()}
    pixels, width, classes = 784, 1024, 10
    weights = pixels * width + width + width**2 + width + classes * width + classes
    slices_bytes, l4 = 4 * 24 * 4096 * 1024 * 2, gpus.find("NVIDIA L4")
    expected = {
        "3.4 network-or-rank": (120 - 90) / 10,
        "3.4 same-accuracy": (12 * 500 * 20) / (30 * 125 * 25), "3.5 saved-seconds": 15 * 4 * weights / 125e6,
        "3.5 short-piece": ((1 + 1 + 4) / 4) / ((32 * 1 + 32 * 1 + 8 * 4) / 72),
        "4.3 ninety-percent": min(batch for batch, speed in medians.items() if speed >= 0.9 * max(medians.values())),
        "4.3 goodput-of-a-log": (40 - (6 + 5 - 3)) * 128 / 8.2,
        "4.3 missing-cache": (64 * (512 + 512) - 21504) * 196608 / 1e9,
        "3.2 hidden-or-not": 60 - 15, "3.4 price-of-a-result": (16 * strong_hours - 80) / (40 - strong_hours),
        "3.5 tokens-not-pieces": (2.0 + 4.0) / 2 - (900 * 2.0 + 100 * 4.0) / 1000, "3.5 worth-it": 8 * 200 / (8 * 80 + 120),
        "3.6 pieces-for-ten-percent": next(m for m in range(1, 100) if bubble.predict_bubble(8, m) <= 0.1 + 1e-12),
        "3.6 first-stage-memory": (16 - 2) * 1.5, "3.6 slow-stage": 32 * 14 + 3 * 10,
        "3.7 fraction-from-two": 100 * (fractions[1] - fractions[0]), "3.7 all-hidden": 100 * (240 / 8) / 38,
        "3.6 long-or-short-stages": next(m for m in range(1, 99) if (m + 3) * 30 == (2 * m + 3) * 16),
        "3.8 largest-rank": max(r for r in range(1, 1024) if 4 * r * (4096 + 1024) < 2 * 4096 * 1024),
        "3.8 time-to-a-loss": (400 * 100 + 2000 * 25) / (1000 * 62),
        "3.2 early-of-five": 100 * (8 + (1 + 1 + 2)) / (8 + 1 + 1 + 2 + 12),
        "3.6 best-of-four": min((m + 4 - 1) * (240 / m + 2) for m in (8, 16, 32, 64)),
        "3.8 same-error": next(step for step in range(1, 99) if step * 1e-4 > 2**-10 / 2), "3.8 gather-or-sum": 2 * 4,
        "3.8 faster-step": (40 + 200e6 / 1.25e6) / (40 + 12 + 100e6 / 1.25e6), "3.9 memory-of-norms": (10 + 24 / 8) / (34 / 8),
        "3.9 time-of-slices": slices_bytes * bandwidth.bus_factor("all_reduce", 4) / 25e9 * 1e3,
        "4.1 from-a-log": 100 * reached / peak, "4.2 rate-of-a-call": 2 * 2048 * 8192 * 1024 / 0.6e-3 / 1e12,
        "4.2 side-at-the-ridge": 3 * l4.ridge_flop_per_byte, "4.2 first-minute": (1500 + 45 / 0.04) / 75,
        "4.2 percent-at-the-clock": 100 * 27 / (65.1 * 795 / 1590), "4.2 largest-short-job": 33 * (5 * (42 - 24) / (33 - 24)),
        "4.3 two-percentiles": 100 - 10 - 10,
        "4.3 how-many": math.ceil(math.log(0.05) / math.log(0.99)), "4.3 knee": (14 / 300) / (2 * 7e9 / 60e12),
        "4.4 spot-limit": 0.65 * 1440 / 18, "4.4 three-of-four": 5.2 / 3 / 0.8,
    }  # fmt: skip
    assert constants == pytest.approx(expected, rel=3e-3)
    assert "0.99⁴⁰ = 67 %" in lesson("4")
    assert round(100 * 0.99**40) == 67


def test_constants_of_questions_about_memory_and_traces_follow_from_their_formulas() -> None:
    constants = {
        f"{number} {question.id}": question.value
        for number in ("0.1", "0.2", "0.3", "1.1", "1.3", "1.4", "2.1", "2.2", "2.4", "B.2", "B.3")
        for question in CATALOG.exercise(number)[1].questions
        if isinstance(question.value, int | float)
    }
    t4, l4 = (next(gpu for gpu in gpus.table() if gpu.gpu == name) for name in ("T4", "L4"))
    processes = (4, 0, 3, 8, 1, 4)
    ranks = [local_rank for count in processes for local_rank in range(count)]
    tensor_mib = 2 * math.ceil(12_000**2 * 2 / MIB / 2)
    text, floor = beside_the_script("00-local-foundations", "stories").write()
    kernels_of_pass = 2 + 5 * 32
    expected = {
        "0.1 rain": (floor * len(text) + 600 * math.log(2)) / (len(text) + 600 * len(" It rains.")),
        "0.2 accuracy-of-padding": 100 * (math.ceil(10_003 / 64) * 64 - 10_003) / 10_003,
        "0.3 missing-rank": ranks[12],
        "1.1 half-the-bytes": 3 * 2 / 12e9 * t4.peak_tflops("float16") * 1e12 / 2,
        "1.3 share-of-peak": 100 * 3.5e17 / (l4.peak_tflops("bfloat16") * 1e12 * 8 * 3600),
        "1.3 joules-a-token": ((81_944_300 - 81_204_300) / 1e3 - 12 * 20) / 5000,
        "1.4 after-emptying": (15_360 - (6437 - (4000 - 1000))) // tensor_mib,
        "1.4 for-a-colleague": 11.0 - (7.0 - (4.0 - 1.0)),
        "2.1 into-the-gap": (15 * 60 + 10) - (14 * 60 + 5),
        "2.4 long-task": (10 + 10 + 50) - max(50, 5 * 10),
        "2.2 two-hour-rule": (2 * 24 + 24 - (20 + 10 / 60)) + 9 + 5 / 60,
        "B.2 launch-time": kernels_of_pass * 100 * 5e-3,
        "B.2 calls-of-tensors": max(math.ceil(300 / (2048 // 600)), math.ceil(400 / (2048 // 400))),
        "B.2 graphs-of-passes": kernels_of_pass + 99,
        "B.2 prompts-from-blocks": (262 * 16 - 3012 + 12) / 12,
        "B.3 one-variable": 1_048_576 - 4096,
    }
    assert constants == pytest.approx(expected, rel=3e-3)


SIDES = (8, 16, 32, 64, 128)
WARPS = [range(first, first + 32) for first in range(0, 256, 32)]


def test_constants_of_questions_about_gpu_programming_follow_from_their_formulas() -> None:
    constants = {
        f"5.{part} {question.id}": question.value
        for part in range(13)
        for question in CATALOG.exercise(f"5.{part}")[1].questions
        if isinstance(question.value, float)
    }
    t4, l4, a100 = (next(gpu for gpu in gpus.table() if gpu.gpu == name) for name in ("T4", "L4", "A100 40 GB SXM"))
    longest = max([lane * 40 % 32 for lane in range(32)].count(bank) for bank in range(32))
    sectors = sum(len({(24 * lane + field) // 32 for lane in range(32)}) for field in (0, 4, 8))
    lengths = [
        sum(size for size, of_kind in ((40, range(100)), (4, range(100, 256))) if {*warp} & {*of_kind}) for warp in WARPS
    ]
    ridge = 1e3 * a100.fp32 / a100.gb_per_s
    shrink = math.exp(-2)
    requests = {1: 30, 3: 20, 5: 25, 20: 25}  # sequences, and how many requests of 100 have them
    real = sum(size * count for size, count in requests.items())
    computed = [count * min(graph for graph in (1, 2, 4, 8, 16, 32) if graph >= size) for size, count in requests.items()]
    part = [1] * 64
    for d, warp in ((d, warp) for d in (1, 2) for warp in WARPS[:2]):
        sums = {lane: part[lane] + part[lane - d] for lane in warp if lane >= d}
        part = [sums.get(lane, number) for lane, number in enumerate(part)]
    h100 = next(gpu for gpu in gpus.table() if gpu.gpu == "H100 SXM")
    bytes_s, product_s = 4 / (1e9 * h100.gb_per_s), 2 * 128 / (1e12 * h100.fp16)
    expected = {
        "5.0 scan-at-a-seam": part[32],
        "5.0 lost-counts": len({lane // 32 for lane in (*range(10), *range(32, 37))}), "5.0 last-turn": 64 - 300 % 64,
        "5.1 idle-threads": math.ceil(10000 / 192) * 192 - 10000, "5.1 wide-rows": longest - 1,
        "5.1 particles": 32 * sectors / 32, "5.1 instructions": sum(lengths), "5.2 idle-share": 100 * 15 / (24 * 10 + 15),
        "5.2 clipped-step": 0.5 / (1 / 65536), "5.4 pageable-results": 10 * (5 + 4 + 5),
        "5.3 flat-block": 2 * 8 * 32 / (4 * (8 + 32)), "5.3 smallest-square": min(m for m in SIDES if m / 4 >= ridge),
        "5.3 tensor-share": 100 * 8 * a100.gb_per_s / (1e3 * a100.fp16), "5.4 slow-engine": 30 * 4 + (4 + 1 + 2) - 4,
        "5.6 loads-of-1504": 3 * (2048 // 128) / 4, "5.6 no-mma": 1e3 * 2 * 4096**3 / (1e12 * t4.fp32),
        "5.7 batch-at-the-ridge": 1e3 * l4.fp16 / l4.gb_per_s, "5.7 room-above": 3.2e-3 / (8 * 4096**2 / (1e9 * t4.gb_per_s)),
        "5.8 new-scores": math.ceil(57600000 / (4096 - 999)), "5.8 ring-of-4096": 4000 + 300 - 1 - 4096,
        "5.8 batch-and-cache": min((2**bits for bits in range(3, 9)), key=lambda n: 6 / n + (0.9 if 9 * n <= 1000 else 1.5)),
        "5.8 direct-up-to": max(m for m in range(1, 1001) if 2 * 1000 * m < 2 * 2.5 * 1024 * 10),
        "5.9 both-repaired": 1 / (1 / 1.25 + 1 / 1.6 - 1), "5.9 fewer-launches": 60 * 6 / 150,
        "5.9 left-alone": (25 + 10) / 10, "5.10 bfloat16-scores": 100 * (math.exp(2**4 / 2**7 / 2) - 1),
        "5.10 store-or-recompute": bytes_s / product_s, "5.11 work-of-a-step": 780 - 580,
        "5.11 gain-of-a-wait": 14_065 - 13_985, "5.5 padded": 100 * (1 - real / sum(computed)),
        "5.10 next-block": (32 * shrink + 10) / (3.5 * shrink + 1), "5.12 seven-batches": len({"7", "any size", "1"}),
        "5.12 graphs-of-a-function": len({"before .item()", "after .item()"}),
        "5.12 cost-of-a-list": 8 * (5 + 0.006) + (10_000 - 8) * 0.009,
        "5.11 four-buckets": 5 + 4 * 7 - 20, "5.2 self-and-total": 120 / (120 - 30 - 0.4), "5.12 fused-for-training": 9 / 4,
        "5.4 one-copy-engine": 20 * (3 + 2 + 3) / (20 * (3 + 3)), "5.5 pieces-of-a-graph": 33 * 8 + 32 * 5,
        "5.6 with-residual": ((4 + 2) + (2 + 2) + (2 + 2 + 1)) / (4 + 4), "5.7 seven-points": 100 * 8 / (8 + 6 * 12),
        "5.7 steps-in-one-pass": math.ceil(1e3 * t4.fp32 / t4.gb_per_s / (6 / 8)),
        "5.7 only-a-quarter": 500e-6 / max(35e6 / (1e9 * t4.gb_per_s), 2e9 / (1e12 * t4.fp32)),
        "5.10 block-for-a-third": min(2**bits for bits in range(4, 12) if 2 * 2**bits / 256 >= 3),
    }  # fmt: skip
    assert constants == pytest.approx(expected, rel=5e-3)


def test_constants_of_questions_about_training_at_scale_follow_from_their_formulas() -> None:
    constants = {
        f"6.{part} {question.id}": question.value
        for part in (1, 2, 4, 5, 7)
        for question in CATALOG.exercise(f"6.{part}")[1].questions
        if isinstance(question.value, float)
    }
    of_layer, width, words = 12 * 128**2 + 13 * 128, 768, 128_256
    outside = 512 * 128 + 128 * 128 + 2 * 128 + 129 * 512
    parameters = 12 * (12 * width**2 + 13 * width) + (words + 1024 + 2) * width + (width + 1) * words
    of_sequence = 4 * 1024 * (12 * width + 3 * words)
    of_ranks = [0, 0, 0]
    for size in (40, 30, 25, 20, 20, 15):
        of_ranks[of_ranks.index(min(of_ranks))] += size
    saved_rows = [range(first, first + 75) for first in range(0, 600, 75)]
    expected = {
        "6.1 layers-that-fit": (32 * MIB // 16 - outside) // of_layer, "6.1 with-copies": 0.5 * (16 + 2),
        "6.1 large-vocabulary": (14.6 * GIB - 12 * parameters) // of_sequence, "6.1 gated-block": 100 * (12 - 8 / 3) / 36,
        "6.2 billion": 1.3 * 16 / 4, "6.2 ranks-for-torch": min(n for n in range(1, 65) if 12 + (12 + 12 + 24) / n <= 21),
        "6.2 six-tensors": 8 * max(of_ranks), "6.2 wide-and-narrow": (8 * 2 + 4 * 4) / 8, "6.2 more-ranks": 8 * 8 / 64 + 22,
        "6.4 slices-of-a-large-model": 100 * 3 * 291 * 512 * 1500 / (12 * 8e9), "6.4 more-nodes": 14 * 405 / 100,
        "6.4 count-of-steps": math.sqrt(1 - 0.999) / (1 - 0.9),
        "6.4 three-from-eight": len([rows for rows in saved_rows if rows[0] < 400 and rows[-1] >= 200]),
        "6.5 common-step": 992 - 850, "6.5 four-times-the-nodes": 2 * math.sqrt(4 / 16),
        "6.7 weights-at-the-peak": 70 * 4 / 64 + 2 * 70 / 80 * 2, "6.7 visible-step": math.floor(1 / 512 / 0.0005) + 1,
        "6.7 ahead-saves": 100 * (1 - (2 / 50e9) / (2 / 50e9 + 2 * 6000 / 400e12)),
    }  # fmt: skip
    assert constants == pytest.approx(expected, rel=5e-3)


def iterate(singular: float, plan: tuple[float, float, float]) -> list[float]:
    """Return a singular value before and after each of 20 iterations with these coefficients."""
    a, b, c = plan
    values = [singular]
    for _ in range(20):
        values.append(a * values[-1] + b * values[-1] ** 3 + c * values[-1] ** 5)
    return values


def count_iterations(singular: float, plan: tuple[float, float, float]) -> int:
    """Return the iterations until a singular value is above 0.7 for the first time."""
    return next(count for count, value in enumerate(iterate(singular, plan)) if value > 0.7)


def test_constants_of_questions_about_systems_serving_and_frontier_training_follow_from_their_formulas() -> None:
    """Questions that are answered step by step, without a formula, are left out."""
    without_formula = {"7.1 three-g", "8.2 two-go-on", "8.4 by-hand", "9.3 longer-hop", "9.6 long-gather", "9.8 by-hand"}
    constants = {
        f"{number} {question.id}": question.value
        for number in ("7.1", "7.3", "7.4", "7.5", *(f"{module}.{part}" for module in (8, 9) for part in range(1, 9)))
        for question in CATALOG.exercise(number)[1].questions
        if isinstance(question.value, float) and f"{number} {question.id}" not in without_formula
    }
    l4 = next(gpu for gpu in gpus.table() if gpu.gpu == "L4")
    qwen_gb = 72.7 * (4 + 24 / 64) / 8
    quintic, hours = (3.4445, -4.7750, 2.0315), 24 * 54 * 16384
    expected = {
        "7.3 larger-than-memory": 900, "7.3 one-file-or-shards": 20 * min(3, 25 / 8) / (12 * 3),
        "7.3 wider-gap": math.ceil(math.log(0.25) / math.log(31 / 32)),
        "7.3 price-of-a-gap": (8 - (7 / 8) ** 32 * (32 + 8 - 1)) / (8 - (7 / 8) ** 16 * (16 + 8 - 1)),
        "7.4 pulled-again": 40 * (3.2 + 1.8),
        "7.4 bus-error": 8 * 2 * 64 * 3 * 224 * 224 * 4 / MIB, "7.5 rings-and-leaves": 24 / 13,
        "7.5 lookups": 60_000 // (2 * 1_280_000 / 600),
        "8.1 token-bytes-in-8-bits": 2 * 48 * 8 * 128, "8.1 ridge-of-8-bit-weights": math.ceil(989e12 / 4800e9 / 2),
        "8.1 attention-in-8-bits": 64 / 4 * 4 / 2, "8.1 one-more-request": 50 * 8 * (1 - 8 / 128) ** 8,
        "8.2 pages-of-64": 100 * 600 / (600 + 63 / 2),
        "8.2 fit-of-256": 40_000 // 16 // math.ceil(300 / 16) - 40_000 // 256 // math.ceil(300 / 256),
        "8.3 never-preempted": 105_600 // 2400, "8.3 one-long-pause": (198 * 70 + 1900) / 199,
        "8.4 three-in-turn": 3 * 40 + 2 * 20, "8.4 short-beginnings": 100 * (40 - 40 // 16 * 16) / 50,
        "8.4 since-noon": 100 * (63 - 60) / (104 - 80), "8.4 price-of-a-prompt": 6000 / (6000 - 0.9 * (5200 // 128 * 128)),
        "8.5 two-of-four": 1 + 0.7 + 0.35, "8.6 one-bit-less": (72 - qwen_gb + 72.7 / 8) / (72 - qwen_gb),
        "8.6 bits-of-q5-k": 5 + (6 + 6) / 32 + 2 * 16 / (8 * 32), "8.6 half-the-steps": 6 * (15 / 63) ** 2,
        "8.6 four-or-eight": 0.6 * 1e3 * l4.fp16 / (0.8 * l4.gb_per_s) / 2,
        "8.7 room-of-copies": 40e9 / (2 * 94 * 128 * 2) / 1e3,
        "8.7 rows-of-a-token": 8 * (1 - math.comb(56, 8) / math.comb(64, 8)),
        "8.7 last-layer": 2 * 8 * 128 * 2 * 8000 / 4 / 25e9 * 1e3, "8.8 goodput-of-a-log": 1.8 / (3.6 * 200 * 3600 / 1e6),
        "8.8 tpot-of-a-dashboard": 1e3 * (48 / 4 - 0.8) / 224, "8.8 twice-the-wait": 100 * 2 / 3,
        "9.1 tensor-of-a-trace": (126 / 2 + 1) * 1.5, "9.1 protocol": 30 * 5e-6 / (30 / 16 * (1 / 25e9 - 1 / 50e9)) / 1e6,
        "9.2 empty-places": 100 * sum(max(0, 40 - load) for load in (60, 34, 20, 14)) / (4 * 1.25 * 128 / 4),
        "9.2 hide": 6 * 3072 / 3, "9.2 two-subjects": 2 * 0.9 - 2 * (0.5 * 0.5 + 0.5 * 0.5),
        "9.3 hidden-grouped": 312e12 / 12.5e9 * 2 * 8 / 128, "9.3 heads-left": 8 / 4,
        "9.3 llama-bytes": 2 * 15 * 8 * 8192 * 128 * 2 / 1e6, "9.4 pair-saves": 30 - (147 / (16 / 2 - 1) - 20 + 3 * 8),
        "9.4 long-context": 100 * (10 + 19 - 3) / (10 + 19 + 3), "9.5 exponent-rule": 100 * (1 - 448 / 512),
        "9.5 kept-for-backward": 8192 * 16384 * (2 - 1 - 4 / 32) / 1e6, "9.6 four-micro-batches": 4 * 32 + 32,
        "9.6 two-times-17": (8 * 2 + 1 - 8 * 1) - 1,
        "9.6 half-the-batch": (3 + 32 * 8 * 0.5) / (32 * 3 + 4 * 0.5), "9.6 hidden-price": 300 + 60 * 20 / 132,
        "9.7 before-five": min((k * 1e-5 for k in range(1, 100)), key=lambda least: abs(iterate(least, quintic)[5] - 0.31)),
        "9.7 eighty-ranks": 100 * (1 - 120 / 80 / 2), "9.7 kept-rate": 1.8**4,
        "9.7 lift-small": count_iterations(0.0005, (1.5, -0.5, 0)) - count_iterations(0.0005, quintic),
        "9.7 cut-by-rows": math.sqrt(4),
        "9.7 unshared": 100 * 5 * 4096 / (1_048_576 / 64), "9.8 slow-stage": 100 * (1.2 * 26 / 30 - 1),
        "9.8 memory-of-yours": hours / 72 / 2000, "9.8 half-saved": 100 * (2 + 4) / 9,
        "9.8 average-mfu": 100 * 6 * 405e9 * 15.6e12 / (30.84e6 * 3600 * 989e12),
    }  # fmt: skip
    assert constants == pytest.approx(expected, rel=1e-2)
    assert [count_iterations(least, quintic) for least in (0.0015, 0.0016)] == [6, 5]


def test_how_long_the_gradients_of_a_resnet_50_take_over_a_network() -> None:
    text = read_part(HPC, "lesson-2-links.md")
    slow_ms, fast_ms = (2 * (2 - 1) / 2 * 102e6 * 8 / (gbit * 1e9) * 1e3 for gbit in (10, 400))
    assert f"The 102 MB of a ResNet-50 take {slow_ms:.0f} ms between two computers at 10 Gbit/s" in text
    assert f"and {fast_ms:.0f} ms at 400 Gbit/s" in text
    assert f"102 MB of gradients, which take {slow_ms:.0f} ms" in read_part("03-parallel-computing", "lesson-2-training.md")
    assert "Ethernet is enough" not in text
    (question,) = [question for question in CATALOG.exercise("7.2")[1].questions if question.id == "who-needs-nvlink"]
    assert f"ResNet-50 over 10 Gbit/s: {slow_ms:.0f} ms, too slow" in (question.look_for or "")


def test_the_v100_that_aws_still_has_costs_what_the_table_says() -> None:
    (name, kind), *duplicates = [
        (name, kind)
        for gpu in gpus.table()
        if gpu.gpu.startswith("V100") and not gpu.aws.get("retired")
        for name, kind in gpu.aws.get("types", {}).items()
    ]
    assert not duplicates
    assert kind["gpus"] == 8
    price = f"AWS rents them only eight at a time, for {float(kind['usd_per_hour']):.0f} dollars an hour ({name}) |"
    assert price in lesson("1")


def test_efa_begins_at_the_instances_that_the_table_has_with_it() -> None:
    types = {name: kind for gpu in gpus.table() for name, kind in gpu.aws.get("types", {}).items()}
    for family in ("g4dn", "g5", "g6"):
        of_family = [name for name in types if name.startswith(f"{family}.")]
        vcpus_without = [types[name]["vcpus"] for name in of_family if not types[name].get("efa")]
        first = min((name for name in of_family if types[name].get("efa")), key=lambda name: types[name]["vcpus"])
        assert types[first]["vcpus"] > max(vcpus_without)
        assert f"`{first}`" in read_part(HPC, DECISIONS)


ENGINES = "08-inference-engines"


def test_costs_of_tokens_are_those_of_the_cards() -> None:
    text, cards = read_part(ENGINES, "lesson-2-costs.md"), beside_the_script(ENGINES, "cards").CARDS
    for name, layers, heads, size in re.findall(r"\| ([\w.-]+) \| (\d+) \| (\d+ × \d+) \| ([\d,]+) \|", text):
        card = cards[name.lower()]
        assert (int(layers), heads) == (card.layers, f"{card.kv_heads} × {card.head_dim}"), name
        assert int(size.replace(",", "")) == 4 * card.layers * card.kv_heads * card.head_dim, name
    deepseek, oss, llama = (cards[name] for name in ("deepseek-v3", "gpt-oss-120b", "llama-3.1-8b"))
    latent = 2 * deepseek.layers * (deepseek.latent + deepseek.rope_dim)
    assert f"61 layers: {latent:,} bytes" in text
    assert f"you get {2 * latent:,}" in text
    of_layer = 4 * oss.kv_heads * oss.head_dim / 1e6
    windowed = of_layer * (18 * 8192 + 18 * oss.window)
    assert f"the cache takes {windowed:.0f} MB instead of {of_layer * 36 * 8192:.0f}" in text
    touched = [256 * (1 - (1 - 8 / 256) ** tokens) for tokens in (1, 64, 256)]
    assert f"touches {touched[0]:.0f} experts, 64 tokens touch {touched[1]:.0f}" in text
    assert touched[2] > 255
    absorbed, expanded = 2 * 128 * (2 * 512 + 64), 2 * 128 * (2 * 512 * 128 + 2 * 128 + 64)
    assert f"form has {absorbed / (2 * 576):.0f} operations for each byte" in text
    assert f"needs {expanded / absorbed:.0f} times as many" in text
    l4 = next(gpu for gpu in gpus.table() if gpu.gpu == "L4")
    assert f"so its ridge is {l4.ridge_flop_per_byte:.0f}" in text
    room, sequence = 0.9 * l4.memory_gb * 1e9 - 2 * llama.parameters, 4096 * 131_072
    assert f"leaves {room / 1e9:.2f} GB" in text
    assert f"{sequence / 1e9:.3f} GB: {room // sequence:.0f} sequences fit" in text
    assert f"3.81 GiB are {3.81 * 2**30 / 131_072 / 16:,.0f}" in text


def test_shares_that_prefix_caches_find_are_those_of_the_search() -> None:
    text, prefixes = read_part(ENGINES, "lesson-5-prefixes.md"), beside_the_script(ENGINES, "prefixes")
    requests = prefixes.make_requests(300, 8)
    for pages in (2000, 400, 300):
        percents = [prefixes.find_percent(requests, prefixes.search(requests, pages, 16, order)) for order in prefixes.ORDERS]
        assert f"| {pages:,} | " + " | ".join(f"{percent:.1f} %" for percent in percents) in text
    sizes = [prefixes.find_percent(requests, prefixes.find_beginnings(requests, size)) for size in (16, 64, 256)]
    assert "{:.1f} percent with 16 tokens, {:.1f} with 64, {:.1f} with 256.".format(*sizes) in text
    prompt, previous = 500 + 2 * (60 + 140) + 60, 500 + 2 * (60 + 140)
    assert f"500 + 2 × 200 + 60 = {prompt} tokens. The first {previous} are those of turn 2" in text
    assert f"they fill {previous // 16} whole pages of 16, which are {previous // 16 * 16} tokens" in text
    assert f"engine computes {prompt - previous // 16 * 16} instead of {prompt}" in text
