# 64 of these start at once: without pathlib, json and typing, each needs 15 ms of a processor instead of 25.
# ruff: noqa: PTH100, PTH101, PTH103, PTH105, PTH118, PTH119, PTH120, PTH123
"""The program that Terraform runs: `driver.py up FILE` and `driver.py down FILE` for a node, `driver.py trim FOLDER` for all of
them.

The environment holds the request: the node's spec, or for `trim` the stack's uid and the `count` of nodes that stay. `up`
writes FILE last, when the node answers; called again it repairs what is broken. `down` removes one node, and `trim` every node
whose number is `count` or higher. Both work from any half-built state, and with the last node remove everything of the stack.
Run by path with `python -I -S`, so only the standard library is available. The process that hosts the nodes does all the work;
the first driver starts it.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":  # run by path, outside any package; at the end, where it can shadow nothing
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from gpucourse.local import control

SPEC_VARIABLE = "GPUCOURSE_NODE_SPEC"

_ADD_S, _REMOVE_S, _PING_S = 3.0, 10.0, 3.0
_GIVE_UP_S = 120.0
_POLL_S = 0.02


class DriverError(Exception):
    """A node could not be brought up or taken down; the message says why."""


def main(arguments: list[str]) -> int:
    """Run `up FILE`, `down FILE` or `trim FOLDER`. An error goes to the standard error stream, which Terraform shows."""
    if len(arguments) != 2 or arguments[0] not in {"up", "down", "trim"} or SPEC_VARIABLE not in os.environ:
        sys.stderr.write(f"usage: {SPEC_VARIABLE}='{{...}}' driver.py up|down FILE, driver.py trim FOLDER\n")
        return 2
    verb, path = arguments
    try:
        if verb == "up":
            up(path, os.environ[SPEC_VARIABLE])
        elif verb == "down":
            down(path, os.environ[SPEC_VARIABLE])
        else:
            trim(path, os.environ[SPEC_VARIABLE])
    except (DriverError, control.ControlRefused, OSError, ValueError) as error:
        sys.stderr.write(f"cannot {verb} {path}: {error}\n" if verb == "trim" else f"cannot bring {path} {verb}: {error}\n")
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
        except control.HostAbsent:
            _start(folder, spec)
        except control.HostStuck:
            _replace(folder, ping_s)
        else:
            if word == "node":
                _write(file, node)
                return
            time.sleep(_POLL_S)  # the host of an earlier stack, which is already ending
    raise DriverError(f"no process hosts the nodes of {folder} after {_GIVE_UP_S:.0f} s; see its host.log")


def down(file: str, spec: str, *, remove_s: float = _REMOVE_S, ping_s: float = _PING_S) -> None:
    """End every process of the node and remove its files; with the last node, also the host and its files. Raises DriverError,
    ControlRefused, OSError.

    A host has `remove_s` seconds to answer, and `ping_s` to show that it lives, before it is ended.
    """
    _remove(os.path.dirname(os.path.abspath(file)), "remove", spec, remove_s, ping_s)


def trim(folder: str, spec: str, *, remove_s: float = _REMOVE_S, ping_s: float = _PING_S) -> None:
    """Do what `down` does for every node of the folder whose number is the `count` in `spec` or higher."""
    _remove(os.path.abspath(folder), "trim", spec, remove_s, ping_s)


def _remove(folder: str, verb: str, spec: str, remove_s: float, ping_s: float) -> None:
    """Ask the host until it has removed them, or remove them here if there is no host."""
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            os.chdir(folder)
            if _ask(verb, spec, remove_s) != "last":
                return
        except (control.HostAbsent, FileNotFoundError):
            pass  # there is none, or it is starting or ending: the lock shows which
        except control.HostStuck:
            _replace(folder, ping_s)
        if _remove_by_hand(folder, spec):
            return
    raise DriverError(f"the process that hosts the nodes of {folder} does not end; see its host.log")


def _ask(verb: str, spec: str, remove_s: float) -> str:
    """Have nodes removed; return "last" if none is left."""
    try:
        return control.ask(verb, spec, timeout_s=remove_s)[0]
    except control.ControlRefused:
        if verb != "trim":
            raise
    from gpucourse.local import keeper

    # An older host, or processes that do not end: with one request for each, every node is removed or reports its own problem.
    words, refusal = ["kept"], None
    for removal in keeper.list_removals(spec):
        try:
            words.append(control.ask("remove", removal, timeout_s=remove_s)[0])
        except control.ControlRefused as error:
            refusal = error
    if refusal is not None:
        raise refusal
    return words[-1]


def _start(folder: str, spec: str) -> None:
    """Start the host, unless another driver is already doing so."""
    from gpucourse.local import keeper

    try:
        if not keeper.start_host(folder, spec):
            time.sleep(_POLL_S)
    except keeper.HostDied as error:
        raise DriverError(str(error)) from error


def _replace(folder: str, ping_s: float) -> None:
    """Replace a host that does not answer at all (stopped, or hung) by a new one; a host that is only busy stays."""
    try:
        control.ask("ping", "{}", timeout_s=ping_s)
    except control.HostStuck:
        pass
    except control.HostAbsent:
        return
    else:
        return
    from gpucourse.local import keeper

    keeper.end_stuck_host(folder)


def _remove_by_hand(folder: str, spec: str) -> bool:
    """Do the work without a host; return whether its lock was free for that."""
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
