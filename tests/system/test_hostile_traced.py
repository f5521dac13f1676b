"""What a command does to files while a node lies about names: every call of the real command that opens, makes, changes or
removes one, as strace sees it. All of them stay inside the workspace, and the learner's own files are not even asked about."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.liar import Lie
from tests.lies import LIES, SECRET
from tests.lying_lab import COMMAND, RUN, LyingLab, lab
from tests.parts import lack
from tests.waiting import STUCK_S

__all__ = ["lab"]  # a fixture

pytestmark = [pytest.mark.system, pytest.mark.slow]

ABOUT_NAMES = [
    lie
    for lie in LIES
    if lie.message in {"pack", "follow"}
    and lie.after == "exit"
    and (b".." in lie.out or SECRET.encode() in lie.out or b"/tmp" in lie.out)
]
"""Every lie that names a place outside the run's folder."""

_CHANGES = {"unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "link", "linkat", "symlink"}
_CHANGES |= {"symlinkat", "truncate", "chmod", "fchmodat", "chown", "fchownat", "utimensat", "mknod", "mknodat", "creat"}
_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")
_AT = re.compile(r'(?:AT_FDCWD|\d+)<([^>]*)>, "((?:[^"\\]|\\.)*)"')
_NAME = re.compile(r'^"((?:[^"\\]|\\.)*)"')


def read_trace(trace: str) -> tuple[set[str], set[str]]:
    """The paths that were asked about or opened, whether or not that succeeded; and those that were opened to write, made,
    changed or removed."""
    named, changed = set(), set()
    for line in trace.splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        name, arguments = call[1], call[2]
        paths = {os.path.normpath(Path(folder, path)) for folder, path in _AT.findall(arguments)}
        paths |= {os.path.normpath(path) for path in _NAME.findall(arguments)}
        named |= paths
        writes = name in {"open", "openat"} and re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", arguments)
        if int(call[3]) >= 0 and (name in _CHANGES or writes):
            changed |= paths
    return named, changed


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lie", ABOUT_NAMES, ids=[lie.name for lie in ABOUT_NAMES])
def test_no_call_leaves_the_workspace(lab: LyingLab, lie: Lie) -> None:
    strace = shutil.which("strace")
    if strace is None:
        lack("strace")
    lab.tell(lie)
    root, workspace, log = lab.root, lab.workspace, lab.root / "calls"
    secrets = [root / SECRET, workspace / SECRET]  # the way out that the table names leads to the second
    for secret in secrets:
        secret.write_text("the learner's own words\n")
    traced = [strace, "-f", "-y", "-qq", "-s", "4096", "-e", "trace=%file", "-o", str(log)]
    words = [*traced, *COMMAND, *RUN, lab.script, "--timeout", "10s"]
    done = subprocess.run(words, env=lab.environ, capture_output=True, text=True, check=False, timeout=STUCK_S)
    if "ptrace" in done.stderr and not log.read_text():
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert lie.message in lab.node.asked
    named, changed = read_trace(log.read_text(errors="replace"))
    assert any(path.startswith(f"{workspace}/runs/") for path in changed), "the trace sees what the run writes"
    ours = (
        f"{workspace}/runs",
        f"{workspace}/.gpucourse",
        f"{workspace}/exercises",
        f"{root}/home/.cache",
        f"{root}/home/.config",
        f"{root}/tmp",
        "/dev/",
        "/proc/",
    )
    assert [path for path in sorted(changed) if not path.startswith(ours)] == []
    assert not named & {str(secret) for secret in secrets}
