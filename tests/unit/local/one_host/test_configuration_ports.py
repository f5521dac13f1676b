"""Ports for the daemons of a Slurm on one computer."""

from __future__ import annotations

import socket

import pytest

from gpucourse.local.one_host.configuration import NoneFree, choose_ports, is_free


def test_choose_ports_keeps_ports_that_are_free() -> None:
    port_map = choose_ports(["slurmctld", "node1", "node2"], {}, ())
    assert len(set(port_map.values())) == 3
    assert choose_ports(["slurmctld", "node1", "node2"], port_map, ()) == port_map
    with socket.create_server(("127.0.0.1", port_map["node1"])):
        assert not is_free(port_map["node1"])
        second = choose_ports(["slurmctld", "node1", "node2"], port_map, ())
        assert {name for name, port in port_map.items() if second[name] != port} == {"node1"}
        assert choose_ports(["slurmctld", "node1", "node2"], port_map, {"node1"}) == port_map  # it listens there itself
    assert set(choose_ports(["slurmctld", "node1"], port_map, ())) == {"slurmctld", "node1"}


def test_choose_ports_raises_when_none_is_free() -> None:
    with pytest.raises(NoneFree, match="every port from 12000 to 19999 is taken"):
        choose_ports(["slurmctld"], {}, (), free=lambda _port: False)
