from __future__ import annotations

import pytest

from gpucourse.units import format_bytes, format_seconds, parse_bytes, parse_duration, write_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("4h", 14400), ("45", 45), ("1.5m", 90)]
)
def test_parse_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(1800, "30m"), (5400, "1h30m"), (90.2, "1m30s"), (14400, "4h"), (0, "0s")])
def test_write_duration_is_what_parse_duration_reads(seconds: float, text: str) -> None:
    assert (write_duration(seconds), parse_duration(text)) == (text, round(seconds))


@pytest.mark.parametrize("text", ["", "h", "10x", "-5s", "1m2h", "ten", "m"])
def test_parse_duration_refuses_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration such as"):
        parse_duration(text)


@pytest.mark.parametrize(("text", "count"), [("64 MiB", 64 << 20), ("1.5GB", 1_500_000_000), ("10", 10), ("3 KiB", 3072)])
def test_parse_bytes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "MiB", "1 XB", "-3 MB", "1iB"])
def test_parse_bytes_refuses_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size such as"):
        parse_bytes(text)


def test_format_bytes_and_seconds() -> None:
    assert [format_bytes(n) for n in (0, 1023, 1536, 5 << 30)] == ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
    assert [format_seconds(s) for s in (0.342, 12.06, 200, 7500)] == ["0.34 s", "12.1 s", "3 min 20 s", "2 h 05 min"]
