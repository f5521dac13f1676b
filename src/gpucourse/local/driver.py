# 64 of these start at once: without pathlib, json and typing, each takes 15 ms of a processor instead of 25.
# ruff: noqa: PTH100, PTH101, PTH103, PTH105, PTH118, PTH119, PTH120, PTH123
"""What Terraform runs for a node: `driver.py up FILE`, `driver.py down FILE`, with the node's spec in the environment.

`up` leaves the node answering and writes FILE last; called again it repairs what is broken. `down` works from any half-built
state, and the last one leaves the folder empty. If every node of the stack is removed, GPUCOURSE_CLEARED names a file: the
first `down` has all of them removed and creates that file, and Terraform then starts no other driver. Run by path with `python
-I -S`, so only the standard library is available. The process that hosts the nodes does all the work; the first driver starts
it.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":  # run by path, outside any package; at the end, where it can shadow nothing
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from gpucourse.local import control

SPEC_VARIABLE = "GPUCOURSE_NODE_SPEC"
CLEARED_VARIABLE = "GPUCOURSE_CLEARED"

_ADD_S, _REMOVE_S, _PING_S = 3.0, 10.0, 3.0
_GIVE_UP_S = 120.0
_POLL_S = 0.02


class DriverError(Exception):
    """The node could not be brought up or taken down; the message says why."""


def main(arguments: list[str]) -> int:
    """`up FILE` or `down FILE`. An error goes to the standard error stream, which Terraform shows."""
    if len(arguments) != 2 or arguments[0] not in {"up", "down"} or SPEC_VARIABLE not in os.environ:
        sys.stderr.write(f"usage: {SPEC_VARIABLE}='{{...}}' driver.py up|down FILE\n")
        return 2
    verb, file = arguments
    try:
        if verb == "up":
            up(file, os.environ[SPEC_VARIABLE])
        else:
            down(file, os.environ[SPEC_VARIABLE], cleared=os.environ.get(CLEARED_VARIABLE, ""))
    except (DriverError, control.ControlRefused, OSError) as error:
        sys.stderr.write(f"cannot bring {file} {verb}: {error}\n")
        return 1
    return 0


def up(file: str, spec: str, *, add_s: float = _ADD_S, ping_s: float = _PING_S) -> None:
    """Have the node of `spec` hosted, and write what Terraform reads about it to `file`. Raises DriverError, ControlRefused,
    OSError.

    A host has `add_s` seconds to answer, and `ping_s` to show that it lives, before another one replaces it.
    """
    folder = os.path.dirname(os.path.abspath(file))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    os.chdir(folder)
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            word, node = control.ask("add", spec, timeout_s=add_s)
        except control.NobodyAnswers:
            _start(folder, spec)
        except control.HostStuck:
            _replace(folder, ping_s)
        else:
            if word == "node":
                _write(file, node)
                return
            time.sleep(_POLL_S)  # the host of an earlier stack, which is already ending
    raise DriverError(f"no process hosts the nodes of {folder} after {_GIVE_UP_S:.0f} s; see its host.log")


def down(file: str, spec: str, *, cleared: str = "", remove_s: float = _REMOVE_S, ping_s: float = _PING_S) -> None:
    """End every process of the node and remove its files; with the last node, also the host and its files. Raises DriverError.

    `cleared`: every node of the stack is removed, and this file is created once all of them are gone.

    A host has `remove_s` seconds to answer, and `ping_s` to show that it lives, before it is ended.
    """
    folder = os.path.dirname(os.path.abspath(file))
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            os.chdir(folder)
            if _remove(spec, cleared, remove_s) != "last":
                return
        except (control.NobodyAnswers, FileNotFoundError):
            pass  # there is none, or it is starting or ending: the lock tells which
        except control.HostStuck:
            _replace(folder, ping_s)
        if _remove_by_hand(folder, spec):
            return
    raise DriverError(f"the process that hosts the nodes of {folder} does not end; see its host.log")


def _remove(spec: str, cleared: str, remove_s: float) -> str:
    """Have the node removed, or every node of the stack; gives whether it was the "last" one."""
    if cleared:
        try:
            word = control.ask("clear", spec, timeout_s=remove_s)[0]
        except control.ControlRefused:
            word = "each"  # an older host, or processes that do not end: asked one by one, each node reports its own problem
        if word != "each":
            try:
                os.close(os.open(cleared, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            except OSError as error:
                sys.stderr.write(f"cannot make {cleared}, so every node has a driver of its own: {error}\n")
            return word
    return control.ask("remove", spec, timeout_s=remove_s)[0]


def _start(folder: str, spec: str) -> None:
    """Start the host, unless another driver is already doing so."""
    from gpucourse.local import keeper

    try:
        if not keeper.start_host(folder, spec):
            time.sleep(_POLL_S)
    except keeper.HostDied as error:
        raise DriverError(str(error)) from error


def _replace(folder: str, ping_s: float) -> None:
    """A host that does not answer at all (stopped, or hung) is replaced by a new one; one that is only busy is not."""
    try:
        control.ask("ping", "{}", timeout_s=ping_s)
    except control.HostStuck:
        pass
    except control.NobodyAnswers:
        return
    else:
        return
    from gpucourse.local import keeper

    keeper.end_stuck_host(folder)


def _remove_by_hand(folder: str, spec: str) -> bool:
    """Do the work without a host; gives whether its lock was free for that."""
    from gpucourse.local import keeper

    try:
        return keeper.remove_by_hand(folder, spec)
    except keeper.StillAlive as error:
        raise DriverError(str(error)) from error


def _write(file: str, text: str) -> None:
    """Write in one step, so that a reader sees the old file or the new one."""
    aside = os.path.join(os.path.dirname(file), f".{os.path.basename(file)}.{os.getpid()}")
    with open(aside, "w", encoding="utf-8") as content:
        content.write(text + "\n")
    os.replace(aside, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
