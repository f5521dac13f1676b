"""Mutate bytes from outside at random: readers raise only the program's own errors, and change nothing outside their folder.

FUZZ_SECONDS: the total time. Without it, a few inputs are tried, the same ones in each run. Inputs that broke a reader are kept
in tests/data/fuzz/TARGET, and every run of the tests tries them again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

SEEDS = Path(__file__).parents[1] / "data" / "fuzz"
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0")) / len(TARGETS)
ROUND = 100
SPLICES = (b"../", b"/dev/zero", b"\0", b"\x1b[31m", b"\xff", b"[" * 100, b'{"a":' * 80, b"9" * 400, b"1e999", b"NaN",
           b"&a [*a]", b"!!int ", b"\\ud800", b"null", b"-1", b"\n", b"'", b"{", b"}", b"2" * 11)  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, honest: tuple[bytes, ...]) -> bytes:
    """Return valid bytes after a few changes (cut, repeated, overwritten, spliced), or arbitrary bytes."""
    data = bytearray(draw(st.sampled_from([*honest, b""])))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 40)))
        mutation = draw(st.sampled_from(["cut", "repeat", "bytes", "splice", "flip", "end"]))
        if mutation == "cut":
            del data[at:end]
        elif mutation == "repeat":
            data[at:at] = data[at:end] * draw(st.integers(1, 8))
        elif mutation == "bytes":
            data[at:end] = draw(st.binary(max_size=40))
        elif mutation == "splice":
            data[at:end] = draw(st.sampled_from(SPLICES))
        elif mutation == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif mutation == "end":
            del data[at:]
    return bytes(data)


def check(name: str, data: bytes) -> None:
    """Read the bytes in a folder next to another folder. The other folder must stay unchanged, and nothing may appear next to
    it.
    """
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="gpucourse-fuzz-") as place:
        canary, folder = Path(place) / "canary", Path(place) / "a" / "b" / "folder"
        canary.write_bytes(b"sings")
        folder.mkdir(parents=True)
        with contextlib.suppress(*target.may_raise):
            target.read(data, folder)
        assert {path for path in Path(place).rglob("*") if folder not in path.parents} == {canary, folder, *folder.parents[:2]}
        assert canary.read_bytes() == b"sings"


@pytest.mark.parametrize("name", TARGETS)
def test_reader_accepts_honest_input(name: str) -> None:
    for data in TARGETS[name].honest:
        check(name, data)


@pytest.mark.parametrize("seed", sorted(SEEDS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name[:12]}")
def test_reader_survives_input_that_once_broke_it(seed: Path) -> None:
    check(seed.parent.name, seed.read_bytes())


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.parametrize("name", TARGETS)
def test_reader_of_mutated_input_raises_only_permitted_errors(name: str) -> None:
    ends = time.monotonic() + SECONDS

    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        derandomize=SECONDS == 0,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(mutations(TARGETS[name].honest))
    def one_round(data: bytes) -> None:
        try:
            check(name, data)
        except Exception:
            file = SEEDS / name / hashlib.sha256(data).hexdigest()[:16]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            raise

    one_round()
    while time.monotonic() < ends:
        one_round()
