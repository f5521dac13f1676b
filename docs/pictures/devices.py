"""The pictures of modules 0, 1, 2 and 4: a step of training, the ranks of nodes, the memory of a GPU, queues, prices."""

from __future__ import annotations

import json
import math
from pathlib import Path

from docs.pictures.canvas import Canvas

SHEETS = json.loads((Path(__file__).parents[2] / "exercises/shared/gpus.json").read_text(encoding="utf-8"))
GPUS = {row["gpu"]: row for row in SHEETS["gpus"]}


def draw_step() -> Canvas:
    """Draw the four parts of a training step, in a circle."""
    picture = Canvas(
        "One step of training",
        "Four boxes in a row: forward makes a guess and the loss says how wrong it is; zero_grad empties the gradients; "
        "backward computes how each parameter would have made the loss smaller; step changes the parameters a little. "
        "An arrow leads back to the next batch.",
        150,
    )
    names = [("forward", "guess, and the loss", "a"), ("zero_grad", "old gradients out", "e")]
    names += [("backward", "a gradient each", "c"), ("step", "a little that way", "b")]
    for place, (name, words, kind) in enumerate(names):
        x = 20 + place * 185
        picture.box(x, 30, 150, 40, kind, name)
        picture.note(x + 75, 90, words, anchor="middle")
        if place < 3:
            picture.line(x + 150, 50, x + 181, 50, arrow=True)
    picture.line(650, 100, 650, 122)
    picture.line(650, 122, 95, 122)
    picture.line(95, 122, 95, 98, arrow=True)
    picture.note(372, 140, "the next batch", anchor="middle")
    return picture


def draw_ranks(nodes: int = 3, processes: int = 4) -> Canvas:
    """Which rank each process of each node is."""
    picture = Canvas(
        "Ranks of nodes and processes",
        f"{nodes} nodes side by side with {processes} processes each. The rank of a process is the node's number times "
        f"{processes} plus its local rank: node 1 has the ranks {processes} to {2 * processes - 1}. All meet at node 0.",
        190,
    )
    for node in range(nodes):
        x = 20 + node * 246
        picture.box(x, 34, 228, 100, "empty")
        picture.label(x + 10, 54, f"node {node}: NODE_RANK={node}")
        for local in range(processes):
            picture.box(x + 10 + local * 53, 66, 48, 36, "a", f"{node * processes + local}")
            picture.note(x + 34 + local * 53, 120, f"local {local}", anchor="middle")
    picture.heading(20, 24, f"WORLD_SIZE = {nodes} x {processes} = {nodes * processes}")
    words = f"RANK = NODE_RANK x {processes} + LOCAL_RANK; MASTER_ADDR and MASTER_PORT are those of rank 0, everywhere"
    picture.label(20, 160, words)
    return picture


def draw_memory() -> Canvas:
    """From registers to the host's memory, by size and by bandwidth, of a T4."""
    gpu = GPUS["T4"]
    sms, ghz = gpu["sms"], gpu["boost_ghz"]
    registers, shared = sms * 256 / 1024, sms * 64 / 1024  # MB: 256 KB of registers and 64 KB of shared memory per SM
    shared_gb_per_s = sms * SHEETS["shared_bytes_per_clock"][gpu["capability"]] * ghz
    rows = [
        ("registers", registers, None, "a"),
        ("shared memory", shared, shared_gb_per_s, "e"),
        ("L2 cache", gpu["l2_mb"], None, "c"),
        (f"GPU memory ({gpu['memory']})", gpu["memory_gb"] * 1024, gpu["gb_per_s"], "b"),
        ("host, over PCIe 3 x16", 16 * 1024, 15.75, "d"),
    ]
    picture = Canvas(
        "The memories of a T4",
        "Five bars on a logarithmic axis, from the smallest and nearest memory to the largest and farthest: registers "
        f"{registers:.0f} MB, shared memory {shared:.1f} MB at {shared_gb_per_s / 1000:.1f} TB/s, L2 cache "
        f"{gpu['l2_mb']} MB, GPU memory {gpu['memory_gb']} GB at {gpu['gb_per_s']} GB/s, the host's memory at 15.75 GB/s.",
        232,
    )
    left, scale = 176, 380 / math.log10(16 * 1024)
    for row, (name, mb, gb_per_s, kind) in enumerate(rows):
        y = 20 + row * 36
        size = f"{mb:.1f} MB" if mb < 1024 else f"{mb / 1024:.0f} GB"
        picture.label(8, y + 18, name)
        picture.box(left, y, max(30.0, math.log10(mb) * scale), 26, kind)
        words = (
            size
            if gb_per_s is None
            else f"{size}, {gb_per_s / 1000:.1f} TB/s"
            if gb_per_s >= 1000
            else f"{size}, {gb_per_s:g} GB/s"
        )
        picture.label(left + max(30.0, math.log10(mb) * scale) + 8, y + 18, words)
    picture.note(
        8, 222, "Size on a logarithmic axis. Peaks from the data sheet and the clock, none measured. Host: g4dn.xlarge."
    )
    return picture


def draw_queue() -> Canvas:
    """Draw what the processor does while the GPU works, and where a clock must be stopped."""
    picture = Canvas(
        "The queue between processor and GPU",
        "Two rows over time. The processor puts four kernels into a queue in a moment and goes on; the GPU computes them one "
        "after the other, much longer. A clock that is stopped when the last call has returned shows the queueing only. A "
        "clock that is stopped after synchronize shows the work.",
        212,
    )
    picture.label(8, 56, "processor")
    picture.label(8, 116, "GPU")
    for call in range(4):
        picture.box(90 + call * 26, 38, 22, 28, "a", f"{call + 1}")
        picture.box(104 + call * 140, 98, 136, 28, "c", f"kernel {call + 1}")
    picture.box(200, 38, 462, 28, "empty", "synchronize: waits")
    picture.line(90, 30, 90, 150, "line")
    picture.note(96, 148, "start")
    picture.line(196, 30, 196, 176, "curve sd")
    picture.label(202, 172, "wrong: the calls have returned, but the work is not done")
    picture.line(664, 30, 664, 176, "curve sc")
    picture.label(660, 196, "right: after synchronize", anchor="end")
    return picture


def draw_answer(tokens: int = 8) -> Canvas:
    """The times of one answer: the wait for its first token, and the gaps between the others."""
    picture = Canvas(
        "The times of one answer",
        "One answer over time. First it waits in the queue, then comes a long bar, prefill: all tokens of the prompt at once. "
        f"At its end the first token arrives; the time until then is TTFT. Then {tokens - 1} short bars of equal length, "
        "decode: each reads all weights and brings one token. The time from one token to the next is TPOT.",
        176,
    )
    sent, prefill, first, gap = 20, 84, 284, 64
    picture.box(sent, 40, prefill - sent - 2, 32, "empty", "queue")
    picture.box(prefill, 40, first - prefill - 2, 32, "a", "prefill: the whole prompt")
    for token in range(1, tokens):
        picture.box(first + (token - 1) * gap, 40, gap - 2, 32, "c", "decode")
    for token in range(tokens):
        picture.dot(first + token * gap - 1, 92, "d")
        picture.note(first + token * gap - 1, 114, f"token {token + 1}", anchor="middle")
    picture.label(sent, 26, "sent")
    picture.line(sent, 136, first - 2, 136, arrow=True)
    picture.heading(sent + 90, 160, "TTFT")
    picture.line(first, 136, first + gap - 2, 136, arrow=True)
    picture.heading(first + 8, 160, "TPOT")
    picture.note(first + gap + 40, 160, "time of n tokens = TTFT + (n - 1) x TPOT")
    return picture


def draw_three_answers() -> Canvas:
    """Draw what allocated, reserved and in use mean."""
    picture = Canvas(
        "Three answers to one question",
        "Nested bars over the memory of a GPU. Inside is what tensors hold (allocated), around it what PyTorch keeps for later "
        "(reserved), around that what the driver counts as in use: with the context and other processes. The rest is free.",
        150,
    )
    for y, wide, kind, words in (
        (20, 720, "empty", ""),
        (20, 480, "d", "in use, says the driver: also context, other processes"),
        (58, 380, "b", "reserved: kept by PyTorch for its next tensors"),
        (96, 240, "a", "allocated: held by your tensors"),
    ):
        picture.box(20, y, wide, 30, kind, words)
    picture.label(620, 40, "free", anchor="middle")
    picture.note(20, 144, "del moves the first border, empty_cache the second, only the end of the process the third.")
    return picture


def draw_waiting(jobs: int = 5, gpus: int = 3) -> Canvas:
    """Five jobs on three GPUs: who waits, and for how long."""
    picture = Canvas(
        f"{jobs} jobs on {gpus} GPUs",
        f"A chart of {jobs} jobs over time. The first {gpus} run at once; the others are PENDING with the reason Resources "
        "until one ends, and then run. The last one waits as long as one job takes.",
        226,
    )
    for job in range(jobs):
        y = 20 + job * 34
        picture.label(8, y + 18, f"job {job + 1}")
        begin = job // gpus
        if begin:
            picture.box(80, y, 300 * begin, 26, "empty", "PENDING (Resources)")
        picture.box(80 + 300 * begin, y, 298, 26, "c", f"RUNNING on node{job % gpus + 1}")
    picture.line(80, 196, 700, 196, arrow=True)
    picture.note(80, 214, "submitted")
    picture.note(380, 214, "the first have ended", anchor="middle")
    return picture


def draw_srun(nodes: int = 3) -> Canvas:
    """What runs once and what runs on every node of a job."""
    last = f"{nodes - 1} on node{nodes}"
    picture = Canvas(
        "What srun starts",
        f"A batch script runs once, on node1, the first of {nodes} nodes. One line in it, srun, starts a process on each node: "
        f"SLURM_PROCID {', '.join(f'{node} on node{node + 1}' for node in range(nodes - 1))} and {last}. MASTER_ADDR is node1 "
        "for all of them.",
        224,
    )
    for node in range(nodes):
        x = 20 + node * 246
        picture.box(x, 20, 228, 160, "empty")
        picture.label(x + 10, 40, f"node{node + 1}")
        picture.box(x + 10, 130, 208, 36, "a", f"SLURM_PROCID={node}")
    picture.box(30, 54, 208, 36, "c", "batch script: runs once")
    picture.line(134, 90, 134, 126, arrow=True)
    picture.line(134, 108, 134 + (nodes - 1) * 246, 108)
    for node in range(1, nodes):
        picture.line(134 + node * 246, 108, 134 + node * 246, 126, arrow=True)
    picture.label(146, 104, "srun")
    picture.note(20, 200, "MASTER_ADDR=node1 for all three. The green box fills in a variable in double quotes; each blue one")
    picture.note(20, 214, "fills in its own in single quotes.")
    return picture


def draw_roofline() -> Canvas:
    """Draw what a kernel can reach at most, by how many operations it makes with each byte, on three GPUs."""
    picture = Canvas(
        "Rooflines of three GPUs",
        "Both axes are logarithmic: operations per byte, from a quarter to 4,096, and TFLOP/s. Each GPU has a slope, its "
        "memory bandwidth, and a flat roof, its peak for half precision: T4 320 GB/s and 65, L4 300 GB/s and 121, A100 and 312 "
        "TFLOP/s. Adding vectors is far down the slope; a product of large matrices is under the flat roof.",
        330,
    )
    left, top, wide, high = 70, 20, 650, 250
    low_x, high_x, low_y, high_y = -2, 12, -2, 3  # powers of 2 for intensity, powers of 10 for TFLOP/s

    def at(intensity: float, tflops: float) -> tuple[float, float]:
        x = left + (math.log2(intensity) - low_x) / (high_x - low_x) * wide
        return x, top + high - (math.log10(tflops) - low_y) / (high_y - low_y) * high

    for power in range(low_y, high_y + 1):
        _, y = at(1, 10**power)
        picture.line(left, y, left + wide, y, "grid")
        picture.note(left - 8, y + 4, f"{10**power:g}", anchor="end")
    for power in range(low_x, high_x + 1, 2):
        x, _ = at(2**power, 1)
        picture.note(x, top + high + 18, f"{2**power:g}", anchor="middle")
    for kind, gpu in zip(
        "abc", [GPUS["T4"], GPUS["L4"], next(row for name, row in GPUS.items() if name.startswith("A100"))], strict=True
    ):
        peak, slope = gpu["fp16"], gpu["gb_per_s"] / 1000
        points = [at(2**low_x, slope * 2**low_x), at(peak / slope, peak), at(2**high_x, peak)]
        picture.curve(points, f"s{kind}")
        x, y = points[2]
        above = -6 if gpu["gpu"] != "T4" else 14
        picture.label(x - 4, y + above, f"{gpu['gpu']}: {peak:g} TFLOP/s", anchor="end")
    for words, intensity, tflops in (
        ("adding vectors", 1 / 3, 0.32 / 3),
        ("decoding, batch 1", 1, 0.32),
        ("product of 1024²", 341, 65),
    ):
        x, y = at(intensity, tflops)
        picture.dot(x, y, "d")
        picture.label(x + 8, y + 16, words)
    picture.note(left + wide / 2, 308, "operations per byte moved", anchor="middle")
    picture.note(8, 324, "TFLOP/s at most, half precision; peaks from the data sheets, dots by arithmetic for a T4.")
    return picture


def draw_batch() -> Canvas:
    """What a larger batch gives the server and costs each request, from the two ceilings of opt-1.3b on a T4."""
    weights_gb, parameters, sustained_tflops = 2.63, 1.3e9, 24  # sustained: what a warm T4 reaches in float16
    reading_ms = weights_gb / GPUS["T4"]["gb_per_s"] * 1e3
    computing_ms = 2 * parameters / (sustained_tflops * 1e12) * 1e3  # for each request of the batch
    turn = reading_ms / computing_ms
    picture = Canvas(
        "What a larger batch gives and costs",
        "Two curves over the batch size, from 1 to 256, for opt-1.3b on a T4. Tokens a second of all requests rise in "
        f"proportion up to a batch of about {turn:.0f} and are flat from there on. The time per token of one request is flat "
        "up to the same batch and rises in proportion from there on.",
        280,
    )
    top, high, wide = 40, 180, 280
    sizes = [2 ** (step / 4) for step in range(33)]
    step_ms = [max(reading_ms, size * computing_ms) for size in sizes]
    rates = [size / ms * 1e3 for size, ms in zip(sizes, step_ms, strict=True)]

    def draw_panel(left: float, title: str, heights: list[float], ticks: list[tuple[float, str]], kind: str) -> None:
        picture.heading(left, 24, title)
        for height, words in ticks:
            picture.line(left, top + high * (1 - height), left + wide, top + high * (1 - height), "grid")
            picture.note(left - 6, top + high * (1 - height) + 4, words, anchor="end")
        for power in range(0, 9, 2):
            picture.note(left + power / 8 * wide, top + high + 18, f"{2**power}", anchor="middle")
        points = [(left + math.log2(size) / 8 * wide, top + high * (1 - y)) for size, y in zip(sizes, heights, strict=True)]
        picture.curve(points, kind)

    draw_panel(
        60,
        "tokens a second, all requests",
        [(math.log10(rate) - 2) / 2 for rate in rates],
        [(0, "100"), (0.5, "1,000"), (1, "10,000")],
        "sa",
    )
    draw_panel(
        440, "ms per token, one request", [ms / 30 for ms in step_ms], [(0, "0"), (1 / 3, "10"), (2 / 3, "20"), (1, "30")], "sd"
    )
    picture.note(380, 256, "batch size", anchor="middle")
    picture.note(8, 274, "By formula: the longer of reading 2.63 GB at 320 GB/s and computing at 24 TFLOP/s. None measured.")
    return picture


def draw_price() -> Canvas:
    """Draw what a million tokens cost by how much of the time the GPU is used."""
    price, speed = 0.526, 1000.0  # dollars an hour of g4dn.xlarge; tokens a second, assumed
    picture = Canvas(
        "You pay for idle hours",
        "A falling curve: the price of a million tokens over the share of time in which the GPU works, for a T4 at 0.526 "
        "dollars an hour and 1,000 tokens a second. At full use it is 0.15 dollars, at half use twice as much, at a tenth ten "
        "times as much.",
        280,
    )
    left, top, wide, high = 70, 20, 640, 200
    full = price / (speed * 3600) * 1e6

    def at(percent: float) -> tuple[float, float]:
        return left + percent / 100 * wide, top + high - min(1.0, full * 100 / percent / 1.6) * high

    for dollars in (0.0, 0.4, 0.8, 1.2, 1.6):
        y = top + high - dollars / 1.6 * high
        picture.line(left, y, left + wide, y, "grid")
        picture.note(left - 8, y + 4, f"${dollars:.1f}", anchor="end")
    picture.curve([at(percent) for percent in range(10, 101)], "sa")
    for percent in (10, 25, 50, 100):
        x, y = at(percent)
        picture.dot(x, y, "d")
        picture.label(min(x + 6, 670), y - 6, f"${full * 100 / percent:.2f}")
        picture.note(min(x, 730), top + high + 18, f"{percent} %", anchor="middle")
    picture.note(left + wide / 2, 258, "of the time the GPU works", anchor="middle")
    picture.note(8, 274, "By formula: g4dn.xlarge at $0.526 an hour, 1,000 tokens a second assumed.")
    return picture
