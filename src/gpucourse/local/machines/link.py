"""The speed of a simulated network, such as `1gbit`, or `1gbit,2ms` with a delay. Every function is pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_UNITS = {"kbit": 1_000, "mbit": 1_000_000, "gbit": 1_000_000_000}
_MIN_BITS, _MAX_BITS = 1_000_000, 100_000_000_000
_MAX_MS = 1000.0
_BURST_S = 0.001  # seconds of the full rate in one burst: with a longer burst, a short message would take no time
_MIN_BURST = 131_072  # bytes: above one segment of 64 KiB, which the kernel passes on in one piece
_QUEUE_MS = 50  # a packet that would wait longer is dropped, as in a switch


@dataclass(frozen=True, kw_only=True)
class NetworkLink:
    """The properties of one cable.

    `bits`: bits per second in each direction.
    `delay_ms`: the delay of a message from node to node.
    """

    bits: int
    delay_ms: float = 0.0

    @property
    def burst(self) -> int:
        """Return how many bytes may pass faster than the rate after a pause. A software limit needs this allowance."""
        return max(_MIN_BURST, round(self.bits / 8 * _BURST_S))

    def __str__(self) -> str:
        unit, size = next((u, s) for u, s in reversed(_UNITS.items()) if self.bits % s == 0 or u == "kbit")
        delay = f",{self.delay_ms:g}ms" if self.delay_ms else ""
        return f"{self.bits // size}{unit}{delay}"


def parse(text: str) -> NetworkLink:
    """Parse a link such as `100mbit`, `1gbit` or `1gbit,2ms`. Raises ValueError, which says what is wrong."""
    rate, _, delay = text.strip().lower().replace(" ", "").partition(",")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit)", rate)
    if not match:
        raise ValueError(f"{text!r} is not a link: write a rate such as 100mbit or 1gbit, optionally with a delay: 1gbit,2ms")
    bits = round(float(match[1]) * _UNITS[match[2]])
    if not _MIN_BITS <= bits <= _MAX_BITS:
        raise ValueError(f"{rate}: a simulated link carries 1mbit to 100gbit")
    if not delay and "," in text:
        raise ValueError(f"{text!r} ends with a comma: name the delay, as in {rate},2ms")
    return NetworkLink(bits=bits, delay_ms=_milliseconds(delay) if delay else 0.0)


def shape(link: NetworkLink, interface: str, *, delayed: bool) -> list[str]:
    """Return the lines for `tc -batch` that limit how fast `interface` sends.

    `delayed`: also add the link's delay.
    """
    queue_ms = _QUEUE_MS + link.delay_ms
    lines = [f"qdisc replace dev {interface} root handle 1: tbf rate {link.bits}bit burst {link.burst}b latency {queue_ms:g}ms"]
    if delayed and link.delay_ms:
        lines.append(f"qdisc replace dev {interface} parent 1:1 handle 10: netem delay {link.delay_ms:g}ms limit 100000")
    return lines


def _milliseconds(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(us|ms)", text)
    value = float(match[1]) / (1000 if match[2] == "us" else 1) if match else -1.0
    if not 0 < value <= _MAX_MS:
        raise ValueError(f"{text!r} is not a delay: write a delay from 200us to {_MAX_MS:g}ms")
    return value
