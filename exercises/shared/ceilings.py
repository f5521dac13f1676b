"""Compute the highest possible number of tokens per second. A measurement above it is wrong, and is not shown."""

from __future__ import annotations

from dataclasses import dataclass

import bench
import gpus
import nvidia_smi
import torch
from language_models import LanguageModel


@dataclass(frozen=True)
class Ceiling:
    """`tok_per_s` for one batch size, and the reason for this limit. It is None if nothing is known about the device."""

    tok_per_s: float | None
    reason: str


class Ceilings:
    """The ceilings of a model on a device, from a GPU's data sheet or from a CPU's fastest measured multiplication."""

    def __init__(self, model: LanguageModel, device: torch.device) -> None:
        self.model = model
        self.number = 2 if device.type == "cuda" else 4  # bytes of float16, of float32
        self.gpu = gpus.find(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
        self.derived = derive_peaks(device) if device.type == "cuda" and self.gpu is None else None
        self.cpu_tflops = None if device.type == "cuda" else fastest_cpu_tflops()

    def find(self, batch: int, prompt: int, answer: int) -> Ceiling:
        """Return the lowest ceiling for that many concurrent sequences, with `prompt` tokens in and `answer` tokens out."""
        if self.cpu_tflops:
            ceiling_tflops = gpus.compute_ceiling(self.cpu_tflops, self.model.parameters)
            return Ceiling(ceiling_tflops, f"the processor's {self.cpu_tflops * 1e3:,.0f} GFLOP/s, measured here")
        if self.gpu is None and (self.derived is None or not self.derived.gb_per_s):
            return Ceiling(None, "a GPU that is not in the table: no ceiling is known")
        weights = self.model.weight_bytes(self.number)
        cache = self.model.kv_bytes(1, self.number) * mean_cached_tokens(prompt, answer)
        gpu_name, gb_per_s, tflops = self._peaks()
        memory = gpus.decode_ceiling(batch, gb_per_s, weights, cache)
        compute = gpus.compute_ceiling(tflops, self.model.parameters) if tflops else None
        if compute is None or memory < compute:
            return Ceiling(memory, f"{gpu_name} {gb_per_s:,.0f} GB/s: each step reads all weights")
        return Ceiling(compute, f"{gpu_name} {tflops:,.0f} TFLOP/s in float16")

    def _peaks(self) -> tuple[str, float, float | None]:
        """Return a description of the peaks' source, GB/s, and TFLOP/s in float16."""
        if self.gpu:
            return f"the {self.gpu.gpu}'s", self.gpu.gb_per_s, self.gpu.fp16
        return "this GPU's derived", self.derived.gb_per_s, self.derived.tflops["float16"]


def derive_peaks(device: torch.device) -> gpus.DerivedPeaks | None:
    """Return the peaks of a GPU that is not in the table, from its processors and the highest clock that the driver reports."""
    driver_facts = (nvidia_smi.query(("name", "clocks.max.sm")) or [{}])[device.index or 0]
    return gpus.derive(torch.cuda.get_device_properties(device), driver_facts.get("clocks.max.sm"))


def mean_cached_tokens(prompt: int, answer: int) -> float:
    """Return the number of tokens whose keys and values a step reads, averaged over the steps of one answer.

    The prompt's step reads none and generates the first token. The other steps read the prompt and the tokens generated so far.
    With the largest cache instead of the mean, a good engine would exceed the ceiling.
    """
    return sum(prompt + step for step in range(1, answer)) / answer


def fastest_cpu_tflops() -> float:
    """Return the best speed of many matrix products on one core, times the number of cores. No program here can be faster."""
    n = 512
    a, b = torch.randn(n, n), torch.randn(n, n)
    best = min(bench.measure(lambda: a @ b, torch.device("cpu"), budget_s=0.2, threads=1))
    return gpus.matmul_tflops(n, best) * torch.get_num_threads()


def limit_to_possible(tok_per_s: float, ceiling: Ceiling) -> float | None:
    """Return the figure, or None if it is above the ceiling."""
    return None if ceiling.tok_per_s is not None and tok_per_s > ceiling.tok_per_s else tok_per_s
