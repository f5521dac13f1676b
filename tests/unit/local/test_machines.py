"""Parts of simulated machines that need no machine: links, what logs mean, what Slurm says of a node."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpucourse.local.machines import link, reports, requirements, userspace


@pytest.mark.parametrize(
    ("text", "bits", "delay", "again"),
    [
        ("1gbit", 10**9, 0.0, "1gbit"),
        ("100mbit", 10**8, 0.0, "100mbit"),
        ("2.5gbit", 2_500_000_000, 0.0, "2500mbit"),
        (" 1GBIT, 2ms", 10**9, 2.0, "1gbit,2ms"),
        ("10gbit,500us", 10**10, 0.5, "10gbit,0.5ms"),
    ],
)
def test_a_link_is_read_and_written(text: str, bits: int, delay: float, again: str) -> None:
    parsed = link.parse(text)
    assert (parsed.bits, parsed.delay_ms, str(parsed)) == (bits, delay, again)
    assert link.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["", "fast", "1", "1gb", "0mbit", "200gbit", "1gbit,", "1gbit,2", "1gbit,2s", "1gbit,0ms", "1gbit,9999ms"]
)
def test_what_is_no_link_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        link.parse(text)


def test_the_delay_is_laid_once_a_way() -> None:
    both = [link.shape(link.parse("1gbit,2ms"), "eth0", delayed=delayed) for delayed in (True, False)]
    assert [len(lines) for lines in both] == [2, 1]
    assert "rate 1000000000bit" in both[0][0]
    assert both[0][1].endswith("netem delay 2ms limit 100000")


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ("error: Munge decode failed: Rewound credential\nerror: If munged is up, restart with --num-threads=10", "future"),
        ("error: Munge decode failed: Expired credential", "clock"),
        ("error: Munge decode failed: Invalid credential", "munge.key"),
        ("error: Munge decode failed: Expired credential\nerror: x: Protocol authentication error", "clock"),
        ("error: Munge decode failed: Expired credential\nslurmd version 22.05.8 started\n", ""),
        ("sched: JobId=3 has invalid account", "reasons"),
        ("error: Duplicate jobid on nodes node1, set to state DRAIN", "killed"),
        ("slurmd version 22.05.8 started", ""),
    ],
)
def test_what_logs_mean(log: str, word: str) -> None:
    symptom = reports.symptom(log)
    assert word in symptom
    assert bool(symptom) == bool(word)


def test_the_newest_symptom_counts() -> None:
    assert "munge.key" in reports.symptom("Expired credential\nlater: Invalid credential\n")


def test_what_slurm_says_of_each_node() -> None:
    listed = (
        "node1|idle|gpu:1|none\nnode2|down*|gpu:1|Not responding\nnode3|mixed|gpu:1|none\n"
        "node4|drained|gpu:1|Duplicate jobid\nnode5|idle|(null)|none\nnode6|idle*|gpu:1|none\n"
        "node7|mixed-|gpu:1|none\n"
    )
    node_states = reports.states(listed)
    assert node_states["node1"] == node_states["node3"] == node_states["node7"] == ""
    assert node_states["node2"] == "Slurm says down*: Not responding"
    assert node_states["node4"] == "Slurm says drained: Duplicate jobid"
    assert "no GPU" in node_states["node5"]
    assert node_states["node6"].startswith("Slurm says idle*")


def test_jobs_that_slurm_holds_back() -> None:
    listed = "7|launch failed requeued held\n8|Resources\n9|launch_failed_requeued_held\n10|JobHeldUser\n"
    assert reports.parse_held_jobs(listed) == ["7", "9"]


def test_the_command_that_installs_slurm_names_its_library_too() -> None:
    command = requirements.install_command(slurm=True, packages={"slurmd", "munge"})
    assert command.startswith("sudo apt-get install --no-install-recommends ")
    assert "libpmix2" in command
    assert command.endswith("munge slurmd")


def test_without_slurm_the_exact_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"ip", "sshd", "unshare"}
    monkeypatch.setattr(shutil, "which", lambda name, path="": name if name in there else None)
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(requirements.Lacking, match="slurmctld") as caught:
        requirements.require(slurm=True)
    for package in ("slurmctld", "slurmd", "slurm-client", "munge"):
        assert f" {package}" in caught.value.remedy


def test_what_runs_inside_machines_may_come_from_packages_unpacked_aside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = {"unshare"}

    def which(name: str, path: str = "") -> str | None:
        return name if name in there or (str(tmp_path) in path and name in {"sshd", "slurmctld", "slurmd", "sbatch"}) else None

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.setattr(sys, "platform", "linux")
    assert requirements.unpackable() == [
        *("libpmix2t64" if "t64" in requirements.install_command(slurm=True, packages={"slurmd"}) else "libpmix2",),
        *("munge", "openssh-server", "slurm-client", "slurmctld", "slurmd"),
    ]
    with pytest.raises(requirements.Lacking) as caught:
        requirements.require(slurm=True, layer=tmp_path)
    assert str(caught.value) == "not installed here: ip, munged"  # ip runs before there is a machine


def test_elsewhere_than_on_linux_there_are_no_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(requirements.Lacking, match="Linux"):
        requirements.require(slurm=False)


def test_who_is_lent_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "subuid").write_text("ada:100000:65536\n7:300000:65536\n")
    monkeypatch.setattr("pwd.getpwuid", lambda _number: SimpleNamespace(pw_name="ada"))
    assert userspace.read_lent_ids(str(file), 8) == (100_000, 65_536)
    accounts: dict[int, str] = {}
    monkeypatch.setattr("pwd.getpwuid", accounts.__getitem__)
    with pytest.raises(OSError, match="has no account on this computer"):
        userspace.read_lent_ids(str(file), 8)
