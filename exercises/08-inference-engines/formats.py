"""Number formats that the run compares, by PyTorch's own conversions, and the time of a step with fewer bits."""

from __future__ import annotations

import torch
from cards import CARDS
from step_clock import BYTES, ROOM_PERCENT, Clock
from torch.ao.quantization import PerChannelMinMaxObserver

FP8_LARGEST, FP4_LARGEST = 448.0, 6.0
FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # E2M1, without signs


def round_in_groups(weight: torch.Tensor, bits: int, group: int) -> torch.Tensor:
    """Return a matrix [out, in] after rounding to integers of `bits` bits, in groups along `in`: PyTorch's quantisation."""
    groups = weight.contiguous().view(-1, group)
    top = 2**bits - 1
    observer = PerChannelMinMaxObserver(
        ch_axis=0, dtype=torch.quint8, qscheme=torch.per_channel_affine, quant_min=0, quant_max=top
    )
    observer(groups)
    scale, zero = observer.calculate_qparams()
    return torch.fake_quantize_per_channel_affine(groups, scale.half().float(), zero.int(), 0, 0, top).view(weight.shape)


def round_all(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Return numbers after rounding to integers of `bits` bits, with one scale for all of them."""
    return round_along(weight.flatten(), 0, bits).view(weight.shape)


def round_along(x: torch.Tensor, dim: int, bits: int) -> torch.Tensor:
    """Return numbers after rounding to integers of `bits` bits: a scale for each slice along `dim`, and 0 in the middle."""
    largest = 2 ** (bits - 1) - 1
    step = x.abs().amax(dim, keepdim=True).clamp(min=1e-8) / largest
    return (x / step).round() * step


def convert_to_fp8(x: torch.Tensor) -> torch.Tensor:
    """Return numbers after PyTorch's conversion to FP8 E4M3; larger ones become 448."""
    return x.clamp(-FP8_LARGEST, FP8_LARGEST).to(torch.float8_e4m3fn).float()


def round_to_fp8(x: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """Return numbers after conversion to FP8, with a scale that maps the largest to 448: one for all, or for each slice."""
    largest = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    scale = largest.clamp(min=1e-8) / FP8_LARGEST
    return convert_to_fp8(x / scale) * scale


def round_to_fp4(weight: torch.Tensor, group: int) -> torch.Tensor:
    """Return a matrix after rounding to FP4 E2M1 in groups along its rows.

    In groups of 16 it is NVFP4, whose scales are in E4M3, with one float32 for the matrix. In groups of 32 it is MXFP4, whose
    scales are powers of two.
    """
    groups = weight.contiguous().view(-1, group)
    largest = groups.abs().amax(-1, keepdim=True).clamp(min=1e-12)
    if group == 16:
        whole = largest.max() / FP4_LARGEST / FP8_LARGEST
        scale = (convert_to_fp8(largest / FP4_LARGEST / whole) * whole).clamp(min=1e-12)
    else:
        scale = torch.exp2(torch.floor(torch.log2(largest)) - 2)
    nearest = ((groups / scale).abs().clamp(max=FP4_LARGEST)[..., None] - FP4).abs().argmin(-1)
    return (torch.copysign(FP4[nearest], groups) * scale).view(weight.shape)


def list_step_times(clock: Clock, formats: dict[str, tuple[float, bool]], batches: tuple[int, ...], context: int) -> list[dict]:
    """Return a row for each format: the milliseconds of a decode step of each batch, and how many tokens fit into the cache.

    Each format has its bits per weight, and whether the products are computed in FP8. Otherwise they are computed in 16 bits.
    If the GPU has no FP8, there is no time.
    """
    rows = []
    plain_bits, operations_16 = 16, clock.operations_per_s
    embedding_bytes = BYTES * CARDS[clock.card].parameters - clock.weight_bytes  # of single rows: they stay in 16 bits
    for name, (bits, in_fp8) in formats.items():
        weight_bytes = round(clock.weight_bytes * bits / plain_bits)
        speed = operations_16
        if in_fp8:
            speed = round(operations_16 * clock.sheet.fp8 / clock.sheet.fp16) if clock.sheet.fp8 else 0
        row: dict = {"format": name, "bits": bits, "weights_gb": weight_bytes / 1e9}
        for batch in batches:
            read = weight_bytes + clock.cache_bytes * batch * (context + 1)
            operations = clock.weight_bytes // 2 * 2 * batch  # a multiply-add for each weight and token
            seconds = max(read / clock.bytes_per_s, operations / speed) if speed else None
            row[f"sim_ms_batch_{batch}"] = None if seconds is None else clock.overhead_ns / 1e6 + 1e3 * seconds
        room = clock.sheet.memory_gb * 1e9 * ROOM_PERCENT / 100 - weight_bytes - embedding_bytes
        row["cache_tokens"] = max(0, int(room / clock.cache_bytes))
        rows.append(row)
    return rows
