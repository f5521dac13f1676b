"""The network around the machines: lines for `ip` and `tc`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpucourse.local.machines import network


def test_lines_lay_a_cable_from_the_bridge_to_a_machine() -> None:
    assert (network.address(0), network.address(64)) == ("10.77.0.10", "10.77.0.74")
    assert network.cable_lines("node3", 4711)[0] == "link add c-node3 type veth peer name eth0 netns 4711"
    assert "address add 10.77.0.13/24 dev eth0" in network.machine_lines("10.77.0.13")


def test_run_passes_lines_and_raises_the_first_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ip"
    heard = tmp_path / "heard"
    program.write_text(f"#!/bin/sh\ncat > '{heard}'\n[ ! -s '{heard}' ] || {{ printf 'first\\nsecond\\n' >&2; exit 1; }}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    network.run("ip", [])
    with pytest.raises(OSError, match=r"^ip: first$"):
        network.run("ip", ["link set lo up", "link add bridge0 type bridge"])
    assert heard.read_text() == "link set lo up\nlink add bridge0 type bridge\n"
