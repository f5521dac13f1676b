"""Parse and print bytes, durations and times. Bandwidths have decimal units, sizes have binary units."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DURATION = re.compile(r"^(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?$")
_BYTES = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT]?i?B|)$")
_SCALE = {
    "": 1,
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGT", 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)},
}


def parse_duration(text: str) -> float:
    """Return the number of seconds that `90s`, `10m`, `1h30m`, `4h` or a bare number stands for. Raises ValueError, whose
    message shows the right form."""
    match = _DURATION.match(text.strip().replace(" ", ""))
    if not match or not any(match.groups()):
        raise ValueError(f"'{text}' is not a duration such as 90s, 10m or 1h30m")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def parse_bytes(text: str) -> int:
    """Return the number of bytes that `64 MiB`, `1.5 GB` or a bare number stands for. Raises ValueError, whose message shows
    the right form."""
    match = _BYTES.match(text.strip())
    if not match or match.group(2) not in _SCALE:
        raise ValueError(f"'{text}' is not a size such as 64 MiB or 1 GiB")
    return int(float(match.group(1)) * _SCALE[match.group(2)])


def format_bytes(count: float) -> str:
    """Format a size for a person: `17 B`, `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """Format a duration for a person: `0.34 s`, `12.1 s`, `3 min 20 s`, `20 min`, `2 h 05 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {remainder:02d} s" if remainder else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes % 60 else f"{minutes // 60} h"


def write_duration(seconds: float) -> str:
    """Format a duration as a user would type it: 90 seconds become `1m30s`, half an hour `30m`. It is rounded to whole
    seconds."""
    minutes, rest_s = divmod(round(seconds), 60)
    parts = ((minutes // 60, "h"), (minutes % 60, "m"), (rest_s, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def format_points(points: float) -> str:
    """Format points with at most one decimal: `3.4`, `25`."""
    return f"{round(points, 1) + 0.0:.1f}".removesuffix(".0")


def format_share(earned: float, points: float) -> str:
    """Format earned points with their share: `312 of 480 · 65 %`."""
    share = f" · {100 * earned / points:.0f} %" if points else ""
    return f"{format_points(earned)} of {format_points(points)}{share}"


def now_utc(timespec: str = "seconds") -> str:
    """Return the current time in the format of the records: ISO 8601 in UTC. A finer `timespec` shows the order of two
    events."""
    return datetime.now(UTC).isoformat(timespec=timespec)


def parse_moment(text: str) -> datetime:
    """Parse a recorded time. Raises ValueError unless it is ISO 8601 with its offset from UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the time {text[:40]!r} has no offset from UTC")
    return moment


def later(moment: str, seconds: float) -> str:
    """Add seconds to a recorded time. Return the new time in the same format."""
    return (datetime.fromisoformat(moment) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def seconds_since(moment: str) -> float:
    """Return how many seconds ago a recorded time was."""
    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
