"""A machine under QEMU, without KVM: its disk, its serial console, its power button, and the processor time that it gets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.boot import wire
from tests.boot.image import Image

_KERNEL = "root=/dev/vda rw console=ttyS0 net.ifnames=0 mitigations=off"
_SLICE_S, _PERIOD_S = 0.02, 0.1  # what it did not use in a period is lost
_CPUCLOCK_SCHED = 2  # clock_getcpuclockid(3): the clock of a process by its number


@dataclass
class Machine:
    """A machine that can be started again and again on the same disk. `number` counts those on one wire, from 0.

    `network` is what QEMU is told of the network beyond the device, `kernel` what Linux is told beyond the usual; `percent` is
    how much of one processor it gets at most, 0 for as much as there is.
    """

    folder: Path
    image: Image
    network: list[str]
    number: int = 0
    processors: int = 2
    memory_mb: int = 1024
    percent: int = 0
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
    def address(self) -> str:
        return wire.address(self.number)

    @property
    def console(self) -> str:
        """All that the serial console showed since the last start."""
        path = self.folder / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Switch it on."""
        assert self.process is None
        (self.folder / "console").unlink(missing_ok=True)
        identity = f"ec2e1916-9099-7caf-fd21-0123456789{self.number:02x}"  # cloud-init knows EC2 by its first letters
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
        command += [*self.network, "-device", f"virtio-net-pci,netdev=nic,mac={wire.mac(self.number)},romfile="]
        command += ["-serial", f"file:{self.folder / 'console'}", "-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off"]
        with (self.folder / "qemu.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        if self.percent:
            threading.Thread(target=_hold_back, args=(self.process, self.percent), daemon=True).start()

    @property
    def processor_s(self) -> float:
        """The processor time that QEMU has used since the last start."""
        assert self.process is not None
        return _processor_s(self.process.pid)

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
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(120)
            monitor.connect(str(self.folder / "qmp"))
            with monitor.makefile("rwb") as lines:
                for command in ("qmp_capabilities", "system_powerdown"):
                    lines.write(json.dumps({"execute": command}).encode() + b"\n")
                    lines.flush()
                    while not {"return", "error"} & (said := json.loads(lines.readline())).keys():
                        continue
                    assert "return" in said, said

    def close(self) -> None:
        """End it, whatever it does: its own process group and nothing else."""
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


def _hold_back(process: subprocess.Popen[bytes], percent: int) -> None:
    """Let a process have so much of one processor, as systemd's CPUQuota= does, until it has ended: it runs for a slice, and
    stands still then until what it used is no more than its share."""
    free = time.monotonic()
    while process.poll() is None:
        before = _processor_s(process.pid)
        process.send_signal(signal.SIGCONT)
        time.sleep(_SLICE_S)
        process.send_signal(signal.SIGSTOP)
        free = max(free, time.monotonic() - _PERIOD_S) + (_processor_s(process.pid) - before) * 100 / percent
        time.sleep(max(0.0, free - time.monotonic()))


def _processor_s(pid: int) -> float:
    """The processor time of a process; 0 where it has ended."""
    try:
        return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0.0
