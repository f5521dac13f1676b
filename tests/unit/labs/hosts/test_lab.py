from __future__ import annotations

import getpass
import os
import secrets
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

from gpucourse.labs.hosts.lab import open_hosts
from gpucourse.model.node import Inventory
from tests.unit.labs.aws.fakes import context_in
from tests.unit.labs.records import GONE, make_hosts_lab, save_slurm_run


def test_list_forgotten_has_a_command_that_removes_jobs_and_links(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    record, home, shared = save_slurm_run(context, []), tmp_path / "home", tmp_path / "shared folder"
    bases = [home, shared / f"gpucourse-{getpass.getuser()}"]
    jobs = [base / ".gpucourse" / "jobs" / record.id for base in bases]
    links = [bases[1] / ".gpucourse" / "tmp-0123456789ab", Path(f"/tmp/gpucourse-{secrets.token_hex(6)}")]
    for job in jobs:
        (job / "tmp").mkdir(parents=True)
    for link in links:
        link.symlink_to(jobs[1] / "tmp")
    lab = replace(make_hosts_lab(), shared=str(shared))
    [warnings] = open_hosts(context, lab).list_forgotten({"node0": "it is gone"})
    assert warnings.id.startswith("me@gpu1: processes and Slurm jobs of 1 run and the folder ~/.gpucourse")
    assert f'grep -E "/jobs/({record.id})(/|$)" | cut -d" " -f1 | xargs -r scancel' in warnings.remove
    assert f"~/.gpucourse, and .gpucourse in this user's folder below {shared}" in warnings.id
    subprocess.run(shlex.split(warnings.remove)[-1], shell=True, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)
    assert [path for path in (*jobs, *links) if os.path.lexists(path)] == []


def test_open_hosts_and_plan_list_the_machines_that_come_and_those_that_leave(tmp_path: Path) -> None:
    context, _ = context_in(tmp_path)
    lab = open_hosts(context, make_hosts_lab())
    lab.candidate_nodes = (GONE, replace(GONE, name="node1", address="gpu2", port=22))
    assert lab.plan() == [("create", "me@gpu2")]
    lab.deployment.inventory = Inventory(stack="01-hosts", nodes=lab.candidate_nodes)
    lab.candidate_nodes = (GONE,)
    assert lab.plan() == [("delete", "me@gpu2")]
