"""A simulated machine behind each instance, with namespaces of its own, that really does what its user data say at the first
boot: Slurm's set-up of the course meets a real munged, slurmctld and slurmd there.

What such a machine lacks has a stand-in in `machine/bin`: systemd, apt-get (what it would install is this computer's), NFS (all
machines share a folder), the driver of the GPU. It says of itself that it is simulated.
"""

from __future__ import annotations

import itertools
import shlex
import shutil
import sys
from concurrent.futures import Future
from pathlib import Path

from moto.ec2.models.instance_types import INSTANCE_TYPES

from gpucourse.local import health, layout
from gpucourse.local.machines import network
from tests.mock_aws.asking import first_script
from tests.mock_aws.computers import USER, SimulatedComputers, Wanted
from tests.mock_aws.state import State

STAND_INS = Path(__file__).with_name("machine")
PLACE = f"/home/{USER}/.machine"  # in the machine

_ASK_S = 60.0


class SimulatedMachines(SimulatedComputers):
    """The machines of one account, in one namespace."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._numbers = itertools.count(1)

    def address(self, usual: str) -> str:
        """One of the addresses in the network of that namespace."""
        return network.address(next(self._numbers))

    def close(self) -> None:
        """End every machine; what their roots left in the shared folder is removed by one of them."""
        self._tidy()
        super().close()

    def _root(self, instance_id: str) -> str:
        return "/"

    def _set_up(self, wanted: Wanted) -> None:
        name = self._name(wanted.id)
        given = layout.home(self._folder, name) / ".machine"
        shutil.copytree(STAND_INS, given)
        (given / "user-data").write_bytes(first_script(wanted.user_data))
        self._raise(wanted.id, public_key=wanted.public_key, gpus=_gpus(wanted.instance_type), addresses={name: wanted.address})
        self._run(name, _power_on())

    def _halt(self, instance_id: str) -> None:
        name = self._name(instance_id)
        self._run(name, f"{PLACE}/bin/systemctl halt")  # a stop is no power cut: the machine is told, and its daemons end
        health.ask_host(self._folder, "power", {"name": name, "way": "off"}, timeout_s=_ASK_S)

    def _start(self, instance_id: str, halting: Future[None]) -> None:
        halting.exception()  # it goes off before it goes on
        name = self._name(instance_id)
        health.ask_host(self._folder, "power", {"name": name, "way": "on"}, timeout_s=_ASK_S)
        self._run(name, _power_on())

    def _end(self, instance_id: str) -> None:
        with self._lock:
            last = set(self._booted) <= {instance_id}
        if last:
            self._tidy()
        super()._end(instance_id)

    def _tidy(self) -> None:
        with self._lock:
            names = [self._name(instance_id) for instance_id in self._booted]
        if names:
            self._run(names[0], "rm -rf /shared/.gpucourse")

    def _run(self, name: str, command: str) -> None:
        """Have a machine's root do something."""
        asked = {"name": name, "argv": ["sh", "-c", command]}
        done = health.ask_host(self._folder, "run", asked, timeout_s=_ASK_S)
        if done.get("code") != 0:
            sys.stderr.write(f"{name}: {command}: {done}\n")


def _power_on() -> str:
    """What goes on by itself once there is power."""
    return f"setsid bash {PLACE}/power-on {shlex.quote(sys.executable)} >>/var/log/power-on.log 2>&1 </dev/null &"


def _gpus(instance_type: str) -> int:
    cards = INSTANCE_TYPES[instance_type].get("GpuInfo", {}).get("Gpus", [])
    return sum(int(card["Count"]) for card in cards)
