"""Judge my_container.sh of 7.4 by what a program sees in it. This needs Linux, with namespaces allowed."""

from __future__ import annotations

import sys
from pathlib import Path

import containers

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "host-processes": Way(
        "the program sees {pids} processes, and {host} run on this computer: its own process numbers need --pid, with "
        "--fork, since the process that calls unshare keeps its number",
        ("--pid --fork --uts --ipc sh -c '\n",
         "--uts --ipc sh -c '\n    mount() { case $* in *proc*) ;; *) command mount \"$@\" ;; esac; }\n"),
    ),
    "old-proc": Way(
        "the program is process {pid} and still sees {pids} processes: /proc is the host's. Mount a separate one where the "
        "root folder will be",
        ("    mount -t proc proc /tmp/root/proc\n", ""),
    ),
    "host-name": Way(
        "the program's hostname is {hostname}: it has to be container. In a separate namespace (--uts), setting it does not "
        "change the host's",
        ("    hostname container\n", ""),
    ),
    "root-writable": Way(
        "the program can write below {places}: a bind mount of / brings other mounts with it (--rbind), and each has to become "
        "read-only",
        ("2>/dev/null || mount -o remount,bind,ro,nosuid,nodev,noexec", "--fake 2>/dev/null || mount -o remount,bind,rw"),
    ),
    "no-tmp": Way(
        "the program cannot write to /tmp: give it a separate tmpfs there",
        ("    mount -t tmpfs none /tmp/root/tmp\n", ""),
    ),
    "words-split": Way(
        'the program got the arguments {given}, but they were {right}: pass them on as "$@", with the quotes',
        ('exec chroot /tmp/root "$@"', "exec chroot /tmp/root $@"),
    ),
    "no-user": Way(
        "unshare was refused ({why}): if you are not root, only a user namespace allows the rest: --user --map-root-user",
        ("unshare --user --map-root-user --mount", "unshare --mounts"),
    ),
    "does-not-run": Way(
        "the command does not run in it: {why}",
        ('exec chroot /tmp/root "$@"', 'exec chroot /tmp/other "$@"'),
    ),
}  # fmt: skip


WORDS = ["two words", "$HOME"]


def judge(part: Part) -> None:
    """Judge the output of one program that runs inside."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict(
            "open", sentence="as delivered: the program sees the host's processes, has the host's name, and can write"
        )
    reason = containers.find_reason("namespaces") if sys.platform == "linux" else "only Linux has namespaces"
    if reason is not None:
        raise Verdict("open", sentence=f"it cannot be tried here: {reason}")
    host_view = containers.look([])[0]
    answer, cause = containers.repeat(["sh", str(part.file)], WORDS)
    if cause is None and answer != WORDS:
        raise part.wrong("words-split", given=answer, right=WORDS)
    view, cause = containers.look(["sh", str(part.file)])
    if cause is not None:
        raise part.wrong("no-user" if "unshare" in cause else "does-not-run", why=cause)
    if view["pids"] > 5:
        way = "old-proc" if view["pid"] < 5 else "host-processes"
        raise part.wrong(way, pids=view["pids"], host=host_view["pids"], pid=view["pid"])
    if view["hostname"] != "container":
        raise part.wrong("host-name", hostname=view["hostname"])
    if not view["own_tmp"]:
        raise part.wrong("no-tmp")
    if view["writable"]:
        raise part.wrong("root-writable", places=", ".join(view["writable"][:4]))
    part.note(
        f"the program sees {view['pids']} of {host_view['pids']} processes, is named container, and can write only to /tmp"
    )
