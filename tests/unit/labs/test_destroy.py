"""`destroy` with --discard, and with --forget-unreachable: of labs that cannot cost anything and may be out of reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import LeftoverError, UsageError
from gpucourse.labs.collect_before_destroy import bring_home
from gpucourse.labs.destroy import DestroyRequest, destroy, survey
from gpucourse.model.deployment import HostsDeployment
from gpucourse.model.event import Note
from gpucourse.model.node import Inventory, Node
from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import LaterJob, SlurmRun
from gpucourse.ports import CommandResult
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, runs
from tests.unit.labs.aws.fakes import context_in, deployment_of
from tests.unit.ui.examples import deployment

GONE = Node(
    name="node0", role="head", address="127.0.0.1", port=1, private_address="", user="me", gpus=0, instance_type="",
    python="/usr/bin/python3", mode="hosts", host_key="ssh-ed25519 AAAA", typed="me@gpu1",
)  # fmt: skip


def make_hosts_lab() -> HostsDeployment:
    now = now_utc()
    return HostsDeployment(
        stack="01-hosts", uid="c0ffee-2", module="1", template="hosts", phase="ready", created=now, updated=now,
        nodes_wanted=1, inventory=Inventory(stack="01-hosts", nodes=(GONE,)),
    )  # fmt: skip


class Head:
    """A machine whose agent gives every question the same answer; `asked` are the commands that it got."""

    def __init__(self, code: int, answer: str) -> None:
        self.node, self.alive, self.asked = GONE, True, list[str]()
        self._done = CommandResult(code=code, stdout=answer.encode(), stderr=b"")

    def connect(self, node: Node, *, timeout_s: float = 10.0, shared: str = "") -> Head:
        assert node == GONE
        assert timeout_s
        return self

    def run(self, command: str, *, stdin: bytes | Iterable[bytes] = b"", timeout_s: float = 60.0) -> CommandResult:
        assert not stdin
        assert timeout_s
        self.asked.append(command)
        return self._done

    def stream(self, command: str, *, stdin: bytes = b"", silence_s: float = 60.0) -> AbstractContextManager[Iterator[bytes]]:
        raise AssertionError(command, stdin, silence_s)

    def close(self) -> None:
        self.alive = False


def save_slurm_run(context: Context, later: list[LaterJob]) -> RunRecord:
    record = RunRecord(
        id="20261122-120000-aa", exercise="1.1", module="1", stack="01-hosts", mode="hosts", launcher="slurm",
        state="succeeded", created=now_utc(), ended=now_utc(), nodes=["node0"], collected=True,
        slurm=SlurmRun(partition="gpu", nodes=1, gpus=0, later=later),
    )  # fmt: skip
    runs.files_of(context.paths, record).folder.mkdir(parents=True)
    runs.save(context.paths, record)
    return record


@pytest.mark.parametrize(
    ("code", "answer", "given_up"),
    [
        (0, '{"state": "ended", "killed": 1}', "discarded with --discard"),
        (3, '{"error": "Unable to contact slurm controller", "kind": "slurm"}', "its jobs may still run in Slurm"),
    ],
    ids=["cancelled", "not cancelled"],
)
def test_discard_cancels_jobs_of_a_cluster_that_stays(tmp_path: Path, code: int, answer: str, given_up: str) -> None:
    context, events = context_in(tmp_path)
    record = save_slurm_run(context, [LaterJob(job="8", name="next", state="RUNNING")])
    head = Head(code, answer)
    context = replace(context, make_transport=lambda _key: head)
    [reason] = bring_home(context, make_hosts_lab(), discard=True).given_up
    assert given_up in reason
    assert f"cancel {record.id}" in head.asked[0]
    warned = any(isinstance(event, Note) and f"jobs of run {record.id} may still run" in event.text for event in events)
    assert warned == (code != 0)


def test_forget_refuses_a_lab_that_may_be_billed(tmp_path: Path) -> None:
    """Among others it is taken down as usual."""
    context, events = context_in(tmp_path)
    deployments.save(context.paths, deployment_of("1"))
    with pytest.raises(UsageError, match="01-aws-t4 is never forgotten: it may be billed") as caught:
        survey(context, DestroyRequest(module="1", target="aws", forget_unreachable=True))
    assert caught.value.hint == "gpucourse destroy 1 --target aws"
    deployments.save(context.paths, make_hosts_lab())
    labs = survey(context, DestroyRequest(module="1", forget_unreachable=True)).labs
    assert {lab.stack for lab in labs} == {"01-hosts", "01-aws-t4"}
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes == ["01-aws-t4 is never forgotten: it may be billed. It is taken down as usual"]


def test_forget_refuses_a_lab_of_simulated_nodes(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    deployments.save(context.paths, deployment())
    with pytest.raises(UsageError, match="m3-local is never forgotten: it is on this computer, in reach") as caught:
        survey(context, DestroyRequest(module="3", forget_unreachable=True))
    assert caught.value.hint == "gpucourse destroy 3"


def test_forget_names_what_may_be_left_and_removes_the_record(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    deployments.save(context.paths, make_hosts_lab())
    looked = survey(context, DestroyRequest(module="1"))
    [refused] = destroy(context, looked, discard=False).errors
    assert refused.exit_code == 3, "the workspace has no key"
    assert refused.hint.endswith("gpucourse destroy 1 --forget-unreachable")
    result = destroy(context, looked, discard=False, forget_unreachable=True)
    [error] = result.errors
    assert isinstance(error, LeftoverError)
    assert error.what.startswith(
        "01-hosts is forgotten, and this may be left where nobody could look: me@gpu1: the folder ~/.gpucourse (the private key"
    )
    assert error.hint == "once a machine can be reached again: ssh -p 1 me@127.0.0.1 'cd && rm -rf .gpucourse/labs/c0ffee-2'"
    [receipt] = result.receipts
    assert [item.kind for item in receipt.forgotten] == ["host"]
    assert deployments.readable(context.paths)[0] == []
