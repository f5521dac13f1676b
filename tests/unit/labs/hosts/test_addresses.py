"""The first machine's report on its ports, in the ways in which it may arrive."""

from __future__ import annotations

import itertools
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.errors import InfrastructureError, UnreachableError
from gpucourse.labs.hosts.addresses import _CALL, _LISTEN, _read_ports
from tests.ports import take_ports
from tests.unit.remote.test_slurm_refusals import HEAD as NODE
from tests.waiting import STUCK_S


class Head:
    """The part of an entered machine that a complaint names."""

    node = replace(NODE, typed="me@gpu1")


HEAD: Any = Head()


RANGE = (40_000, 41_000)


@pytest.mark.parametrize("pieces", [[b"40123 40124\n"], [b"4", b"0123 401", b"24\n"], [b"40123 40124\r\n40125\n"]])
def test_read_ports_takes_ports_in_pieces(pieces: list[bytes]) -> None:
    assert _read_ports(HEAD, iter(pieces), RANGE) == [40123, 40124]


@pytest.mark.parametrize(
    "pieces",
    [[], [b"Hello\n"], [b"39999 40123\n"], [b"40123\n"], ["١٢ ١٣\n".encode()], [b"4" * 5000], itertools.repeat(b"no")],
)
def test_read_ports_ends_when_it_gets_no_ports(pieces: Iterable[bytes]) -> None:
    with pytest.raises(UnreachableError, match="printed text at startup, before the port numbers") as caught:
        _read_ports(HEAD, iter(pieces), RANGE)
    assert len(caught.value.what) < 400


def test_read_ports_names_a_machine_without_a_free_port() -> None:
    with pytest.raises(InfrastructureError, match="every port from 40000 to 41000 is taken on me@gpu1"):
        _read_ports(HEAD, iter([b"40123 0\n"]), RANGE)


def test_read_ports_ends_a_listener_when_all_others_have_called() -> None:
    first, last = min(ports := take_ports(3)), max(ports)
    words = [sys.executable, "-u", "-c", _LISTEN, "word", "60", "2", str(first), str(last)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        port, free = map(int, listener.stdout.readline().split())
        assert first <= port <= last
        socket.create_server(("", free)).close()
        call = [sys.executable, "-c", _CALL, "word", str(port), "127.0.0.2", "127.0.0.1"]
        for _ in range(2):
            assert listener.poll() is None
            output = subprocess.run(call, capture_output=True, text=True, timeout=STUCK_S, check=True).stdout
            assert output.split()[::2] == ["127.0.0.2", "127.0.0.1"]
        assert listener.wait(STUCK_S) == 0
