# Up to 64 drivers start at the same time. Without pathlib, json and typing, each needs 15 ms of processor time instead of 25.
# ruff: noqa: PTH100, PTH101, PTH103, PTH105, PTH118, PTH119, PTH120, PTH123
"""The program that Terraform runs: `driver.py up FILE` and `driver.py down FILE` for one node, `driver.py trim FOLDER` for all
nodes.

The environment contains the request: the node's spec or, for `trim`, the stack's uid and the `count` of nodes to keep.

`up` writes FILE last, when the node answers. If it is called again, it repairs what is broken.

`down` removes one node, and `trim` removes every node whose number is `count` or higher. Both work even if the stack is only
half built. When they remove the last node, they also remove everything else that belongs to the stack.

The program is run by path with `python -I -S`, so only the standard library is available. The process that hosts the nodes does
all the work; the first driver starts it.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":  # run by path, outside any package; a folder at the end of the path shadows nothing
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from gpucourse.local import control

SPEC_VARIABLE = "GPUCOURSE_NODE_SPEC"

_ADD_S, _REMOVE_S, _PING_S = 3.0, 10.0, 3.0
_GIVE_UP_S = 120.0
_POLL_S = 0.02


def main(arguments: list[str]) -> int:
    """Run `up FILE`, `down FILE` or `trim FOLDER`. Errors go to standard error, which Terraform shows."""
    if len(arguments) != 2 or arguments[0] not in {"up", "down", "trim"} or SPEC_VARIABLE not in os.environ:
        sys.stderr.write(f"usage: {SPEC_VARIABLE}='{{...}}' driver.py up|down FILE, driver.py trim FOLDER\n")
        return 2
    verb, path = arguments
    try:
        if verb == "up":
            up(path, os.environ[SPEC_VARIABLE])
        else:
            folder = path if verb == "trim" else os.path.dirname(os.path.abspath(path))
            remove(folder, os.environ[SPEC_VARIABLE])
    except (control.DriverError, control.ControlRefused, OSError, ValueError) as error:
        sys.stderr.write(f"cannot {verb} {path}: {error}\n" if verb == "trim" else f"cannot bring {path} {verb}: {error}\n")
        return 1
    return 0


def up(file: str, spec: str, *, add_s: float = _ADD_S, ping_s: float = _PING_S) -> None:
    """Make the host bring up the node of `spec`, and write Terraform's description of the node to `file`.

    A host has `add_s` seconds to answer, and then `ping_s` seconds to show that it is alive, before another host replaces it.
    Raises control.DriverError, control.ControlRefused, OSError.
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
            from gpucourse.local import keeper

            if not keeper.start_host(folder, spec):  # another driver is already doing so
                time.sleep(_POLL_S)
        except control.HostStuck:
            _replace(folder, ping_s)
        else:
            if word == "node":
                _write(file, node)
                return
            time.sleep(_POLL_S)  # the host of an earlier stack, which is already ending
    raise control.DriverError(f"no process hosts the nodes of {folder} after {_GIVE_UP_S:.0f} s; see its host.log")


def remove(folder: str, spec: str, *, remove_s: float = _REMOVE_S, ping_s: float = _PING_S) -> None:
    """End every process and remove every file of the nodes that `spec` selects (see `layout.select_nodes`).

    If no node is left, also end the host and remove its files. If there is no host, this process does the work itself.

    A host has `remove_s` seconds to answer, and then `ping_s` seconds to show that it is alive, before it is ended. Raises the
    errors of `up`, and ValueError.
    """
    folder = os.path.abspath(folder)
    deadline = time.monotonic() + _GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            os.chdir(folder)
            if control.ask("remove", spec, timeout_s=remove_s)[0] != "last":
                return
        except (control.HostAbsent, FileNotFoundError):
            pass  # there is none, or it is starting or ending: the lock shows which
        except control.HostStuck:
            _replace(folder, ping_s)
        from gpucourse.local import keeper

        if keeper.remove_by_hand(folder, spec):
            return
    raise control.DriverError(f"the process that hosts the nodes of {folder} does not end; see its host.log")


def _replace(folder: str, ping_s: float) -> None:
    """End a host that does not answer even a ping (stopped, or hung), so that a new one can replace it. A host that is only
    busy continues."""
    try:
        control.ask("ping", "{}", timeout_s=ping_s)
    except control.HostAbsent:
        return
    except control.HostStuck:
        from gpucourse.local import keeper

        keeper.end_stuck_host(folder)


def _write(file: str, text: str) -> None:
    """Write in one step, so that a reader sees either the old file or the new one."""
    aside = os.path.join(os.path.dirname(file), f".{os.path.basename(file)}.{os.getpid()}")
    with open(aside, "w", encoding="utf-8") as content:
        content.write(text + "\n")
    os.replace(aside, file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
