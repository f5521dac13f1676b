"""Boot one machine in a new process, and enter a machine from the namespace around it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from gpucourse.local.machines import daemons, kernel, link, network, root

_INSIDE = ("ipc", "uts", "net", "pid", "mnt")  # mnt is the last, because it changes /proc


def boot(disk: str, machine: Mapping[str, Any], tell: Callable[[dict[str, Any]], None]) -> None:
    """Turn this process, which the namespace has just forked, into the machine. Return when the machine is off.

    Report the id of the machine's first process, and then the result of its start.
    """
    kernel.die_with_parent(signal.SIGKILL)
    outer = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    kernel.unshare(kernel.NEW_MACHINE)
    _connect(outer, machine)
    os.close(outer)
    kernel.unshare(kernel.NEW_PIDS)  # only now: the first child after this is the machine's first process
    first = os.fork()
    if first == 0:
        _tell_result(tell, lambda: _begin(disk, machine))
        _be_first()
    tell({"pid": first})
    os.waitpid(first, 0)


def visit(pid: int, action: Callable[[], dict[str, Any]], tell: Callable[[dict[str, Any]], None]) -> None:
    """Enter the machine whose first process is `pid`, from a process that the namespace has just forked. Do the action there
    and report its result."""
    handles = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in _INSIDE]
    for handle in handles:
        kernel.enter(handle)
    os.chdir("/")
    child = os.fork()  # only a child is in the machine's own process namespace
    if child == 0:
        _tell_result(tell, action)
        os._exit(0)
    os.waitpid(child, 0)


def _connect(outer: int, machine: Mapping[str, Any]) -> None:
    """Lay the cable and bring up the machine's end of it. This process must already be in the machine's network."""
    pid, name = os.getpid(), str(machine["name"])
    laying = os.fork()
    if laying == 0:
        code = 1
        try:
            kernel.enter(outer)
            network.cut(name)  # the kernel needs a moment to remove the cable of a machine that has just gone off
            network.run("ip", network.cable_lines(name, pid))
            _shape(machine, f"c-{name}", delayed=False)
            code = 0
        except OSError as error:
            sys.stderr.write(f"{name}: {error}\n")
        finally:
            os._exit(code)
    _pid, status = os.waitpid(laying, 0)
    if status:
        raise OSError(f"no cable for {name}: see the outer namespace's log")
    network.run("ip", network.machine_lines(str(machine["address"])))
    _shape(machine, "eth0", delayed=True)


def _shape(machine: Mapping[str, Any], interface: str, *, delayed: bool) -> None:
    if machine.get("link"):
        network.run("tc", link.shape(link.parse(str(machine["link"])), interface, delayed=delayed))


def _begin(disk: str, machine: Mapping[str, Any]) -> dict[str, Any]:
    kernel.die_with_parent(signal.SIGKILL)
    kernel.set_name(str(machine["name"]))
    root.build(disk, machine)
    kernel.change_root(disk)
    os.environ["PATH"] = daemons.PATH
    daemons.ensure(machine)
    return {}


def _tell_result(tell: Callable[[dict[str, Any]], None], action: Callable[[], dict[str, Any]]) -> None:
    """Report the result of the action. If the action fails, report the error and end the process."""
    try:
        answer = action()
    except Exception as error:  # noqa: BLE001 (whatever it is, the client waits for an answer)
        tell({"error": str(error) or type(error).__name__})
        os._exit(1)
    tell(answer)


def _be_first() -> None:
    """Run as the first process of a machine. This process reaps processes without a parent, and the machine ends with it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD, signal.SIGTERM))
    while signal.sigwait((signal.SIGCHLD, signal.SIGTERM)) != signal.SIGTERM:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            continue
    os._exit(0)
