"""Query nvidia-smi, and read its output: values with and without units, and all its words for "unknown"."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess

UNKNOWN = {
    "",
    "n/a",
    "[n/a]",
    "not supported",
    "[not supported]",
    "[unknown error]",
    "[gpu requires reset]",
    "[insufficient permissions]",
}
FACTORS = {"": 1.0, "%": 1.0, "w": 1.0, "mhz": 1.0, "c": 1.0, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}
REASONS = "clocks_event_reasons.active"  # drivers before 535 say clocks_throttle_reasons.active
GB_PER_S_A_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}  # of PCIe by generation, one direction
FIELDS = (
    "index", "name", "utilization.gpu", "utilization.memory", "memory.used", "memory.total", "temperature.gpu",
    "power.draw", "power.limit", "clocks.current.sm", REASONS,
)  # fmt: skip
# what holds the clock down, bit by bit, as NVML counts them; idle, and a clock set by a person, do not count
LIMITERS = {
    0x4: "power limit", 0x8: "hardware slowdown", 0x20: "temperature (software)", 0x40: "temperature (hardware)",
    0x80: "power brake", 0x10: "synchronised with other GPUs",
}  # fmt: skip


def query(fields: tuple[str, ...] = FIELDS, timeout_s: float = 10.0) -> list[dict[str, object]] | None:
    """Return a row for each GPU.

    Return None if there is no nvidia-smi, or if it cannot talk to the driver within `timeout_s` seconds.
    """
    if (program := shutil.which("nvidia-smi")) is None:
        return None
    for requested in (fields, tuple(field.replace("event_reasons", "throttle_reasons") for field in fields)):
        try:
            process = subprocess.run(
                [program, f"--query-gpu={','.join(requested)}", "--format=csv"],
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):  # a driver that is busy or broken lets it hang
            return None
        if not process.returncode:
            return read(process.stdout)
    return None


def find_pcie_gb_per_s() -> float | None:
    """Return the peak of the link between host and GPU in one direction, or None if nvidia-smi does not report it."""
    link = (query(("pcie.link.gen.max", "pcie.link.width.max")) or [{}])[0]
    generation, width = link.get("pcie.link.gen.max"), link.get("pcie.link.width.max")
    if not isinstance(generation, int) or not isinstance(width, int):
        return None
    return GB_PER_S_A_LANE[generation] * width if generation in GB_PER_S_A_LANE else None


def screen() -> str | None:
    """Return the output of `nvidia-smi` for people, unchanged, or None if there is no nvidia-smi."""
    if (program := shutil.which("nvidia-smi")) is None:
        return None
    return subprocess.run([program], capture_output=True, text=True, timeout=10, check=False).stdout


def read(text: str) -> list[dict[str, object]]:
    """Return the rows of `--format=csv`, with or without units, as numbers, words, or None.

    Numbers are in percent, bytes, watts, MHz and degrees. A column has the name of the query, without its unit. If the driver
    uses a column's old name, it gets the new one.
    """
    lines = list(csv.reader(io.StringIO(text), skipinitialspace=True))
    if not lines:
        return []
    heads = [re.fullmatch(r"\s*([^\[]*?)\s*(?:\[(.*)\])?\s*", head) for head in lines[0]]
    names = [(head[1] if head else "").replace("throttle_reasons", "event_reasons") for head in heads]
    units = [(head[2] or "" if head else "") for head in heads]
    return [
        {name: _value(cell.strip(), unit) for name, unit, cell in zip(names, units, line, strict=True)}
        for line in lines[1:]
        if line
    ]


def _value(cell: str, unit: str) -> object:
    if cell.lower() in UNKNOWN:
        return None
    if re.fullmatch(r"0x[0-9a-fA-F]+", cell):
        return int(cell, 16)
    match = re.fullmatch(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z%]*)", cell)
    if not match or (match[2] or unit).lower() not in FACTORS:
        return cell
    number = float(match[1]) * FACTORS[(match[2] or unit).lower()]
    return int(number) if number.is_integer() and "." not in match[1] else number


def limiters(mask: int | None) -> str | None:
    """Return in words the reasons for a lower clock, an empty string if there are none, or None if they are not known."""
    return None if mask is None else ", ".join(word for bit, word in LIMITERS.items() if mask & bit)
