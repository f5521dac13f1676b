"""Examine a machine that already exists, find our files on it, and remove these files and nothing else."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from gpucourse.errors import MissingError
from gpucourse.outside.documents import Meta
from gpucourse.outside.names import printable
from gpucourse.ports import Link
from gpucourse.remote import answers
from gpucourse.remote.agent import machine
from gpucourse.remote.jobs import estimate_skew, failure
from gpucourse.remote.patience import ANSWER_S

PYTHONS = (
    "python3",
    "python",
    "/opt/pytorch/bin/python",
    "/opt/conda/bin/python",
    "~/miniconda3/bin/python",
    "~/miniforge3/bin/python",
    "~/anaconda3/bin/python",
    "~/venv/bin/python",
    "~/.venv/bin/python",
)
MIN_PYTHON = (3, 8)
_CLEAR_S = 600.0  # an environment with torch has tens of thousands of files, and a shared file system may be slow
_PROGRAM = re.compile(r"/[^\x00-\x1f\x7f'\"$`;&|<>()*?\\!#~]{1,1000}")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}")
_LOOK = Path(machine.__file__).read_text(encoding="utf-8") + "print(json.dumps(look()))\n"
# Whatever this Python prints when it starts comes before its answer.
_LOOK_WITH_EACH = """look={look}
for python in {pythons}; do
answer=$("$python" -c "$look" 2>/dev/null) || continue
printf '%s\\n' "$answer" | tail -n 1
case "$answer" in *'"torch": true'*) break;; esac
done
true"""
_OURS = """
import hashlib, json, os, pwd, shutil, signal, sys, time
request = json.loads(sys.stdin.read())
homes = [os.environ.get("HOME") or os.path.expanduser("~")]
if request["shared"]:  # as the client names it, to the letter: links are named by a digest of the path
    homes.append("%s/gpucourse-%s" % (request["shared"], pwd.getpwuid(os.geteuid()).pw_name))
bases = [os.path.join(home, ".gpucourse") for home in homes]
labs, jobs = [os.path.join(base, "labs") for base in bases], [os.path.join(base, "jobs") for base in bases]
marks = [os.path.join(folder, request["uid"]) for folder in labs]
runs = [os.path.join(folder, run) for folder in jobs for run in request["runs"]]
def links():
    for run in runs:
        for start in ("/tmp/gpucourse-", os.path.join(os.path.dirname(os.path.dirname(run)), "tmp-")):
            link = start + hashlib.sha256(os.fsencode(run)).hexdigest()[:12]
            try: ours = os.lstat(link).st_uid == os.getuid() and os.readlink(link) == os.path.join(run, "tmp")
            except OSError: continue
            if ours: yield link
def alive():
    variables = ["GPUCOURSE_RUN_DIR=" + run for run in runs]
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open("/proc/%s/environ" % name, "rb") as file: words = file.read().decode("utf-8", "replace").split("\\0")
                with open("/proc/%s/stat" % name) as file: state = file.read().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX" and any(variable in words for variable in variables): yield int(name)
def end():
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 10.0)):
        until = time.monotonic() + patience
        for pid in alive():
            try: os.kill(pid, number)
            except OSError: pass
        while any(True for _ in alive()) and time.monotonic() < until: time.sleep(0.05)
def listed(folder):
    try: return os.listdir(folder)
    except OSError: return []
def environments():  # of `deploy --install`, if no other lab may use them
    for base, folder in zip(bases, labs):
        path = os.path.join(base, "venv")
        if set(listed(folder)) <= {request["uid"]} and os.path.lexists(path): yield path
if request["verb"] == "mark":
    if request["shared"] and not os.path.isdir(request["shared"]):
        sys.exit("there is no folder %s, which gpucourse.yaml names" % request["shared"])
    for mark in marks:
        try:
            os.makedirs(os.path.dirname(mark), 0o700, exist_ok=True)
            with open(mark, "w") as file: json.dump(request, file)
        except OSError as error: sys.exit("%s cannot be written: %s" % (mark, error.strerror))
if request["verb"] == "clear":
    until = time.monotonic() + 10.0
    while True:  # a process that has just begun is missed by one look, and may write while its folder is removed
        end()
        for link in links(): os.unlink(link)
        for run in runs: shutil.rmtree(run, ignore_errors=True)
        if not any(map(os.path.lexists, runs)) or time.monotonic() > until: break
        time.sleep(0.05)
    for mark in marks:
        try: os.unlink(mark)
        except OSError: pass
    for base in bases:
        ours = ("labs", "jobs", "store", "cache", "venv")
        only_ours = all(name in ours or name.startswith("agent-") for name in listed(base))
        used = listed(os.path.join(base, "labs")) or listed(os.path.join(base, "jobs"))
        if only_ours and not used: shutil.rmtree(base, ignore_errors=True)
    for path in environments(): shutil.rmtree(path, ignore_errors=True)
    for home in homes[1:]:  # made by us, and kept if it contains anything else
        try: os.rmdir(home)
        except OSError: pass
found = [("process", str(pid)) for pid in alive()] + [("link", path) for path in links()]
found += [("folder", path) for path in runs if os.path.lexists(path)]
found += [("folder", path) for path in environments()]
found += [("mark", path) for path in marks if os.path.lexists(path)]
print(json.dumps({"found": found, "others": len(listed(labs[0])) - os.path.lexists(marks[0])}))
"""


@dataclass(kw_only=True)
class HostFacts:
    """A machine's report on itself.

    `python`: the interpreter that answered.
    `torch`: whether this interpreter has torch.
    `folder`: the home folder.
    `addresses`: the IPv4 address of each network interface.
    `login_node`: whether the machine can submit jobs to a Slurm cluster that answers, but runs no jobs itself.
    `clock_skew_s`: how far its clock is ahead of this computer's.
    """

    python: str
    version: str
    torch: bool
    gpus: Annotated[list[str], Meta(max_length=64)]
    hostname: str
    boot: str
    folder: str
    inode: int
    device: int
    disk_free_bytes: int
    addresses: dict[str, str]
    clock: answers.Clock
    login_node: bool = False
    clock_skew_s: float = 0.0

    @property
    def identity(self) -> tuple[str, str]:
        """Return a key that is the same for two names that lead to the same home folder on the same machine."""
        return self.boot, f"{self.device}:{self.inode}"

    @property
    def home(self) -> tuple[str, str]:
        """Return a key that is the same on all machines that share a home folder."""
        return self.folder, str(self.inode)

    def __post_init__(self) -> None:
        if not _PROGRAM.fullmatch(self.python):
            raise ValueError("the path of its Python is invalid")
        if not _VERSION.fullmatch(self.version):
            raise ValueError("the version of its Python is invalid")
        answers.check_range(self.disk_free_bytes, 0, 1 << 70, "the free space on the disk")
        answers.folder(self.folder)
        self.gpus = [printable(gpu, 80) for gpu in self.gpus]
        self.hostname, self.boot = printable(self.hostname, 253), printable(self.boot, 80)
        self.addresses = answers.addresses(self.addresses)


_LINK = re.compile(r"(?:/tmp/gpucourse|/.*/\.gpucourse/tmp)-[0-9a-f]{12}")


@dataclass(kw_only=True)
class Belongings:
    """Our processes and files on a machine, as (kind, id).

    A `mark` is the note that a lab uses the machine. A `link` is a short link to a run's temporary files.
    `others`: how many other labs use the machine.
    """

    found: Annotated[tuple[tuple[Literal["process", "folder", "mark", "link"], str], ...], Meta(max_length=10_000)]
    others: Annotated[int, Meta(ge=0, le=10_000)]


def look(link: Link, pythons: Sequence[str] = PYTHONS) -> HostFacts:
    """Return the facts about the machine, in one request. Nothing is changed there.

    Of `pythons`, the first that has torch is chosen, otherwise the first that works. Raises MissingError if no Python 3.8 or
    newer is found.
    """
    words = " ".join(f'"$HOME"/{shlex.quote(name[2:])}' if name.startswith("~/") else shlex.quote(name) for name in pythons)
    asked_at = time.time()
    result = link.run(_LOOK_WITH_EACH.format(look=shlex.quote(_LOOK), pythons=words), timeout_s=ANSWER_S)
    reports = [
        answers.parse(link.node.label, "its report on itself", line, HostFacts)
        for line in result.stdout.splitlines()[: len(pythons)]
    ]
    usable = [answer for answer in reports if tuple(map(int, answer.version.split(".")))[:2] >= MIN_PYTHON]
    choice = next((answer for answer in usable if answer.torch), usable[0] if usable else None)
    if choice is None:
        older = ", ".join(f"{answer.python} is {answer.version}" for answer in reports)
        raise MissingError(
            f"{link.node.label} has no Python 3.8 or newer among {', '.join(pythons)}{older and f' ({older})'}",
            hint="name it in gpucourse.yaml: node_python: /home/me/venv/bin/python for all machines, or for this one alone: "
            f"host_pythons: {{{link.node.label}: /home/me/venv/bin/python}}",
        )
    choice.clock_skew_s = estimate_skew(asked_at, choice.clock)
    return choice


def mark(link: Link, uid: str, shared: str = "") -> Belongings:
    """Leave a note on the machine that one of our labs uses it, and return what we have there.

    If the lab uses `shared`, also leave the note in our folder below `shared`.
    """
    return _request_belongings(link, "mark", uid, (), shared)


def find_belongings(link: Link, uid: str, runs: Sequence[str], shared: str = "") -> Belongings:
    """Return this lab's processes and files on the machine and in `shared`, the folder that its cluster shares."""
    return _request_belongings(link, "look", uid, runs, shared)


def clear(link: Link, uid: str, runs: Sequence[str], shared: str = "") -> Belongings:
    """End these runs, and remove their folders and the lab's marks. Return what is left.

    If no other lab uses the machine or `shared`, also remove the environment of `deploy --install`. If our folder then contains
    nothing else, also remove everything else that we put there.
    """
    return _request_belongings(link, "clear", uid, runs, shared)


def _request_belongings(link: Link, verb: str, uid: str, runs: Sequence[str], shared: str = "") -> Belongings:
    request = json.dumps({"verb": verb, "uid": uid, "runs": list(runs), "shared": shared}).encode()
    result = link.run(shlex.join([link.node.python, "-I", "-S", "-c", _OURS]), stdin=request, timeout_s=_CLEAR_S)
    if not result.ok:
        raise failure(link.node, verb, result.code, result.stderr)
    subject = "its report on our files there"
    belongings = answers.parse(link.node.label, subject, result.stdout, Belongings)
    for kind, name in belongings.found:
        if not _is_of_request(kind, name, uid, runs):
            raise answers.make_untrusted_error(link.node.label, subject, f"{printable(name, 80)} is not one of them")
    return belongings


def _is_of_request(kind: str, name: str, uid: str, runs: Sequence[str]) -> bool:
    """Return whether an item belongs to the lab or the runs in the request. This is checked because its name becomes part of a
    command that a person types."""
    if kind == "process":
        return name.isascii() and name.isdigit() and len(name) <= 10
    if kind == "link":
        return answers.is_folder(name) and _LINK.fullmatch(name) is not None
    ends = [f"/labs/{uid}"] if kind == "mark" else ["/venv", *(f"/jobs/{run}" for run in runs)]
    return answers.is_folder(name) and any(name.endswith(f"/.gpucourse{end}") for end in ends)
