"""What a hostile node may answer, as data: to every question of the protocol, and of Slurm's; and which command hears it.

`tests/liar.py` tells these. What the readers of answers refuse is in their own tests (documents, tars, follow, collect, host
probe): here is what a command makes of an answer that is refused, never ends, or is taken and shown.
"""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from tests.liar import CLUSTER, END, JOB, MACHINE, PROBE, RANK, Lie, as_json, parcel

SECRET = "learner_secret.txt"
"""A file of the learner, beside the workspace: four folders above the outputs of a node, and five above a log's folder."""

WAY_OUT = f"../../../../../{SECRET}"
ESCAPE = "\x1b[31m\x1b]0;title\x07\x9b2J\u202e\r\n"

ANSWERS = ("machine", "belongings", "probe", "start", "state", "cancel", "cluster")
_SLURM = {"cluster", "programs"}

_FORMS: dict[str, dict[str, Any]] = {
    "is no JSON": {"out": b"hello\n"},
    "is an empty object": {"out": b"{}\n"},
    "is nested 100,000 deep": {"out": b"[" * 100_000},
    "is not UTF-8": {"out": b"\xff\xfe\x00{}"},
    "does not end": {"out": b"y\n" * 8000, "after": "endless"},
    "has errors that do not end": {"err": b"y\n" * 8000, "after": "endless"},
    "comes drop by drop": {"out": b"x", "after": "drop"},
    "has errors drop by drop": {"err": b"x", "after": "drop"},
    "does not come": {"after": "silence"},
    "is cut": {"out": b"{", "after": "cut"},
    "has no marks": {"out": b"{}", "bare": True},
    "is a failure with escapes": {"err": ESCAPE.encode() * 300, "code": 1},
    "is an error with escapes": {"out": as_json({"error": ESCAPE * 300, "kind": ESCAPE}), "code": 3},
    "is an error of numbers": {"out": as_json({"error": 1, "kind": [1]}), "code": 3},
    "is an error of the disk": {"out": as_json({"error": "full", "kind": "storage"}), "code": 3},
    "is an error of an unknown kind": {"out": as_json({"error": "odd", "kind": "odd"}), "code": 3},
    "is an error about Slurm": {"out": as_json({"error": ESCAPE + "munged is gone", "kind": "slurm"}), "code": 3},
    "says that there is no Python": {"code": 127},
    "says that there is no agent, always": {"code": 97},
    "ended with code 255": {"code": 255},
}


ENDS = {
    "is no JSON",
    "is an empty object",
    "does not come",
    "is cut",
    "is a failure with escapes",
    "is an error of the disk",
    "is an error about Slurm",
    "says that there is no Python",
    "says that there is no agent, always",
}
"""One form for each error that comes of an answer."""


def _forms() -> Iterator[Lie]:
    for message in ANSWERS:
        for name, fields in _FORMS.items():
            if message == "probe" or name in ENDS:
                yield Lie(name=f"{message} {name}", message=message, slurm=message in _SLURM, **fields)


def _change_fields(
    message: str, honest: dict[str, Any], changes: dict[str, dict[str, Any]], *, slurm: bool = False
) -> Iterator[Lie]:
    for name, change in changes.items():
        yield Lie(name=f"{message}: {name}", message=message, out=as_json({**honest, **change}), slurm=slurm)


_PROBE = {**PROBE, "modules": {"torch": {"found": True, "version": "2"}}, "ports": [29500], "clock": 1.7e9}
_PROBES: dict[str, dict[str, Any]] = {
    "a host name of escapes": {"hostname": ESCAPE},
    "a host name of 100,000 characters": {"hostname": "h" * 100_000},
    "an interface of a shell": {"interfaces": {"$(touch /tmp/pwn)": "10.0.0.1"}},
    "an address that is none": {"interfaces": {"eth0": "10.0.0.1; touch pwn"}},
    "a port of 0": {"ports": [0]},
    "a port that was not asked for": {"ports": [22]},
    "ports of words": {"ports": ["29500"]},
    "minus one core": {"cores": -1},
    "a clock in the year 5100": {"clock": 9.9e10},
    "a billion cores": {"cores": 1 << 30},
    "a clock of the year 30 million": {"clock": 1e15},
    "modules that were not asked for": {"modules": {ESCAPE: {"found": False}}},
    "no modules": {"modules": {}},
    "a program that was not asked for": {"missing_programs": [ESCAPE]},
    "a version of escapes": {"python": ESCAPE},
    "true for a number": {"cores": True},
}
_MACHINE = {**MACHINE, "clock": 1.7e9}
_MACHINES: dict[str, dict[str, Any]] = {
    "a Python of a shell": {"python": "/usr/bin/python3; touch /tmp/pwn #"},
    "a version of ten thousand digits": {"version": "9" * 10_000 + ".1.1"},
    "GPUs of escapes": {"gpus": [ESCAPE] * 8},
    "a thousand GPUs": {"gpus": ["T4"] * 1000},
    "a home of escapes": {"home": ESCAPE},
    "a disk of minus one byte": {"disk_free_bytes": -1},
}
_BELONGINGS: dict[str, dict[str, Any]] = {
    "a process of a shell": {"found": [{"kind": "process", "id": "1; touch /tmp/pwn"}]},
    "a folder of a shell": {"found": [{"kind": "folder", "id": "/h/.gpucourse/jobs/$(touch /tmp/pwn)"}]},
    "a hundred thousand things": {"found": [{"kind": "process", "id": "1"}] * 20_000},
    "minus one lab": {"others": -1},
}
_STATES: dict[str, dict[str, Any]] = {
    "a word that is none": {"state": ESCAPE},
    "an exit with a code of 10^30": {"exit": {**END, "code": 10**30}},
    "an exit after minus one second": {"exit": {**END, "seconds": -1}},
    "an exit after 1e300 seconds": {"exit": {**END, "seconds": 1e300}},
    "an exit without a reason": {"exit": {"code": 0}},
    "ranks of words": {"ranks": {ESCAPE: RANK}},
    "rank minus one": {"ranks": {"-1": RANK}},
    "a rank elsewhere": {"ranks": {"0": {**RANK, "node": WAY_OUT}}},
    "a list of ranks": {"ranks": [RANK]},
}
_CLUSTERS: dict[str, dict[str, Any]] = {
    "a node with a way out": {"nodes": [{**CLUSTER["nodes"][0], "node": WAY_OUT}]},
    "a partition of a shell": {"nodes": [{**CLUSTER["nodes"][0], "partition": "x\n#SBATCH --wrap=touch pwn"}]},
    "minus one GPU": {"nodes": [{**CLUSTER["nodes"][0], "gpus": -1}]},
    "a home that is none": {"home": "relative"},
    "no nodes": {"nodes": []},
}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _make_name_frames(node: object, rank: object) -> bytes:
    return frame(frames.NAMED, 1, 0, _json({"node": node, "rank": rank})) + frame(frames.LOG, 1, 0, b"pwned\n")


_END = frame(frames.END, 0, 0, _json(END))
_FOLLOWS: dict[str, bytes] = {
    "an unknown kind": frame(b"\x1b"),
    "an end before anything": _END,
    "a log of escapes": frame(frames.LOG, 1, 0, ESCAPE.encode() * 100) + _END,
    "a log of zeros": frame(frames.LOG, 1, 0, bytes(1 << 19)) + _END,
    "a rank's end of escapes": frame(frames.RANK, 1, 0, _json({**RANK, "code": ESCAPE})),
    "an end with jobs of escapes": frame(frames.END, 0, 0, _json({**END, "jobs": [{**JOB, "state": ESCAPE, "node": ESCAPE}]})),
    "nothing at all": b"",
}
_FOLLOWS_OF_SLURM: dict[str, bytes] = {
    "a name with a way out": _make_name_frames(WAY_OUT, 0) + _END,
    "an absolute name": _make_name_frames("/tmp/pwn", 0) + _END,
    "a name of escapes": _make_name_frames(ESCAPE, 0) + _END,
}


def _add_link(tar: tarfile.TarFile) -> None:
    link = tarfile.TarInfo("files/way")
    link.type, link.linkname = tarfile.SYMTYPE, "/tmp"
    tar.addfile(link)


def _begin_file(name: str, size: int) -> bytes:
    """A parcel's beginning, up to the header of a file of that size."""
    member = tarfile.TarInfo(name)
    member.size = size
    return parcel({}).partition(b"closing.json")[0] + member.tobuf(tarfile.GNU_FORMAT)


_PACKS: dict[str, bytes] = {
    "a secret as the same": parcel({}, listing={"same": [WAY_OUT]}),
    "a secret as the same and changed": parcel({"files/a": b"x"}, listing={"same": [WAY_OUT]}, closing={"changed": [WAY_OUT]}),
    "a secret as changed": parcel({"files/a": b"x"}, closing={"changed": [WAY_OUT, "../../run.json", "a"]}),
    "the record as the same": parcel({}, listing={"same": ["../../run.json"]}),
    "/dev/zero as the same": parcel({}, listing={"same": ["../" * 12 + "dev/zero"]}),
    "left with escapes": parcel({}, listing={"left": [{"name": ESCAPE, "reason": ESCAPE * 100}]}),
    "an environment of escapes": parcel({}, listing={"env": {ESCAPE: ESCAPE, "gpus": [{ESCAPE: ESCAPE}]}}),
    "a way out": parcel({f"files/{WAY_OUT}": b"pwned"}),
    "an absolute name": parcel({"/tmp/pwn": b"pwned"}),
    "a name beside files/": parcel({"../../run.json": b"pwned"}),
    "a name of escapes": parcel({f"files/{ESCAPE}": b"x"}),
    "a name of 5,000 characters": parcel({"files/" + "n" * 5000: b"x"}),
    "a link": parcel({}, more=_add_link),
    "no tar at all": b"no tar at all" * 1000,
    "nothing": b"",
    "metrics nested 3,000 deep": parcel({"files/metrics.json": b"[" * 3000 + b"]" * 3000}),
    "metrics of 2 million numbers": parcel({"files/metrics.json": b'{"a":[' + b"1," * 2_000_000 + b"1]}"}),
    "metrics of 400 digits": parcel({"files/metrics.json": b'{"a": ' + b"9" * 400 + b"}"}),
    "metrics of escapes": parcel({"files/metrics.json": _json({ESCAPE: ESCAPE, "a": [{"b": 1e308}]})}),
    "metrics that are a list": parcel({"files/metrics.json": b"[]"}),
}


def _streams(message: str, told: dict[str, bytes], *, slurm: bool = False) -> Iterator[Lie]:
    for name, out in told.items():
        yield Lie(name=f"{message}: {name}", message=message, out=out, slurm=slurm)


def _odd() -> Iterator[Lie]:
    beat = frame(frames.BEAT)
    yield Lie(name="follow: signs of life without end", message="follow", out=beat * 100, after="endless")
    yield Lie(name="follow: signs of life drop by drop", message="follow", out=beat[:1], after="drop")
    yield Lie(name="follow: empty pieces without end", message="follow", out=frame(frames.LOG, 1, 0) * 50, after="endless")
    yield Lie(name="follow: silence", message="follow", after="silence")
    yield Lie(name="follow: cut again and again", message="follow", out=frame(frames.BEAT), after="cut")
    yield Lie(name="follow: a failure", message="follow", err=as_json({"error": ESCAPE, "kind": "cut"}), code=3)
    yield Lie(name="pack: zeros without end", message="pack", out=bytes(1 << 16), after="endless")
    yield Lie(
        name="pack: a good parcel, then zeros without end", message="pack", out=parcel({"files/a": b"1"}), after="endless"
    )
    yield Lie(name="pack: drop by drop", message="pack", out=b"l", after="drop")
    yield Lie(name="pack: silence", message="pack", after="silence")
    yield Lie(name="pack: errors without end", message="pack", err=b"y" * 16_000, after="endless")
    yield Lie(name="pack: a failure with escapes", message="pack", err=ESCAPE.encode() * 1000, code=1)
    yield Lie(name="pack: a file that does not end", message="pack", out=_begin_file("files/a", 1 << 29), after="endless")
    yield Lie(name="store: a listing without end", message="store", out=b"s-" + b"0" * 64 + b"\n", after="endless")
    yield Lie(name="store: names of escapes", message="store", out=ESCAPE.encode() * 100)
    yield Lie(name="store: everything is there", message="store", out=b"\xff" * 1000)
    yield Lie(name="take: a failure with escapes", message="take", err=ESCAPE.encode(), code=74)
    yield Lie(name="take: the disk is full", message="take", err=b"No space left on device " + ESCAPE.encode(), code=1)
    yield Lie(name="take: silence", message="take", after="silence")
    yield Lie(name="follow: there is never an agent", message="follow", code=97)
    yield Lie(name="install: a failure", message="install", err=ESCAPE.encode(), code=1)
    yield Lie(name="route: an interface of a shell", message="route", out=b"10.0.0.5 dev $(touch${IFS}pwn) src 10.0.0.5\n")
    yield Lie(name="route: an interface of escapes", message="route", out=b"10.0.0.5 dev \x1b[31m src\n")
    yield Lie(name="route: words without end", message="route", out=b"dev " * 4000, after="endless")
    yield Lie(name="programs: words without end", message="programs", out=b"/x\n" * 4000, after="endless", slurm=True)
    yield Lie(name="programs: silence", message="programs", after="silence", slurm=True)
    yield Lie(name="look: ranks of words", message="look", out=as_json({"ranks": {ESCAPE: ESCAPE}}))
    yield Lie(name="look: a word that is none", message="look", out=as_json({"ranks": {"0": ESCAPE}}))
    yield Lie(name="look: silence", message="look", after="silence")
    yield Lie(name="look: words without end", message="look", out=b"[" * 8000, after="endless")
    header = frames.HEADER.pack(b"L", 1, 0, 1 << 20)
    yield Lie(name="follow: a header alone, without end", message="follow", out=header, after="endless")


LIES: tuple[Lie, ...] = (
    *_forms(),
    *_change_fields("probe", _PROBE, _PROBES),
    *_change_fields("machine", _MACHINE, _MACHINES),
    *_change_fields("belongings", {"found": [], "others": 0}, _BELONGINGS),
    *_change_fields("state", {"state": "ended", "exit": END, "ranks": {}}, _STATES),
    *_change_fields("cluster", CLUSTER, _CLUSTERS, slurm=True),
    *_streams("follow", _FOLLOWS),
    *_streams("follow", _FOLLOWS_OF_SLURM, slurm=True),
    *_streams("pack", _PACKS),
    *_odd(),
)


VERBS = {
    "machine": ("deploy",),
    "programs": ("deploy",),
    "belongings": ("deploy", "destroy"),
    "follow": ("run", "logs", "cancel", "destroy"),
    "state": ("runs", "cancel"),
    "cancel": ("cancel", "destroy"),
    "pack": ("run", "logs", "destroy"),
    "look": ("silent",),
}
"""Which verbs ask which question; all others are asked by `run`."""


def list_rows() -> Iterator[tuple[Lie, str]]:
    """Every lie with a verb that hears it: those that ask the question take turns."""
    turns = Counter[str]()
    for lie in LIES:
        verbs = VERBS.get(lie.message, ("run",))
        yield lie, verbs[turns[lie.message] % len(verbs)]
        turns[lie.message] += 1
