"""The kernels of 5.7, with formulas for their operations and least bytes, and loops that measure the roof.

Numbers are float32 with 4 bytes; complex numbers have 8. The least bytes count every array once, as if everything else were in
registers.
"""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

ROW, NONZEROS, POINTS, PARTICLES = 1024, 8, 4096, 1024
SOFTENING = 1e-2  # softening: it keeps the distance of a particle to itself above 0
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(frozen=True)
class Kernel:
    """A kernel at one size `n`. `call` runs it once; `flops` and `least_bytes` are those of one call, by formula."""

    name: str
    n: int
    call: Callable[[], object]
    flops: float
    least_bytes: float
    formula: str

    @property
    def flop_per_byte(self) -> float:
        """Return the arithmetic intensity of the kernel."""
        return self.flops / self.least_bytes


@dataclass(frozen=True)
class Arrays:
    """Three square arrays that all kernels of long vectors share: `a` and `b` are read, `c` is written."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor


def find_last_cache(device: torch.device) -> int | None:
    """Return the bytes of the last cache before memory, or None if the device does not report them.

    A virtual machine reports the cache of its whole host, but can use only a share of it.
    """
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    if sys.platform == "darwin":
        output = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "hw.l2cachesize"], capture_output=True, text=True, check=False
        ).stdout
        return int(output) if output.strip().isdigit() else None
    levels = sorted(CACHES.glob("index*/size"))
    word = levels[-1].read_text(encoding="ascii").strip() if levels else ""
    return int(word[:-1]) * {"K": 1 << 10, "M": 1 << 20}[word[-1]] if word[:-1].isdigit() and word[-1] in "KM" else None


def choose_side(cache_bytes: int | None, most_bytes: int) -> int:
    """Return the side of a square array that is four times as large as the last cache, but has at most `most_bytes` bytes.

    If the size of the cache is unknown, the array has `most_bytes` bytes.
    """
    array_bytes = most_bytes if cache_bytes is None else min(most_bytes, max(4 * cache_bytes, 16 << 20))
    return math.isqrt(array_bytes // 4)


def make_arrays(side: int, device: torch.device, seed: int) -> Arrays:
    """Return arrays of numbers from 0 to 1. `c` is a separate array, which no kernel has touched yet."""
    random = torch.Generator().manual_seed(seed)
    return Arrays(*(torch.rand(side, side, generator=random).to(device) for _ in range(3)))


def list_loops(arrays: Arrays) -> list[tuple[str, Callable[[], object], int]]:
    """Return the loops that measure the memory's roof: their name, one call, and the bytes per number that they request.

    A processor reads a cache line before it writes part of it. A copy then moves 12 bytes per number but counts as 8. The two
    in-place loops write only what they have read, so all their bytes are counted.
    """
    a, b, c = arrays.a, arrays.b, arrays.c
    return [
        ("copy", lambda: c.copy_(a), 8),
        ("triad", lambda: torch.add(a, b, alpha=0.5, out=c), 12),
        ("scale in place", lambda: c.mul_(0.999), 8),
        ("saxpy in place", lambda: c.add_(a, alpha=1e-3), 12),
    ]


def step_slowly(u: torch.Tensor, out: torch.Tensor, c: float) -> None:
    """Compute a step of the heat equation as in the provided part, with nine temporaries."""
    centre = u[1:-1, 1:-1]
    vertical = u[:-2, 1:-1] + u[2:, 1:-1] - 2 * centre
    horizontal = u[1:-1, :-2] + u[1:-1, 2:] - 2 * centre
    change = c * (vertical + horizontal)
    out[1:-1, 1:-1] = centre + change


def find_forces(places: torch.Tensor, masses: torch.Tensor) -> torch.Tensor:
    """Return the force of all particles on each particle: the sum over j of m[j] d / |d|^3 with d = places[j] - places[i]."""
    distance = places[None] - places[:, None]
    squares = distance.square().sum(dim=2).add_(SOFTENING**2)
    return (distance * (masses / (squares * squares.sqrt()))[..., None]).sum(dim=1)


def make_kernels(arrays: Arrays, gemm_small: int, gemm_large: int) -> list[Kernel]:
    """Return the eight kernels, in the order in which they are shown. Their other arrays have similar sizes."""
    a, c = arrays.a, arrays.c
    device, side, numbers = a.device, a.shape[0], a.numel()
    long_rows = a.view(-1)[: numbers // ROW * ROW].view(-1, ROW)
    weight = torch.rand(ROW, device=device)
    waves = torch.view_as_complex(a.view(-1)[: max(1, numbers // (2 * POINTS)) * 2 * POINTS].view(-1, POINTS, 2))
    spectra = torch.view_as_complex(c.view(-1)[: 2 * waves.numel()].view(-1, POINTS, 2))
    rows = max(1024, numbers // 32)
    matrix, vector = make_sparse(rows, device), torch.rand(rows, 1, device=device)
    places, masses = torch.rand(PARTICLES, 3, device=device), torch.rand(PARTICLES, device=device)
    batch, points = waves.shape[0], (side - 2) ** 2
    return [
        Kernel("saxpy", numbers, lambda: c.add_(a, alpha=1e-3), 2 * numbers, 12 * numbers, "2n / 12n"),
        Kernel("layer norm", len(long_rows), lambda: torch.layer_norm(long_rows, (ROW,), weight, weight),
               8 * long_rows.numel(), 8 * long_rows.numel(), "8 * 1024n / (8 * 1024n)"),
        Kernel("stencil", side, lambda: step_slowly(a, c, 0.1), 6 * points, 8 * points, "6n² / 8n²"),
        Kernel("sparse x vector", rows, lambda: matrix @ vector, 2 * NONZEROS * rows,
               (12 * NONZEROS + 16) * rows, "16n / (96n + 16n)"),
        Kernel("FFT 4096", batch, lambda: torch.fft.fft(waves, out=spectra), 5 * POINTS * 12 * batch,
               16 * POINTS * batch, "5 * 4096 * 12n / (16 * 4096n)"),
        Kernel("all-pairs forces", PARTICLES, lambda: find_forces(places, masses), 20 * PARTICLES**2,
               28 * PARTICLES, "20n² / 28n"),
        make_gemm(gemm_small, device),
        make_gemm(gemm_large, device),
    ]  # fmt: skip


def make_gemm(n: int, device: torch.device) -> Kernel:
    """Return a product of two n x n matrices in true float32."""
    x, y, out = (torch.rand(n, n, device=device) for _ in range(3))
    return Kernel(f"GEMM {n}", n, lambda: torch.mm(x, y, out=out), 2 * n**3, 12 * n * n, "2n³ / 12n²")


def make_sparse(rows: int, device: torch.device) -> torch.Tensor:
    """Return a square matrix in CSR with 8 numbers per row in random columns, and indices of 8 bytes."""
    pointers = torch.arange(0, NONZEROS * rows + 1, NONZEROS, device=device)
    columns = torch.randint(rows, (rows, NONZEROS), device=device).sort(dim=1).values.flatten()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse")  # torch says that CSR is in beta state
        return torch.sparse_csr_tensor(pointers, columns, torch.rand(NONZEROS * rows, device=device), size=(rows, rows))
