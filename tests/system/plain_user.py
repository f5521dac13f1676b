"""A plain user for tests that run as root: a user ID without an account, which is known only to the user's own commands.

Each command runs in its own mount namespace, where copies of /etc/passwd, /etc/subuid and /etc/subgid contain the user. If the
interpreter is behind a folder that is closed to others, a way through is opened there. Nothing on this computer is changed, and
nothing has to be undone.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import gpucourse
from tests.parts import need

NAME = "gpucourse-plain"  # a user ID that no computer uses
NUMBER, LENT, MANY = 61_234, 1_610_612_736, 65_536
_ETC = {
    "passwd": f"{NAME}:x:{NUMBER}:{NUMBER}::/nonexistent:/bin/bash\n",
    "group": f"{NAME}:x:{NUMBER}:\n",
    "subuid": f"{NAME}:{LENT}:{MANY}\n",
    "subgid": f"{NAME}:{LENT}:{MANY}\n",
}


def words_of_a_plain_user(folder: Path, *, lent: bool = True) -> tuple[str, ...]:
    """Return the words that make the plain user run a command. `folder` then belongs to the user.

    Without `lent` IDs, the user cannot create useful namespaces. Skip the test if this is impossible here.
    """
    if os.geteuid() != 0:
        pytest.skip("these tests run as a plain user already: the other tests of the cluster show what this one would")
    need("newuidmap")
    # The folders on the way through are for others, whatever the umask of the tests is.
    lines = ["set -e", "umask 022", f"cd {shlex.quote(str(folder))}", "mkdir -p etc aside"]
    absent = () if lent else ("subuid", "subgid")
    for name, line in ((name, line) for name, line in _ETC.items() if name not in absent):
        lines += [f"{{ cat /etc/{name}; printf %s {shlex.quote(line)}; }} >etc/{name}", f"mount --bind etc/{name} /etc/{name}"]
    lines += _ways_through()
    who = f"--reuid {NUMBER} --regid {NUMBER} --clear-groups --inh-caps=-all"
    lines += [f'exec {need("setpriv")} {who} -- "$@"']
    words = (need("unshare"), "--mount", "--propagation", "private", "sh", "-c", "\n".join(lines), "sh")
    folder.mkdir(exist_ok=True)
    for part in (folder, folder / "home", folder / "workspace"):
        part.mkdir(exist_ok=True)
        os.chown(part, NUMBER, NUMBER)
    for trial, lacking in (
        (["test", "-w", str(folder)], f"{folder.parent} is closed to a plain user"),
        ([sys.executable, "-c", "import gpucourse, asyncssh"], "the interpreter is not readable for a plain user"),
        ([need("unshare"), "--user", "--map-root-user", "true"], "a plain user may make no user namespace here"),
    ):
        result = subprocess.run([*words, *trial], capture_output=True, text=True, check=False, cwd="/")
        if result.returncode:
            pytest.skip(f"{lacking}: {result.stderr.strip()[-200:]}")
    return words


def _ways_through() -> list[str]:
    """Return shell lines that let others reach the interpreter and the package. A new folder is mounted over each closed
    folder, and contains nothing else.
    """
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(gpucourse.__file__).parents[2]}
    closed_parents = {
        path: next((parent for parent in reversed(path.parents) if not parent.stat().st_mode & 0o001), None) for path in folders
    }
    behind = {path: folder for path, folder in closed_parents.items() if folder is not None}
    names = {path: f"aside/{number}" for number, path in enumerate(sorted(behind))}
    lines = [f"mkdir -p {place} && mount --rbind {shlex.quote(str(path))} {place}" for path, place in names.items()]
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(folder))}" for folder in sorted(set(behind.values()))]
    for path, place in names.items():
        quoted = shlex.quote(str(path))
        lines.append(f"mkdir -p {quoted} && mount --rbind {place} {quoted}")
    return lines
