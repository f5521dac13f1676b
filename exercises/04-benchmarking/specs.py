"""Compare a GPU's own report with its data sheet, property by property. The caller queries the device.

A property that the device does not report is None.
"""

from __future__ import annotations

from typing import Any

from gpus import Gpu, cores_per_sm, derive, fp32_peak_tflops, memory_gb_per_s, tensor_peak_tflops

DRIVER_FIELDS = (
    "name", "driver_version", "power.limit", "pcie.link.gen.max", "pcie.link.width.max", "ecc.mode.current", "mig.mode.current",
    "clocks.max.sm",
)  # fmt: skip
HAS = {"tf32": (8, 0), "bf16": (8, 0), "fp8": (8, 9)}  # the first compute capability that has the format in hardware


def dtypes(capability: tuple[int, int]) -> list[str]:
    """Return the short number formats that the hardware itself multiplies. Turing only emulates bf16, which does not count."""
    return [name for name, first in {"fp16": (7, 0), **HAS}.items() if capability >= first]


def derive_peaks(props: Any, clock_mhz: float | None) -> dict[str, float | None]:
    """Return peaks, computed from the device's own cores, clock and bus. A peak is None if a number for it is missing."""
    capability = f"{props.major}.{props.minor}"
    clock_khz, bus = getattr(props, "memory_clock_rate", None), getattr(props, "memory_bus_width", None)
    device_clock = getattr(props, "clock_rate", None)
    ghz = clock_mhz / 1e3 if clock_mhz else device_clock / 1e6 if device_clock else None
    cores = cores_per_sm(capability)
    return {
        "cores": props.multi_processor_count * cores if cores else None,
        "boost_ghz": ghz,
        "gb_per_s": memory_gb_per_s(clock_khz, bus) if clock_khz and bus else None,
        "fp32_tflops": fp32_peak_tflops(props.multi_processor_count, cores, ghz) if cores and ghz else None,
    }


def rows(props: Any, driver_facts: dict[str, Any], sheet: Gpu | None) -> list[dict[str, Any]]:
    """Return a row for each property: the device's value (reported or derived), the sheet's value, and whether they
    agree."""
    peaks = derive_peaks(props, driver_facts.get("clocks.max.sm"))
    sheet_row = sheet.__dict__ if sheet else {}
    cache = getattr(props, "L2_cache_size", None)
    facts: list[tuple[str, Any, Any, str, float | None]] = [
        ("name", props.name, sheet and sheet.gpu, "", None),
        ("compute capability", f"{props.major}.{props.minor}", sheet_row.get("capability"), "", 0.0),
        ("processors (SM)", props.multi_processor_count, sheet_row.get("sms"), "", 0.0),
        ("cores, derived", peaks["cores"], sheet and sheet.sms * sheet.cores_per_sm, "", 0.0),
        ("clock, highest", peaks["boost_ghz"], sheet_row.get("boost_ghz"), "GHz", 10.0),
        ("float32 peak, derived", peaks["fp32_tflops"], sheet_row.get("fp32"), "TFLOP/s", 10.0),
        ("memory", props.total_memory / 1e9, sheet_row.get("memory_gb"), "GB", 12.0),
        ("memory bandwidth, derived", peaks["gb_per_s"], sheet_row.get("gb_per_s"), "GB/s", 3.0),
        ("L2 cache", cache / 2**20 if cache else None, sheet_row.get("l2_mb"), "MiB", 5.0),
        ("power limit", driver_facts.get("power.limit"), sheet_row.get("tdp_w"), "W", 5.0),
        ("driver", driver_facts.get("driver_version"), None, "", None),
        ("PCIe, at most", _link(driver_facts), sheet_row.get("link"), "", None),
        ("ECC", driver_facts.get("ecc.mode.current"), None, "", None),
        ("MIG", driver_facts.get("mig.mode.current"), None, "", None),
        ("formats in hardware", " ".join(dtypes((props.major, props.minor))), sheet and _formats(sheet), "", 0.0),
    ]
    if sheet is None and (limits := derive(props, driver_facts.get("clocks.max.sm"))):
        facts.append(("float16 peak, derived: at most", limits.tflops["float16"], None, "TFLOP/s", None))
    peak_row = ("clock, highest", "float32 peak, derived") if sheet and sheet.clock_may_exceed else ()
    return [_row(*fields, may_exceed=fields[0] in peak_row) for fields in facts]


def comparison(gpus: list[Gpu]) -> list[dict[str, Any]]:
    """Return one row for each data sheet, with the peak derived from its processors and clock."""
    return [
        {
            "gpu": gpu.gpu, "capability": gpu.capability, "sms": gpu.sms, "cores": gpu.sms * gpu.cores_per_sm,
            "memory_gb": gpu.memory_gb, "gb_per_s": gpu.gb_per_s, "fp32_tflops": gpu.fp32, "fp16_tflops": gpu.fp16,
            "bf16_tflops": gpu.bf16, "fp8_tflops": gpu.fp8, "tdp_w": gpu.tdp_w, "l2_mb": gpu.l2_mb,
            "ridge_flop_per_byte": gpu.ridge_flop_per_byte, "derived_fp16_tflops": _formula(gpu),
            "formula_off_percent": abs(_formula(gpu) / gpu.fp16 - 1) * 100 if _formula(gpu) else None,
        }
        for gpu in gpus
    ]  # fmt: skip


def similar_names(gpus: list[Gpu]) -> list[str]:
    """Return similar names that belong to other GPUs of the table: an NVIDIA L40 is not an NVIDIA L4."""
    names = [name for gpu in gpus for name in gpu.names]
    near = [word for name in names for word in (f"{name}0", name[:-1], name.partition("-")[0], name.split()[-1])]
    return sorted(set(near) - set(names))


def _formula(gpu: Gpu) -> float | None:
    has_numbers = gpu.tensor_fma_per_clock and gpu.boost_ghz
    return tensor_peak_tflops(gpu.sms, gpu.tensor_fma_per_clock, gpu.boost_ghz) if has_numbers else None


def _formats(gpu: Gpu) -> str:
    return " ".join(name for name in ("fp16", "tf32", "bf16", "fp8") if getattr(gpu, name))


def _link(driver_facts: dict[str, Any]) -> str | None:
    generation, width = driver_facts.get("pcie.link.gen.max"), driver_facts.get("pcie.link.width.max")
    return f"PCIe {generation} x{width}" if generation and width else None


def _row(name: str, device: Any, sheet: Any, unit: str, tolerance: float | None, *, may_exceed: bool = False) -> dict[str, Any]:
    """Return a row of the table.

    `tolerance` is the percentage by which device and sheet may differ, or None if they are not compared.
    With `may_exceed`, the device's value may be above the sheet's by any amount.
    """
    off, larger = None, may_exceed and None not in {device, sheet} and device > sheet
    if tolerance is not None and device is not None and sheet is not None:
        numbers = isinstance(device, (int, float)) and isinstance(sheet, (int, float))
        off = abs(device / sheet - 1) * 100 if numbers else float(device != sheet) * 100
    return {"spec": name, "device": device, "sheet": sheet, "unit": unit, "off_percent": off,
            "agrees": None if off is None or tolerance is None else off <= tolerance + 1e-9 or larger}  # fmt: skip
