"""The cases of `python -m benchmarks gpu`: one or more for each exercise, and the figures that are compared with ceilings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One exercise, run by hand.

    `settings`: values that replace its defaults on a GPU.
    `simulated`: values that replace them without a GPU.
    `gpus`: the minimum number of GPUs.
    `limit_s`: its time limit.
    `result`: the file with its measurements.
    `tasks`: the number of tasks of a job array.
    `variant`: distinguishes two cases of one exercise.
    `note`: how the case differs from a run in a lab.
    `by_design`: it does not use the GPU, or collects the values for its checks without it.
    """

    exercise: str
    settings: Mapping[str, str] = field(default_factory=dict)
    simulated: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    gpus: int = 1
    limit_s: float = 60.0
    result: str = "metrics.json"
    tasks: int = 0
    note: str = ""
    by_design: bool = False

    @property
    def name(self) -> str:
        """Return the number of the exercise, with the variant if there is one."""
        return f"{self.exercise} {self.variant}".rstrip()


@dataclass(frozen=True)
class Figure:
    """One measured value and the highest possible value, if that is known. Both are in `unit`."""

    what: str
    value: float
    unit: str
    ceiling: float | None = None

    @property
    def possible(self) -> bool:
        """Return whether the value is at most its ceiling."""
        return self.ceiling is None or self.value <= self.ceiling

    @property
    def text(self) -> str:
        """Return the value with its share of the ceiling."""
        shown = f"{self.what} {_format_value(self.value)} {self.unit}".rstrip()
        if self.ceiling is None:
            return shown
        share = f"{100 * self.value / self.ceiling:.2g}% of {_format_value(self.ceiling)}"
        return f"{shown} ({share})" if self.possible else f"{shown} (ABOVE the ceiling: {share})"


def _format_value(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


BY_HAND = "one task by hand, without Slurm"
SOLUTION = "with the course's own solution"
CASES = (
    Case("0.1"),
    Case("0.2", note="two ranks on one GPU compute on processors", by_design=True),
    Case("0.3", limit_s=30, note="computes on processors, by design", by_design=True),
    Case("1.1"),
    Case("1.1", {"dtype": "float16"}, variant="float16"),
    Case("1.2", {"engine": "transformers", "model": "tiny"}),
    Case("1.3", {"engine": "transformers", "model": "tiny"}, limit_s=90),
    Case("1.4", note=SOLUTION),
    Case("2.1", {"seconds": "2"}, result="job-by-hand.json", note=BY_HAND),
    Case("2.2", result="inference.json", note=BY_HAND),
    Case("2.3", note=BY_HAND),
    Case("2.4", tasks=4, note="four tasks by hand, without Slurm", by_design=True),
    Case("3.1"),
    Case("3.2"),
    Case("3.3", {"max_bytes": "268435456"}, gpus=2),
    Case("3.4"),
    Case("3.5"),
    Case("3.6", gpus=2),
    Case("3.7", gpus=2, limit_s=90),
    Case("3.8", gpus=2),
    Case("3.9", gpus=2, limit_s=90),
    Case("4.1", limit_s=30),
    Case("4.2", {"sustained_s": "5"}, limit_s=120),
    Case("4.3", {"engine": "transformers", "model": "tiny"}, limit_s=120),
    Case("4.4", {"tok_per_s": "200"}, {"tok_per_s": "200"}, limit_s=30, note="$ of a what-if of 200 tokens/s", by_design=True),
    Case("5.0", limit_s=60, note=SOLUTION),
    Case("5.1", limit_s=120, note=SOLUTION),
    Case("5.2", limit_s=90, note=SOLUTION),
    Case("5.3", {"n": "1024,4096"}, limit_s=120, note=SOLUTION),
    Case("5.4", note=SOLUTION),
    Case("5.5", limit_s=120, note=SOLUTION),
    Case("5.6", limit_s=120, note=SOLUTION),
    Case("5.7", limit_s=120, note=SOLUTION),
    Case("5.8", limit_s=90, note=SOLUTION),
    Case("5.9", {"samples": "4096"}, limit_s=120, note=SOLUTION),
    Case("5.10", limit_s=120, note=SOLUTION),
    Case("5.11", limit_s=60, note=SOLUTION),
    Case("5.12", limit_s=120, note=SOLUTION),
    Case("6.1", {"layers": "8", "width": "512"}, limit_s=180, note=SOLUTION),
    Case("6.2", {"layers": "4", "steps": "5"}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("6.3", {"layers": "4", "width": "512"}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("6.4", {"layers": "4", "width": "512"}, {"ranks_per_node": "1"}, gpus=2, limit_s=90, note=SOLUTION),
    Case("6.5", {"steps": "40", "crash_at": "30", "save_every": "10"}, limit_s=180, note=SOLUTION),
    Case("6.6", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("6.7", {"layers": "4", "steps": "5"}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("7.1", {"seconds": "2"}, limit_s=120, note=SOLUTION),
    Case("7.2", {"max_bytes": "268435456"}, limit_s=90, note=SOLUTION),
    Case("7.3", {"megabytes": "1024"}, limit_s=120, note=SOLUTION),
    Case("7.4", limit_s=90, note=SOLUTION),
    Case("7.5", limit_s=30, note=SOLUTION, by_design=True),
    Case("8.1", limit_s=90, note=SOLUTION),
    Case("8.2", {"prompt": "200", "answer": "20"}, limit_s=60, note=SOLUTION),
    Case("8.3", {"engine": "transformers"}, limit_s=120, note=SOLUTION),
    Case("8.4", limit_s=120, note=SOLUTION),
    Case("8.5", limit_s=120, note=SOLUTION),
    Case("8.6", limit_s=90, note=SOLUTION, by_design=True),
    Case("8.7", limit_s=120, note=SOLUTION, by_design=True),
    Case("8.8", limit_s=90, note=SOLUTION, by_design=True),
    Case("9.1", {"numbers": "24000"}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("9.2", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("9.3", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("9.4", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION, by_design=True),
    Case("9.5", limit_s=120, note=SOLUTION),
    Case("9.6", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=90, note=SOLUTION),
    Case("9.7", {}, {"ranks_per_node": "1"}, gpus=2, limit_s=120, note=SOLUTION),
    Case("9.8", {}, {"ranks_per_node": "1", "real_fault": "sleeps"}, gpus=2, limit_s=120, note=SOLUTION, by_design=True),
    Case("B.1", {"engine": "stand-in"}, limit_s=60, note=f"{SOLUTION}; without Kubernetes", by_design=True),
    Case("B.2", limit_s=120, note=SOLUTION),
    Case("B.3", limit_s=60, note=SOLUTION),
)


def figures(exercise: str, metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of one exercise that are worth a line, each with its ceiling from `sheet` (a row of gpus.json, or
    empty).
    """
    return [figure for figure in _READERS.get(exercise, _yield_no_figure)(metrics, sheet) if figure.value is not None]


def _yield_no_figure(_metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield from ()


def _products(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    peak = {"float32": "fp32", "float16": "fp16"}[metrics["dtype"]]
    warm = next(row for row in metrics["rows"] if (row["size"], row["what"]) == (metrics["size"], "warm"))
    yield Figure(f"product of {metrics['size']}", warm["gflop_per_s"], "GFLOP/s", _thousand(sheet.get(peak)))
    yield Figure("speed-up", metrics["speedup_large"], "times")


def _answers(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("one answer", metrics["tok_per_s"], "tokens/s", metrics["ceiling_tok_per_s"])


def _loads(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("float16 products", metrics["arithmetic_gflop_per_s"], "GFLOP/s", _thousand(sheet.get("fp16")))
    yield Figure("copies", metrics["copying_gb_per_s"], "GB/s", sheet.get("gb_per_s"))


def _memory(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("tensors that fitted", metrics["steps_that_fitted"], f"(predicted: {metrics['steps_predicted']})")


def _steps(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("one rank", metrics["comparison"][0]["samples_per_s"], "samples/s")


def _formats(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["summary"]:
        yield Figure(row["dtype"], row["best_tflops"], "TFLOP/s", row["peak_tflops"])
        yield Figure(f"{row['dtype']} sustained", row["sustained_tflops"], "TFLOP/s", row["peak_tflops"])


def _throughput(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    best = next((row for row in metrics["rows"] if row["batch"] == metrics["best_batch"]), None)
    if best:
        yield Figure(f"{best['batch']} at a time", best["output_tok_per_s"], "tokens/s", best["ceiling_tok_per_s"])


def _kernels(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("copy", metrics["copy_gb_per_s"], "GB/s", sheet.get("gb_per_s"))
    yield Figure("vector_add", metrics["vector_add"]["percent_of_copy"], "% of the copy")


def _pipeline(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("loop", metrics["speedup"], "times the delivered one")
    yield Figure("busy", metrics["gpu_busy_percent"], "%", 100.0)


def _products_by_hand(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["timed"] or ():
        peak = sheet.get("fp16" if row["version"] == "tensor" else "fp32")
        yield Figure(f"{row['version']} {row['n']}", row["gflop_per_s"], "GFLOP/s", _thousand(peak))


def _overlap(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("copy in", metrics["gpu"].get("copy_gb_per_s"), "GB/s", metrics["gpu"].get("link_gb_per_s"))
    yield Figure("overlapped", metrics["gpu"].get("speedup"), "times as fast")


def _graphs(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("eager", metrics["smallest_eager_us"], "us")
    yield Figure("graph", metrics["smallest_graph_us"], "us")


def _roof(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("memory roof", metrics["roof"]["gb_per_s"], "GB/s", sheet.get("gb_per_s"))
    yield Figure("compute roof", metrics["roof"]["gflop_per_s"], "GFLOP/s", _thousand(sheet.get("fp32")))


def _transforms(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    best = next(row for row in metrics["by_batch"] if row["batch"] == metrics["best_batch"])
    yield Figure(f"FFT, {best['batch']} at a time", best["gflop_per_s"], "GFLOP/s", _thousand(sheet.get("fp32")))


def _training(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("repaired", metrics["speedup"], "times the delivered one")


def _norm(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["lengths"]:
        yield Figure(f"norm of {row['columns']}", row["gb_per_s"], "GB/s", sheet.get("gb_per_s"))
    yield Figure("one kernel against two", metrics["speedup_largest"], "times")


def _attention(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["timed"]:
        yield Figure(f"{row['way']}, {row['length']} keys", row["tflops"], "TFLOP/s", sheet.get("fp16"))
    yield Figure("tiles against plain", metrics["speedup"], "times")


def _training_memory(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["menu"][:2]:
        yield Figure(row["technique"], row["peak_mib"], "MiB")
    yield Figure("your step", metrics["yours"]["peak_mib"], "MiB")
    yield Figure("estimate off by", metrics["prediction_off_percent"], "%")


def _layouts(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("best layout", metrics["times_one_process"], "times one process", 1.05 * metrics["world_size"])


def _plan(metrics: Mapping[str, Any], sheet: Mapping[str, Any]) -> Iterator[Figure]:
    run = metrics["run"]
    yield Figure(
        f"trained as {run['layout']}", run["gflop_per_s"] / run["ranks"], "GFLOP/s per GPU", _thousand(sheet.get("fp32"))
    )


def _checkpoint(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("checkpoint", metrics["saved"]["gb_per_s"], "GB/s", 1.1 * metrics["disk_gb_per_s"])
    yield Figure("one file", metrics["one_file"]["bytes"] / metrics["one_file"]["seconds"] / 1e9, "GB/s")


def _recovery(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("back at work", metrics["recovery_s"], "s after the crash")


def _gains(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("MPS against time-slicing, small", metrics["mps_gain_small"], "times")
    yield Figure("MPS against time-slicing, full", metrics["mps_gain_full"], "times")


def _links(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["fits"]:
        if "GPU" in row["way"]:
            yield Figure(row["way"], row["largest_gb_per_s"], "GB/s")


def _storage(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["staging"]:
        yield Figure(row["way"], row["gb_per_s"], "GB/s")


def _pages(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["speed"]:
        if row["page"] == 16:
            yield Figure("1,024 tokens collected from pages of 16", row["collected_us"], "us")
            yield Figure("1,024 tokens read page by page", row["yours_us"], "us")


def _pauses(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["engine_times"]:
        yield Figure(f"longest pause, budget {row['budget']}", row["longest_pause_ms"], "ms")


def _guesses(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    for row in metrics["products"]:
        yield Figure(f"a layer, {row['tokens']} tokens", row["median_ms"], "ms")


def _calls(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("launches a token", metrics["launches_a_token"], "calls")
    yield Figure(f"{metrics['tracer']}", metrics["us_a_call"], "us per call")


def _thousand(peak: float | None) -> float | None:
    return None if peak is None else 1e3 * peak


def _memory_traced(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("traced", sum(row["bytes"] or 0 for row in metrics["workloads"]) / 2**20, f"MiB ({metrics['runtime']})")
    yield Figure("off by", metrics["alive_off"], "bytes alive")


def _shares(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("peak of stage 3", metrics["peak_of_3_percent"], "% of stage 0's", 100.0)


def _compiled(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("four operations, compiled", metrics["times_faster"], "times as fast", metrics["eager_times"] * 1.1)
    yield Figure("kernels saved", metrics["kernels_saved"], "kernels")


def _token_costs(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("one layer for 64 requests", metrics["batch_64_of_1"], "times that for one")
    if fit := metrics["clock_fit"]:
        yield Figure("bandwidth of the clock", fit["memory_percent"], "% of the sheet", 100.0)
        yield Figure("speed of the clock", fit["compute_percent"], "% of the sheet", 100.0)
        yield Figure("the clock is off by", fit["off_percent"], "%")
    if cache := metrics["engine_cache"]:
        yield Figure("vLLM's cache", cache["tokens"], f"tokens (by formula: {cache['by_formula']:,.0f})")


def _prefixes(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("first token of a new prompt", metrics["engine_ratio"], "times that of a known one")


def _experts(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("rows to experts", metrics["gpu"]["gb_per_s"], "GB/s")
    yield Figure("grouped products", metrics["gpu"]["grouped_ms"], f"ms ({metrics['gpu']['loop_ms']} ms one by one)")


def _ring(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("ring", metrics["gpu"]["ring_ms"], "ms")
    yield Figure("exposed", metrics["gpu"]["exposed_ms"], "ms", metrics["gpu"]["ring_ms"])


def _hidden(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("messages hidden", metrics["trace"]["hidden_percent"], "%", 100.0)


def _iterations(metrics: Mapping[str, Any], _sheet: Mapping[str, Any]) -> Iterator[Figure]:
    yield Figure("Muon's iterations", metrics["gpu"]["percent"], "% of a step")


_READERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Iterator[Figure]]] = {
    "1.1": _products, "1.2": _answers, "1.3": _loads, "1.4": _memory, "3.2": _steps, "4.2": _formats, "4.3": _throughput,
    "5.1": _kernels, "5.2": _pipeline, "5.3": _products_by_hand, "5.4": _overlap, "5.5": _graphs, "5.6": _norm, "5.7": _roof,
    "5.8": _transforms, "5.9": _training, "5.10": _attention, "5.12": _compiled,
    "6.1": _training_memory, "6.2": _shares, "6.3": _layouts, "6.4": _checkpoint, "6.5": _recovery, "6.6": _plan,
    "7.1": _gains, "7.2": _links, "7.3": _storage,
    "8.1": _token_costs, "8.2": _pages, "8.3": _pauses, "8.4": _prefixes, "8.5": _guesses,
    "9.2": _experts, "9.3": _ring, "9.6": _hidden, "9.7": _iterations,
    "B.2": _calls, "B.3": _memory_traced,
}  # fmt: skip
