"""Links between simulated nodes, as a person writes them."""

from __future__ import annotations

import pytest

from gpucourse.local.machines import link


@pytest.mark.parametrize(
    ("text", "bits", "delay", "canonical_text"),
    [
        ("1gbit", 10**9, 0.0, "1gbit"),
        ("100mbit", 10**8, 0.0, "100mbit"),
        ("2.5gbit", 2_500_000_000, 0.0, "2500mbit"),
        (" 1GBIT, 2ms", 10**9, 2.0, "1gbit,2ms"),
        ("10gbit,500us", 10**10, 0.5, "10gbit,0.5ms"),
    ],
)
def test_parse_reads_a_link_and_str_writes_it(text: str, bits: int, delay: float, canonical_text: str) -> None:
    speed = link.parse(text)
    assert (speed.bits, speed.delay_ms, str(speed)) == (bits, delay, canonical_text)
    assert link.parse(str(speed)) == speed


@pytest.mark.parametrize(
    "text", ["", "fast", "1", "1gb", "0mbit", "200gbit", "1gbit,", "1gbit,2", "1gbit,2s", "1gbit,0ms", "1gbit,9999ms"]
)
def test_parse_refuses_what_is_no_link(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        link.parse(text)


def test_shape_lays_the_delay_on_one_of_two_ways() -> None:
    shapes = [link.shape(link.parse("1gbit,2ms"), "eth0", delayed=delayed) for delayed in (True, False)]
    assert [len(lines) for lines in shapes] == [2, 1]
    assert "rate 1000000000bit" in shapes[0][0]
    assert shapes[0][1].endswith("netem delay 2ms limit 100000")
