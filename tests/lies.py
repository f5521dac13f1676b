"""Lies that a hostile node may answer to each request of the protocol, and the command that receives each lie.

`tests/liar.py` gives these answers. The readers of answers have their own tests of what they refuse (archives, documents,
follow, host probe, unpack). The tests here show how a command reacts to a lie that is refused, or that is accepted and
displayed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from tests.liar import CLUSTER, END, JOB, MACHINE, PROBE, Lie, as_json, parcel

SECRET = "learner_secret.txt"
"""A file of the learner next to the workspace, four folders above a node's outputs and five above a log's folder."""

WAY_OUT = f"../../../../../{SECRET}"
ESCAPE = "\x1b[31m\x1b]0;title\x07\x9b2J\u202e\r\n"

ANSWERS = ("machine", "belongings", "probe", "start", "states", "cancel", "cluster")

_FORMS: dict[str, dict[str, Any]] = {
    "is an empty object": {"out": b"{}\n"},
    "is a failure with escapes": {"err": ESCAPE.encode() * 300, "code": 1},
    "is no JSON": {"out": b"hello\n"},
    "is an error with escapes": {"out": as_json({"error": ESCAPE * 300, "kind": ESCAPE}), "code": 3},
    "is an error of the disk": {"out": as_json({"error": "full", "kind": "storage"}), "code": 3},
    "is an error about Slurm": {"out": as_json({"error": ESCAPE + "munged is gone", "kind": "slurm"}), "code": 3},
    "says that there is no Python": {"code": 127},
    "says that there is no agent, always": {"code": 97},
}
"""Errors that any answer may have. One reader finds them all, so only `probe` has all forms; others have the first two."""


def _list_forms() -> Iterator[Lie]:
    for message in ANSWERS:
        for name, fields in list(_FORMS.items())[: None if message == "probe" else 2]:
            yield Lie(name=f"{message} {name}", message=message, slurm=message == "cluster", **fields)


def _change_fields(
    message: str, honest: dict[str, Any], changes: dict[str, dict[str, Any]], *, slurm: bool = False
) -> Iterator[Lie]:
    for name, change in changes.items():
        yield Lie(name=f"{message}: {name}", message=message, out=as_json({**honest, **change}), slurm=slurm)


_PROBE = {**PROBE, "modules": {"torch": "2"}, "free_ports": [29500], "clock": 1.7e9}
_PROBES: dict[str, dict[str, Any]] = {
    "a port that was not asked for": {"free_ports": [22]},
    "modules that were not asked for": {"modules": {ESCAPE: None}},
}
_MACHINE = {**MACHINE, "clock": 1.7e9}
_MACHINES: dict[str, dict[str, Any]] = {
    "a Python of a shell": {"python": "/usr/bin/python3; touch /tmp/pwn #"},
    "a home of escapes": {"folder": ESCAPE},
    "an interface of a shell": {"addresses": {"$(touch /tmp/pwn)": "10.0.0.1"}},
    "an address that is none": {"addresses": {"eth0": "10.0.0.1; touch pwn"}},
}
_BELONGINGS: dict[str, dict[str, Any]] = {
    "a folder of a shell": {"found": [["folder", "/h/.gpucourse/jobs/$(touch /tmp/pwn)"]]},
    "a hundred thousand things": {"found": [["process", "1"]] * 20_000},
}
_STATES: dict[str, dict[str, Any]] = {
    "a word that is none": {"r1": {"state": ESCAPE, "exit": None}},
    "a run elsewhere": {WAY_OUT: {"state": "ended", "exit": END}},
}
_PARTITION: dict[str, Any] = CLUSTER["partitions"][0]
_CLUSTERS: dict[str, dict[str, Any]] = {
    "a node with a way out": {"partitions": [{**_PARTITION, "nodes": [{**_PARTITION["nodes"][0], "name": WAY_OUT}]}]},
    "a partition of a shell": {"partitions": [{**_PARTITION, "name": "x\n#SBATCH --wrap=touch pwn"}]},
}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _make_name_frames(node: object, rank: object, text: bytes = b"pwned\n") -> bytes:
    return frame(frames.NAMED, 1, 0, _json({"node": node, "rank": rank})) + frame(frames.LOG, 1, 0, text)


_END = frame(frames.END, 0, 0, _json(END))
_FOLLOWS: dict[str, bytes] = {
    "a log of escapes": _make_name_frames("", 0, ESCAPE.encode() * 100) + _END,
    "an end with jobs of escapes": frame(frames.END, 0, 0, _json({**END, "jobs": [{**JOB, "state": ESCAPE, "node": ESCAPE}]})),
}
_FOLLOWS_OF_SLURM: dict[str, bytes] = {
    "a name with a way out": _make_name_frames(WAY_OUT, 0) + _END,
}


_PACKS: dict[str, bytes] = {
    "a secret as changed": parcel({"files/a": b"x"}, changed_files=[WAY_OUT, "../../run.json", "a"]),
    "an environment of escapes": parcel({}, listing={"env": {ESCAPE: ESCAPE, "gpus": [{ESCAPE: ESCAPE}]}}),
    "a name beside files/": parcel({"../../run.json": b"pwned"}),
    "no tar at all": b"no tar at all" * 1000,
    "metrics of escapes": parcel({"files/metrics.json": _json({ESCAPE: ESCAPE, "a": [{"b": 1e308}]})}),
}


def _streams(message: str, answers: dict[str, bytes], *, slurm: bool = False) -> Iterator[Lie]:
    for name, out in answers.items():
        yield Lie(name=f"{message}: {name}", message=message, out=out, slurm=slurm)


def _list_others() -> Iterator[Lie]:
    yield Lie(name="follow: a failure", message="follow", err=as_json({"error": ESCAPE, "kind": "cut"}), code=3)
    yield Lie(name="take: a failure with escapes", message="take", err=ESCAPE.encode(), code=74)
    yield Lie(name="install: a failure", message="install", err=ESCAPE.encode(), code=1)
    yield Lie(name="route: an interface of a shell", message="route", out=b"10.0.0.5 dev $(touch${IFS}pwn) src 10.0.0.5\n")
    yield Lie(name="look: a word that is none", message="look", out=as_json({"0": ESCAPE}))


LIES: tuple[Lie, ...] = (
    *_list_forms(),
    *_change_fields("probe", _PROBE, _PROBES),
    *_change_fields("machine", _MACHINE, _MACHINES),
    *_change_fields("belongings", {"found": [], "others": 0}, _BELONGINGS),
    *_change_fields("states", {}, _STATES),
    *_change_fields("cluster", CLUSTER, _CLUSTERS, slurm=True),
    *_streams("follow", _FOLLOWS),
    *_streams("follow", _FOLLOWS_OF_SLURM, slurm=True),
    *_streams("pack", _PACKS),
    *_list_others(),
)


VERBS = {
    "machine": ("deploy",),
    "belongings": ("deploy", "destroy"),
    "follow": ("run", "logs", "cancel", "destroy"),
    "states": ("runs", "cancel"),
    "cancel": ("cancel", "destroy"),
    "pack": ("run", "logs", "destroy"),
    "look": ("silent",),
}
"""The verbs that make each request. All other requests are made by `run`."""


def list_rows() -> Iterator[tuple[Lie, str]]:
    """Yield every lie with a verb that receives it. Verbs that make the same request take turns."""
    turns = Counter[str]()
    for lie in LIES:
        verbs = VERBS.get(lie.message, ("run",))
        yield lie, verbs[turns[lie.message] % len(verbs)]
        turns[lie.message] += 1
