"""FFT pipeline: find a known pulse in many noisy signals, and then in one long signal, with transforms of the right length.

You will learn    why a length of 1123 takes several times as long as 1125; why a transform wraps around; what a batch saves;
                  how long the pieces of a long signal should be
You will produce  the time per signal by length and by batch; your filter compared with the slow one and the direct sum; a long
                  signal in pieces of several lengths, and as a whole
Run it            python fft_pipeline.py --signals 512 --samples 1000 --batch-sizes 1,8,64     (one core of a CPU)
                  python fft_pipeline.py                                                       (a GPU)
Your part         my_filter.py: repair matched_filter, which is right but slow; my_long_filter.py: filter in pieces
Reading           modules/05-gpu-programming/lesson-10-transforms.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import fft_copies
import gpus
import my_filter
import my_long_filter
import torch
import transforms
from bench import say
from transforms import (
    TransformCounter,
    correlate_directly,
    fewest_operations,
    find_fast_length,
    largest_prime_factor,
    operations_per_score,
    score_error,
)

SEED, ROUNDS, COMPARED, MAX_PRODUCTS, LONG_ON_GPU = 0, 3, 64, 10**9, 64
OF_OWN_BEST, PEAK_TRIES = 1.05, 20  # a figure may be 1.05 times the best product, which is measured again up to 20 times
AWKWARD = 100  # a length with a prime factor of this size or more is surely slow

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a matched filter over many signals by FFT")
parser.add_argument("--signals", type=int, default=16384, help="how many signals are searched for the pulse")
parser.add_argument("--samples", type=int, default=4096, help="length of each signal")
parser.add_argument("--template", type=int, default=124, help="length of the pulse")
parser.add_argument("--batch-sizes", type=str, default="1,8,64,512,4096", help="signals in one call, separated by commas")
parser.add_argument("--long-samples", type=int, default=262144, help="length of the long signal")
parser.add_argument("--plan-cache", type=int, default=16, help="how many plans cuFFT keeps, on a GPU; 0 keeps none")
args = parser.parse_args()
try:
    batch_sizes = sorted({int(size) for size in args.batch_sizes.split(",")})
except ValueError:
    parser.error(f"--batch-sizes {args.batch_sizes}: whole numbers with commas, such as 1,8,64")
if args.signals < 16 or args.template < 8 or args.plan_cache < 0:
    parser.error("--signals must be at least 16, --template at least 8, and --plan-cache at least 0")
if args.template > args.samples:
    parser.error(f"--template {args.template} is longer than a signal: at most --samples {args.samples}")
if max(args.samples, args.long_samples) * args.template > MAX_PRODUCTS:
    parser.error(
        f"--samples times --template, and --long-samples times --template, must be at most {MAX_PRODUCTS:,}, "
        "because the direct sum would take minutes"
    )
if args.long_samples < 4 * args.template:
    parser.error(f"--long-samples {args.long_samples} must be at least 4 times --template {args.template}")
if not 1 <= batch_sizes[0] <= batch_sizes[-1] <= args.signals:
    parser.error(f"--batch-sizes {args.batch_sizes}: each must be from 1 to --signals {args.signals}")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
gpu = gpus.find(torch.cuda.get_device_name(device)) if on_gpu else None
if on_gpu:
    torch.backends.cuda.cufft_plan_cache[0].max_size = args.plan_cache
else:
    torch.set_num_threads(1)  # the comparison is on one core
    say("No GPU here: these are times of one core of this computer. (local mode)")
recording = transforms.record(args.signals, args.samples, args.template, SEED)
signals, template = recording.signals.to(device), recording.template.to(device)
plain = args.samples + args.template - 1  # room for every score without wrap-around
fast, power = find_fast_length(plain), 1 << (plain - 1).bit_length()
refused_count = 0


def filter_slowly(these: torch.Tensor, pulse: torch.Tensor) -> torch.Tensor:
    """Return the scores as the provided part computes them: it transforms the template again for each signal, at any length."""
    length = these.shape[1] + pulse.shape[0] - 1
    scores = []
    for signal in these:
        template_spectrum = torch.fft.rfft(pulse, length).conj()
        scores.append(torch.fft.irfft(torch.fft.rfft(signal, length) * template_spectrum, length)[: these.shape[1]])
    return torch.stack(scores)


def filter_on_a_ring(these: torch.Tensor, pulse: torch.Tensor) -> torch.Tensor:
    """Return the scores without padding. This is fast, but wrong at the end of each signal."""
    samples = these.shape[1]
    return torch.fft.irfft(torch.fft.rfft(these) * torch.fft.rfft(pulse, samples).conj(), samples)


def transform_and_back(rows: torch.Tensor, spectrum: torch.Tensor) -> torch.Tensor:
    """Return each row after a transform, a product with `spectrum`, and the inverse transform, as for one piece of a signal."""
    return torch.fft.irfft(torch.fft.rfft(rows) * spectrum, rows.shape[1])


def sum_directly(these: torch.Tensor, pulse: torch.Tensor) -> torch.Tensor:
    """Return the scores by their definition, in single precision."""
    padded = torch.nn.functional.pad(these, (0, pulse.shape[0] - 1))
    return torch.nn.functional.conv1d(padded[:, None], pulse[None, None])[:, 0]


def seconds_of(call: Callable[[], object], budget_s: float = 0.06) -> float:
    """Return the shortest time of many warm calls. Other programs on the computer can only make a call slower."""
    return min(bench.measure(call, device, budget_s=budget_s if not on_gpu else 0.3))


def limit_gflops(gflop_per_s: float) -> float | None:
    """Return the figure. If the device cannot compute that fast, count the figure as refused and return None.

    On a CPU, measure the limit again before refusing a figure: the computer may have been busy during the first measurement.
    """
    global refused_count, own_best
    for _ in range(0 if on_gpu else PEAK_TRIES):
        if gflop_per_s <= OF_OWN_BEST * own_best:
            break
        own_best = max(own_best, measure_product_gflops())
    ceiling = (gpu.fp32 * 1e3 if gpu else None) if on_gpu else OF_OWN_BEST * own_best
    possible = ceiling is None or gflop_per_s <= ceiling
    refused_count += not possible
    return gflop_per_s if possible else None


def find_percent(scores: torch.Tensor) -> float:
    """Return the percentage of the signals whose largest score is where the pulse is."""
    return 100 * (scores.argmax(dim=1).cpu() == recording.places).float().mean().item()


def measure_product_gflops(n: int = 512) -> float:
    """Return the highest GFLOP/s of many matrix products, which serves as the device's limit."""
    a, b = torch.randn(n, n, device=device), torch.randn(n, n, device=device)
    return 2 * n**3 / min(bench.measure(lambda: a @ b, device, budget_s=0.1)) / 1e9


own_best = measure_product_gflops()
say(f"{args.signals:,} signals of {args.samples:,} samples, a pulse of {args.template}: {plain:,} points hold all scores")

# --- the length alone, alternating: a prime (or whatever comes out), the shortest fast one, a power of two --------------------
some = signals[: min(COMPARED, args.signals)]
lengths = list(dict.fromkeys([plain, fast, power]))
turns: dict[int, list[float]] = {length: [] for length in lengths}
for _ in range(ROUNDS):
    for length in lengths:
        turns[length].append(seconds_of(lambda length=length: torch.fft.rfft(some, length)))
by_length = [{"length": length, "points": f"{length:,}", "largest_prime_factor": largest_prime_factor(length),
              "us_per_signal": 1e6 * min(turns[length]) / len(some)} for length in lengths]  # fmt: skip
length_us = {row["length"]: row["us_per_signal"] for row in by_length}
titles = {"points": "points", "largest_prime_factor": "largest prime factor", "us_per_signal": "µs per signal"}
bench.say_table(by_length, titles)

# --- the ways: first if they are right, then their times, alternating ---------------------------------------------------------
right = correlate_directly(some.cpu(), template.cpu()).to(device)
ways: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "as delivered": filter_slowly, "on a ring": filter_on_a_ring, "direct sum": sum_directly,
}  # fmt: skip
broken, yours, counter = None, None, TransformCounter()
try:
    my_filter.matched_filter(signals[:1].clone(), template.clone())
    signals_copy = signals.clone()
    with counter:
        yours = my_filter.matched_filter(signals_copy, template.clone())
    if not isinstance(yours, torch.Tensor) or yours.shape != signals.shape or yours.is_complex():
        raise TypeError(f"matched_filter must return real scores of shape {tuple(signals.shape)}")
    if not torch.equal(signals_copy, signals):
        raise ValueError("matched_filter changed the signals that it was given")
    ways["yours"] = my_filter.matched_filter
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    broken, yours = f"{type(error).__name__}: {error}"[:500], None
    traceback.print_exc(file=sys.stdout)
delivered_counter = TransformCounter()
with delivered_counter:
    filter_slowly(signals[:16], template)
times: dict[str, list[float]] = {way: [] for way in ways}
for _ in range(ROUNDS):
    for way, function in ways.items():
        function(some, template)  # warm: plans and memory
        seconds = bench.time_each(lambda function=function: function(signals, template), device, 1)
        times[way] += seconds
rows = []
for way, function in ways.items():
    scores = yours if way == "yours" and yours is not None else function(signals, template)
    us = 1e6 * min(times[way]) / args.signals
    rows.append({"way": way, "us_per_signal": us, "signals_per_s": 1e6 / us, "error": score_error(scores[: len(some)], right),
                 "found_percent": find_percent(scores)})  # fmt: skip
by_way = {row["way"]: row for row in rows}
ring_wrong = (filter_on_a_ring(some, template).double() - right).abs() > 1e-4 * right.abs().max()
titles = {"way": "way", "us_per_signal": "µs per signal", "error": "error, of the largest", "found_percent": "% found"}
bench.say_table(rows, titles)

# --- by batch: the transform alone, and your filter ---------------------------------------------------------------------------
by_batch = []
for size in batch_sizes:
    batch = signals[:size]
    transform_s = seconds_of(lambda batch=batch: torch.fft.rfft(batch, fast))
    filter_s = seconds_of(lambda batch=batch: my_filter.matched_filter(batch, template)) if "yours" in ways else None
    gflop_per_s = limit_gflops(size * transforms.real_transform_flops(fast) / transform_s / 1e9)
    by_batch.append({
        "batch": size, "us_per_signal": 1e6 * transform_s / size, "gflop_per_s": gflop_per_s,
        "transforms_per_s": size / transform_s, "filter_us_per_signal": filter_s and 1e6 * filter_s / size,
        "filtered_per_s": filter_s and size / filter_s,
    })  # fmt: skip
titles = {
    "batch": "batch",
    "us_per_signal": "µs per transform",
    "gflop_per_s": "GFLOP/s",
    "filter_us_per_signal": "your filter",
}
bench.say_table(by_batch, titles)

# --- one long signal: as a whole, and in pieces of several lengths ------------------------------------------------------------
long_count = LONG_ON_GPU if on_gpu else 1
long_signals = torch.randn(long_count, args.long_samples, generator=torch.Generator().manual_seed(SEED)).to(device)
whole = find_fast_length(args.long_samples + args.template - 1)
piece_lengths, length = [], 1 << (2 * args.template - 1).bit_length()
while 2 * length <= args.long_samples:
    piece_lengths, length = [*piece_lengths, length], 4 * length
piece_turns: dict[int, list[float]] = {length: [] for length in [*piece_lengths, whole]}
for _ in range(ROUNDS):
    for length, turns_of_length in piece_turns.items():
        blocks = torch.zeros(long_count * max(1, args.long_samples // length), length, device=device)
        spectrum = torch.fft.rfft(template, length).conj()
        seconds = seconds_of(lambda blocks=blocks, spectrum=spectrum: transform_and_back(blocks, spectrum))
        turns_of_length.append(seconds / (len(blocks) * (length - args.template + 1)))  # per score that does not wrap
fewest = fewest_operations(args.template)
by_piece = [{"points": length, "way": "pieces" if length < whole else "the whole signal", "ns_per_score": 1e9 * min(turns),
             "operations_per_score": operations_per_score(length, args.template)}
            for length, turns in piece_turns.items()]  # fmt: skip
long_broken, own_points, own_long, long_error, long_counter = None, None, None, None, TransformCounter()
try:
    own_points = my_long_filter.choose_points(args.template)
    with long_counter:
        own_scores = my_long_filter.filter_in_pieces(long_signals.clone(), template.clone(), own_points)
    long_error = score_error(own_scores[:1], correlate_directly(long_signals[:1].cpu(), template.cpu()).to(device))
    own_s = seconds_of(lambda: my_long_filter.filter_in_pieces(long_signals, template, own_points))
    own_long = {"points": own_points, "way": "yours", "ns_per_score": 1e9 * own_s / long_signals.numel(),
                "operations_per_score": operations_per_score(own_points, args.template)}  # fmt: skip
    by_piece.append(own_long)
except NotImplementedError as error:
    say(f"not written yet: my_long_filter.py ({error})")
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    long_broken = f"{type(error).__name__}: {error}"[:500]
    traceback.print_exc(file=sys.stdout)
by_piece.sort(key=lambda row: row["points"])
ideal_ns = min(row["ns_per_score"] for row in by_piece)
for row in by_piece:
    row |= {"times_counted": row["operations_per_score"] / fewest, "times_measured": row["ns_per_score"] / ideal_ns}
by_piece_way = {row["way"]: row for row in by_piece if row["way"] != "pieces"}
titles = {"way": "way", "points": "points", "operations_per_score": "FLOP per score", "ns_per_score": "ns per score"}
bench.say_table(by_piece, titles)
drawn_pieces = [{"curve": "operations", "points": row["points"], "times": row["times_counted"]} for row in by_piece]
drawn_pieces += [{"curve": "time, yours" if row["way"] == "yours" else "time", "points": row["points"],
                  "times": row["times_measured"]} for row in by_piece]  # fmt: skip
near_1024 = min(piece_lengths or [whole], key=lambda length: abs(length - 1024))

# --- the record ------------------------------------------------------------------------------------------------------------
best = min(by_batch, key=lambda row: row["us_per_signal"])
own_way = by_way.get("yours", {})
sums = by_way["direct sum"]["us_per_signal"]
metrics = {
    **vars(args), "gpu": gpu.gpu if gpu else None, "ways": rows, "by_length": by_length, "by_batch": by_batch,
    "by_piece": by_piece, "drawn_pieces": drawn_pieces,
    "pieces_broken": long_broken or ("no error" if own_long else None), "pieces_error": long_error,
    "pieces_points": own_points,
    "pieces_operations_times": operations_per_score(own_points, args.template) / fewest if own_long else None,
    "pieces_calls": long_counter.forward_calls + long_counter.inverse_calls if own_long else None,
    "pieces_speedup": None if on_gpu or not own_long
    else by_piece_way["the whole signal"]["ns_per_score"] / own_long["ns_per_score"],
    "whole_times": min(piece_turns[whole]) / min(piece_turns[near_1024]),
    "whole_operations_times": operations_per_score(whole, args.template) / operations_per_score(near_1024, args.template),
    "refused": refused_count, "plain_length": plain, "fast_length": fast, "length_speedup": length_us[plain] / length_us[fast],
    "awkward_times": length_us[plain] / length_us[fast] if largest_prime_factor(plain) >= AWKWARD else None,
    "delivered_error": by_way["as delivered"]["error"],
    "delivered_transforms": delivered_counter.forward_rows // 16 * args.signals,
    "ring_error": by_way["on a ring"]["error"], "ring_wrong_scores": int(ring_wrong.any(dim=0).sum()),
    "ring_found_percent": by_way["on a ring"]["found_percent"], "best_batch": best["batch"],
    "filter_broken": broken or "no error", "error": own_way.get("error"), "found_percent": own_way.get("found_percent"),
    "speedup": by_way["as delivered"]["us_per_signal"] / own_way["us_per_signal"] if own_way else None,
    "times_direct": sums / own_way["us_per_signal"] if own_way else None,
    "transform_length": max(counter.lengths, default=None) if own_way else None,
    "largest_prime_factor": max(map(largest_prime_factor, counter.lengths), default=None) if own_way else None,
    "template_transforms": counter.template_transforms if own_way and counter.inverse_rows else None,
    "transforms": counter.forward_rows if own_way else None,
    "calls": counter.forward_calls + counter.inverse_calls if own_way else None,
    "signals_per_call": counter.inverse_rows / counter.inverse_calls if own_way and counter.inverse_calls else None,
    **fft_copies.measure_copies(recording, my_filter.matched_filter if own_way else filter_slowly, fast, device),
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
for part_file in (Path(my_filter.__file__), Path(my_long_filter.__file__)):
    if part_file.parent.resolve() != out.resolve():
        shutil.copyfile(part_file, out / part_file.name)  # the measured file, kept with the figures
path = bench.write_metrics("fft_pipeline/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
