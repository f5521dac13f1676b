"""What the first machine of a lab says about where it listens, as it may arrive."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.labs.hosts.addresses import _port
from tests.unit.remote.test_slurm_refusals import HEAD as NODE


class Head:
    """As much of a machine that was entered as a complaint names."""

    node = replace(NODE, typed="me@gpu1")


HEAD: Any = Head()


@pytest.mark.parametrize("pieces", [[b"40123\n"], [b"4", b"0123", b"\n"], [b"40123\r\n40124\n"], [b"40123"]])
def test_a_port_may_come_in_pieces(pieces: list[bytes]) -> None:
    assert _port(HEAD, iter(pieces)) == 40123


@pytest.mark.parametrize("pieces", [[], [b"Hello\n"], [b"-1\n"], [b"65536\n"], [b"4 0\n"], ["١٢\n".encode()], [b"9" * 5000]])
def test_what_is_no_port_is_an_error_with_an_end(pieces: list[bytes]) -> None:
    with pytest.raises(UnreachableError, match="told no port but") as caught:
        _port(HEAD, iter(pieces))
    assert len(caught.value.what) < 400


def test_a_machine_that_talks_for_ever_is_not_heard_out() -> None:
    with pytest.raises(UnreachableError):
        _port(HEAD, itertools.repeat(b"no"))
