"""A machine under QEMU, without KVM: its disk, its serial console, its power button, and the processor time that it gets."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.boot import metadata
from tests.boot.image import Image

SUBNET = "169.254.169.0/24"
FIRST = 15
"""The last number of the first machine's address; the next machine on the same wire has the next."""
_KERNEL = "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off"
_SLICE_S = 0.1


@dataclass
class Machine:
    """A machine that can be started again and again on the same disk. `number` counts those on one wire, from 0.

    `network` is what QEMU is told of the network beyond the device; `percent` is the share of time for which it runs at all.
    """

    folder: Path
    image: Image
    network: list[str]
    number: int = 0
    processors: int = 2
    memory_mb: int = 1024
    percent: int = 100
    kernel: str = ""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        base = ["-F", "raw", "-b", str(self.image.disk.resolve())]
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", *base, str(self.disk)], check=True)

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"

    @property
    def mac(self) -> str:
        return f"52:54:00:77:01:{FIRST + self.number:02x}"

    @property
    def address(self) -> str:
        return f"169.254.169.{FIRST + self.number}"

    @property
    def console(self) -> str:
        """All that the serial console showed since the last start."""
        path = self.folder / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, *more: str) -> None:
        """Switch it on."""
        assert self.process is None
        (self.folder / "console").unlink(missing_ok=True)
        identity = f"ec2e1916-9099-7caf-fd21-0123456789{FIRST + self.number:02x}"  # cloud-init knows EC2 by its first letters
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
        command += [
            "-smp",
            str(self.processors),
            "-m",
            str(self.memory_mb),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
        ]
        command += ["-no-reboot", "-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd)]
        command += ["-append", f"{_KERNEL} {self.kernel}", "-smbios", f"type=1,uuid={identity},serial={identity}"]
        command += ["-drive", f"file={self.disk},format=qcow2,if=virtio,cache=unsafe", "-device", "virtio-rng-pci"]
        command += [*self.network, "-device", f"virtio-net-pci,netdev=nic,mac={self.mac},romfile="]
        command += ["-serial", f"file:{self.folder / 'console'}", "-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off"]
        with (self.folder / "qemu.log").open("ab") as log:
            self.process = subprocess.Popen([*command, *more], stdout=log, stderr=log, start_new_session=True)
        if self.percent < 100:
            threading.Thread(target=_hold_back, args=(self.process, self.percent), daemon=True).start()

    def wait_for(self, condition: Callable[[], Any], what: str, within_s: float) -> Any:
        """Wait for something; its value. Fails with the end of the console where it does not come, or QEMU has ended."""
        deadline = time.monotonic() + within_s
        while not (value := condition()):
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                why = "the machine has ended" if ended else f"not within {within_s:.0f} s"
                log = (self.folder / "qemu.log").read_text()
                raise AssertionError(f"{what}: {why}\n{self.console[-4000:]}\n{log}")
            time.sleep(0.2)
        return value

    def wait_until_off(self, within_s: float) -> None:
        """Wait until the machine has switched itself off: QEMU ends with 0 when the kernel says so, as EC2 ends an instance."""
        assert self.process is not None
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still on after {within_s:.0f} s\n{self.console[-4000:]}") from None
        self.process = None
        assert code == 0, (self.folder / "qemu.log").read_text()
        assert "reboot: Power down" in self.console

    def press_power_button(self) -> None:
        """What EC2 does to stop an instance: ACPI's power button."""
        self._tell("system_powerdown")

    def copy(self, folder: Path, network: list[str]) -> Machine:
        """A machine in the same state, memory and all, which `resume` lets go on; this one goes on at once."""
        self._tell("stop")
        said = self._tell("human-monitor-command", **{"command-line": "savevm now"})
        assert said == "", said
        twin = Machine(folder, self.image, network, self.number, self.processors, self.memory_mb, self.percent, self.kernel)
        shutil.copyfile(self.disk, twin.disk)
        self._tell("cont")
        return twin

    def resume(self) -> None:
        """Switch a copy on where it was copied."""
        self.start("-loadvm", "now")

    def close(self) -> None:
        """End it, whatever it does: its own process group and nothing else."""
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def _tell(self, command: str, **arguments: str) -> Any:
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(120)
            monitor.connect(str(self.folder / "qmp"))
            with monitor.makefile("rwb") as lines:
                for name, given in (("qmp_capabilities", {}), (command, arguments)):
                    lines.write(json.dumps({"execute": name, "arguments": given}).encode() + b"\n")
                    lines.flush()
                    while not {"return", "error"} & (said := json.loads(lines.readline())).keys():
                        continue
                    assert "return" in said, said
        return said["return"]


def subnet(*, metadata_port: int, ssh: dict[int, int], wire: int | None = None) -> list[str]:
    """The subnet of a VPC as QEMU makes it: DHCP, the metadata service, a port of this computer for each machine's SSH; nothing
    outside can be reached. `ssh` maps machines' numbers to ports. With `wire`, another machine can join through that port."""
    forward = shlex.join([sys.executable, "-I", metadata.__file__, str(metadata_port)]).replace(",", ",,")
    words = [f"net={SUBNET}", "host=169.254.169.2", "dns=169.254.169.3", f"dhcpstart=169.254.169.{FIRST}", "restrict=on"]
    words += [f"guestfwd=tcp:{metadata.ADDRESS}:80-cmd:{forward}"]
    words += [f"hostfwd=tcp:127.0.0.1:{port}-169.254.169.{FIRST + number}:22" for number, port in ssh.items()]
    if wire is None:
        return ["-netdev", f"user,id=nic,{','.join(words)}"]
    hub = [f"user,id=subnet,{','.join(words)}", f"socket,id=wire,listen=127.0.0.1:{wire}"]
    hub += ["hubport,id=a,hubid=0,netdev=subnet", "hubport,id=b,hubid=0,netdev=wire", "hubport,id=nic,hubid=0"]
    return [word for netdev in hub for word in ("-netdev", netdev)]


def joins(wire: int) -> list[str]:
    """The network of a machine that joins the subnet of another."""
    return ["-netdev", f"socket,id=nic,connect=127.0.0.1:{wire}"]


def _hold_back(process: subprocess.Popen[bytes], percent: int) -> None:
    """Let a process run for that share of each tenth of a second, and stand still for the rest, until it has ended."""
    while process.poll() is None:
        for number, seconds in ((signal.SIGSTOP, _SLICE_S * (100 - percent) / 100), (signal.SIGCONT, _SLICE_S * percent / 100)):
            process.send_signal(number)
            time.sleep(seconds)
