"""Simulated nodes behind the running instances, reached by the instances' own addresses.

The addresses of instances are not real. `ssh_proxy.py` looks them up in `addresses.json`, which this module maintains.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from gpucourse.local import driver, health, layout, processes
from tests.mock_aws import first_boot
from tests.mock_aws.state import GONE, State

ADDRESSES = "addresses.json"
USER = "ubuntu"

_DRIVER = Path(driver.__file__)
_DRIVER_S = 90


class SimulatedComputers:
    """The nodes of one account. They start and end in the background, as real machines do."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._folder = state.folder / "nodes"
        self._uid = f"mock-{uuid.uuid4().hex[:12]}"
        self._work = ThreadPoolExecutor(8)
        self._lock = threading.Lock()
        self._booting: dict[str, Future[None]] = {}
        self._booted: dict[str, dict[str, Any]] = {}
        self._halting: set[str] = set()
        self._ended: set[str] = set()
        (state.folder / "uid").write_text(self._uid, encoding="utf-8")
        self._write({})

    def reconcile(self) -> None:
        """Start a computer for each running instance, end those of terminated instances, and halt those of stopped ones, whose
        disks remain.
        """
        for _region, instance in self._state.instances():
            if instance.state == "running":
                self._halting.discard(instance.id)
            if instance.state == "running" and instance.id not in self._booting:
                self._booting[instance.id] = self._work.submit(self._boot, instance)
            elif instance.state == "stopped" and instance.id not in self._halting:
                self._halting.add(instance.id)
                self._work.submit(self._halt, instance.id)
            elif instance.state == GONE and instance.id in self._booting and instance.id not in self._ended:
                self._ended.add(instance.id)
                self._work.submit(self._end, instance.id)
        self._map()

    def host_key(self, instance_id: str) -> str | None:
        """Return the public host key, once the computer has booted."""
        with self._lock:
            node = self._booted.get(instance_id)
        return str(node["host_key"]) if node else None

    def list_booted(self) -> dict[str, dict[str, Any]]:
        """Return, by instance id, the node's description of itself, its home folder, and the folder that replaces its root."""
        with self._lock:
            return {
                name: {**node, "home": str(layout.home(self._folder, self._name(name))), "root": self._root(name)}
                for name, node in self._booted.items()
            }

    def address(self, usual: str) -> str:
        """Return the private address of an instance instead of the `usual` one. All computers are this machine, which answers
        at every 127.x.y.z (on Linux) but at no 10.x.y.z.
        """
        return f"127.{usual.partition('.')[2]}"

    def close(self) -> None:
        """End every computer and everything that runs on it."""
        self._work.shutdown(wait=True, cancel_futures=True)
        health.end_everything(self._folder, self._uid)
        self._write({})

    def _name(self, instance_id: str) -> str:
        """Return the name of an instance's node. It has the form that a node's name must have. With two more letters, it is
        also the name of a network interface, which has at most 15 letters.
        """
        return f"node{int(instance_id[-6:], 16)}"

    def _root(self, instance_id: str) -> str:
        """Return the folder that replaces the root of its file system."""
        return str(layout.node_folder(self._folder, self._name(instance_id)) / "root")

    def _boot(self, instance: Any) -> None:
        """Start the computer, in the state after its first boot."""
        with self._state.lock:
            key = instance.ec2_backend.key_pairs.get(instance.key_name)
            tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
        first_boot.leave_marks(Path(self._root(instance.id)), tags, python=sys.executable)
        self._drive("up", instance.id, public_key=key.public_key.strip() if key else "# nobody")
        description = layout.read_json(layout.description(self._folder, self._name(instance.id)))
        if description is None:
            raise RuntimeError(f"the computer behind {instance.id} did not come up")
        with self._lock:
            self._booted[instance.id] = description
        with self._state.lock:
            self._map()

    def _halt(self, instance_id: str) -> None:
        """End everything that runs on the computer, except its SSH server."""
        processes.end(processes.marker(processes.NODE, f"{self._uid}/{self._name(instance_id)}"))

    def _end(self, instance_id: str) -> None:
        self._booting[instance_id].exception()  # a computer that is still booting is ended afterwards
        with self._lock:
            self._booted.pop(instance_id, None)
        self._drive("down", instance_id)
        with self._state.lock:
            self._map()

    def _drive(self, verb: str, instance_id: str, **options: object) -> None:
        name = self._name(instance_id)
        spec = {
            "name": name,
            "role": "worker",
            "uid": self._uid,
            "user": USER,
            "python": sys.executable,
            "public_key": "",
            "root": self._root(instance_id),
            **options,
        }
        result = subprocess.run(
            [sys.executable, "-I", "-S", str(_DRIVER), verb, str(layout.description(self._folder, name))],
            env={**os.environ, driver.SPEC_VARIABLE: json.dumps(spec)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_DRIVER_S,
            check=False,
        )
        if result.returncode != 0:
            sys.stderr.write(f"the computer behind {instance_id} does not come {verb}: {result.stderr}\n")
            raise RuntimeError(result.stderr)

    def _map(self) -> None:
        """Return the node that each address leads to. The caller holds the account's lock."""
        with self._lock:
            booted = dict(self._booted)
        addresses = {
            address: {"host": booted[instance.id]["address"], "port": booted[instance.id]["port"], "instance": instance.id}
            for _region, instance in self._state.instances()
            if instance.state == "running" and instance.id in booted
            for address in (instance.public_ip, instance.private_ip)
            if address
        }
        self._write(addresses)

    def _write(self, addresses: Mapping[str, Any]) -> None:
        aside = self._state.folder / f".{ADDRESSES}"
        aside.write_text(json.dumps(addresses, indent=1), encoding="utf-8")
        aside.replace(self._state.folder / ADDRESSES)
