from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, MissingError
from gpucourse.labs.slurm.lab import SlurmLab, open_lab
from gpucourse.model.node import Inventory
from gpucourse.model.slurm_facts import ProbeFacts
from gpucourse.ports import CommandResult, Link, Transport
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.host_probe import Belongings
from tests.unit.labs.slurm.test_deploy import make_lab
from tests.unit.labs.slurm.test_facts import LOGIN

QUEUE = """\
Welcome
11|gpucourse-u|/home/me/elsewhere
12|mine|/home/me/.gpucourse/jobs/probe-u
13|(null)|/scratch/gpucourse-me/.gpucourse/jobs/install-u/sub
14|gpucourse-other|/home/me/.gpucourse/jobs/probe-other
15|a|b|/home/me/.gpucourse/jobs/probe-u2
x|gpucourse-u|/home/me
"""


class Queue:
    """A login node that answers with a queue."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.node, self.alive, self.text, self.code, self.commands = LOGIN, True, text, code, [""]

    def run(self, command: str, *, timeout_s: float) -> CommandResult:
        del timeout_s
        self.commands.append(command)
        return CommandResult(code=self.code, stdout=self.text.encode(), stderr=b"slurmctld is gone")


def make(context: Context, queue: Queue) -> SlurmLab:
    lab = make_lab(ProbeFacts(), inventory=Inventory(stack="03-slurm", nodes=(LOGIN,)))
    opened = open_lab(context, lab)
    opened.__dict__["_fleet"] = Fleet(cast("Transport", None), [LOGIN], links={LOGIN.name: cast("Link", queue)})
    return opened


def test_list_jobs_finds_jobs_by_comment_and_by_folder(context: Context) -> None:
    assert make(context, Queue(QUEUE))._list_jobs() == ["11", "12", "13"]


def test_cancel_ends_only_the_jobs_of_the_lab(context: Context) -> None:
    queue = Queue(QUEUE)
    assert make(context, queue)._cancel() == ["11", "12", "13"]
    assert "scancel 11 12 13;" in queue.commands[-1]


def test_list_jobs_says_that_slurm_does_not_answer(context: Context) -> None:
    with pytest.raises(InfrastructureError, match=r"does not say which jobs are in the queue \(slurmctld is gone\)"):
        make(context, Queue("", code=1))._list_jobs()


def test_look_combines_the_folders_of_all_deploys(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = make(context, Queue(""))
    lab.deployment = replace(lab.deployment, shared="/b", former_folders=["", "/a", "/b"])
    places: list[str] = []

    def find_belongings(_link: Link, _uid: str, _runs: list[str], place: str) -> Belongings:
        places.append(place)
        return Belongings(found=(("process", "7"), ("folder", f"{place}/x")), others=len(places))

    monkeypatch.setattr("gpucourse.remote.host_probe.find_belongings", find_belongings)
    [belongings] = lab._ask(lab._look)
    assert places == ["", "/a", "/b"]
    assert belongings.found == (("process", "7"), ("folder", "/x"), ("folder", "/a/x"), ("folder", "/b/x"))
    assert belongings.others == 3


def test_open_lab_refuses_a_record_without_a_login_node(context: Context) -> None:
    with pytest.raises(MissingError, match="names no login node"):
        open_lab(context, make_lab(ProbeFacts()))
