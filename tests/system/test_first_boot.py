"""The first boot of a node, carried out in a folder, and checks of every shell script and unit of a node."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpucourse.labs.aws.first_boot import PATIENCE_S
from tests.system.first_boot import HOOKS, KEYS, TERRAFORM, Boot, in_hours, render, with_stand_in_checksums
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

UNITS = sorted((TERRAFORM / "modules/node/files").glob("gpucourse-*"))


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """Return the scripts, by hook, of a node with a GPU, and of a node without one that has shared storage and was created
    late.
    """
    late_settings = {"gpus": 0, "shared_address": "10.77.1.20", "expires": in_hours(-1), "ttl_hours": 2}
    names = [*(("gpu", hook) for hook in HOOKS), ("late", "none")]
    return render(tmp_path_factory.mktemp("rendered"), names, gpu={}, late=late_settings)


@pytest.fixture(scope="module")
def script(scripts: dict[tuple[str, str], str]) -> str:
    """Return the script of a node with a GPU on which the stack installs nothing else."""
    return scripts["gpu", "none"]


@pytest.fixture(scope="module")
def inference(scripts: dict[tuple[str, str], str]) -> str:
    """Return the script of a node with a GPU on which packages for inference are installed."""
    return with_stand_in_checksums(scripts["gpu", "inference"])


@pytest.fixture(scope="module")
def ready_node(tmp_path_factory: pytest.TempPathFactory, script: str) -> Boot:
    """Return a node with a GPU that has become ready."""
    node = Boot(tmp_path_factory.mktemp("ready") / "root")
    assert node.run(script) == 0, node.log()
    return node


@pytest.fixture(scope="module")
def late_node(tmp_path_factory: pytest.TempPathFactory, scripts: dict[tuple[str, str], str]) -> Boot:
    """Return a node without a GPU that was created after its stack had expired. Its shared storage answers the third mount."""
    node = Boot(tmp_path_factory.mktemp("late") / "root")
    node.stand_in("mount", f'[ "$(grep -c "^mount " "{node.root}/done")" -gt 2 ]')
    assert node.run(scripts["late", "none"]) == 0, node.log()
    return node


@pytest.fixture
def boot(tmp_path: Path) -> Boot:
    return Boot(tmp_path / "root")


def test_ready_file_says_what_the_gpu_node_has(ready_node: Boot) -> None:
    ready = json.loads((ready_node.state / "ready").read_text())
    names = ("version", "name", "role", "stack", "gpus", "driver", "torch", "cuda")
    assert {name: ready[name] for name in names} == {
        "version": 1,
        "name": "node0",
        "role": "head",
        "stack": "w1-0123456789ab",
        "gpus": ["Tesla T4"],
        "driver": "595.71",
        "torch": "2.12.0",
        "cuda": "13.2",
    }
    assert (ready_node.state / "step").read_text() == "done\n"
    assert not (ready_node.state / "failed").exists()
    assert not (ready_node.root / "etc/fstab").exists()


def test_timers_that_end_the_node_start_before_anything_can_fail(ready_node: Boot) -> None:
    assert ready_node.commands_run[:2] == [
        "systemctl daemon-reload",
        "systemctl enable --now gpucourse-deadline.timer gpucourse-idle.timer",
    ]
    for unit in UNITS:
        assert (ready_node.root / "etc/systemd/system" / unit.name).read_text() == unit.read_text()
    for name in ("deadline.sh", "end-node.sh", "idle_agent.py"):
        program = ready_node.root / "opt/gpucourse" / name
        assert program.read_text() == (TERRAFORM / "modules/node/files" / name).read_text()
        assert program.stat().st_mode & 0o777 == 0o755


def test_deadline_is_the_end_of_the_stack_or_the_time_to_live_if_that_has_passed(ready_node: Boot, late_node: Boot) -> None:
    for node, hours in ((ready_node, 4), (late_node, 2)):
        began = (node.root / "etc/gpucourse/node.env").stat().st_mtime
        assert (hours - 0.5) * 3600 < int((node.state / "deadline").read_text()) - began < (hours + 0.1) * 3600


def test_nothing_upgrades_itself_under_a_running_job(ready_node: Boot) -> None:
    units = "apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service"
    position = ready_node.commands_run.index(f"systemctl stop {units}")
    assert ready_node.commands_run[position + 1] == f"systemctl mask {units}"


def test_last_logout_keeps_the_shared_memory_of_ranks(ready_node: Boot) -> None:
    assert "\nRemoveIPC=no\n" in (ready_node.root / "etc/systemd/logind.conf.d/60-gpucourse.conf").read_text()
    assert "systemctl try-reload-or-restart ssh systemd-logind" in ready_node.commands_run


def test_shared_storage_is_mounted_once_it_answers_and_after_each_reboot(late_node: Boot) -> None:
    mounts = [call for call in late_node.commands_run if call.startswith("mount ")]
    assert len(mounts) == 3
    assert mounts[0].endswith(f" 10.77.1.20:/ {late_node.root}/shared")
    assert (late_node.root / "etc/fstab").read_text().startswith("10.77.1.20:/ /shared nfs4 nfsvers=4.1,")
    assert "_netdev,nofail" in (late_node.root / "etc/fstab").read_text()


def test_failure_shows_the_end_of_the_log_if_the_driver_does_not_come(boot: Boot, script: str) -> None:
    boot.stand_in("nvidia-smi", "echo 'NVIDIA-SMI has failed: no driver' >&2; exit 9")
    assert boot.run(script) == 1
    assert not (boot.state / "ready").exists()
    report = (boot.state / "failed").read_text()
    assert report.startswith("step 'driver' failed at line ")
    assert report.splitlines()[0].endswith("with status 1: count_gpus")
    assert "NVIDIA-SMI has failed: no driver" in report
    assert boot.commands_run.count("sleep 5") == 35
    assert KEYS in boot.console
    assert "systemctl enable --now gpucourse-deadline.timer gpucourse-idle.timer" in boot.commands_run


def test_setup_waits_for_a_driver_that_comes_late(boot: Boot, script: str) -> None:
    boot.stand_in("nvidia-smi", f'[ "$(grep -c nvidia-smi "{boot.root}/done")" -gt 3 ] || exit 9; echo "GPU 0: Tesla T4"')
    assert boot.run(script) == 0
    assert boot.commands_run.count("sleep 5") == 3


def test_failure_names_a_torch_that_sees_no_gpu(boot: Boot, script: str) -> None:
    boot.torch(gpus=0)
    assert boot.run(script) == 1
    report = (boot.state / "failed").read_text()
    assert report.startswith("step 'python' failed")
    assert "torch 2.12.0 sees 0 GPUs of 1" in report


def test_failure_names_shared_storage_that_never_answers(boot: Boot, scripts: dict[tuple[str, str], str]) -> None:
    boot.stand_in("mount", "echo 'mount.nfs4: Connection timed out' >&2; exit 32")
    assert boot.run(scripts["late", "none"]) == 1
    report = (boot.state / "failed").read_text()
    assert report.startswith("step 'shared storage' failed")
    assert "Connection timed out" in report


PROGRAM, INSTALLER = "the program", "the installer"
K3S = rf"""for last; do :; done
case "$*" in *%2Bk3s1/k3s\ *) text='{PROGRAM}' ;; *) text='{INSTALLER}' ;; esac
printf '%s' "$text" >"$last"
"""


def k3s_pins(script: str) -> dict[str, str]:
    """Return the version and the checksums of k3s in the script."""
    return dict(re.findall(r"^(k3s_\w+)=(\S+)$", script, re.MULTILINE))


def replace_checksums(script: str, **texts: str) -> str:
    """Return the script with checksums of other contents in place of those of k3s."""
    for name, text in texts.items():
        script = script.replace(k3s_pins(script)[name], hashlib.sha256(text.encode()).hexdigest())
    return script


def test_kubernetes_is_one_release_with_its_checksums(boot: Boot, scripts: dict[tuple[str, str], str]) -> None:
    script = scripts["gpu", "kubernetes"]
    assert sorted(k3s_pins(script)) == [
        "k3s_addons", "k3s_installer_sha256", "k3s_pause", "k3s_sha256", "k3s_tag", "k3s_version",
    ]  # fmt: skip
    assert re.fullmatch(r"docker\.io/[a-z/-]+:[0-9.]+@sha256:[0-9a-f]{64}", k3s_pins(script)["k3s_pause"])
    assert re.fullmatch(r"v1\.\d+\.\d+\+k3s\d+", k3s_pins(script)["k3s_version"])
    boot.stand_in("curl", K3S)
    boot.stand_in("sh", f'echo "download $INSTALL_K3S_SKIP_DOWNLOAD: $INSTALL_K3S_EXEC" >>"{boot.root}/done"')
    assert boot.run(replace_checksums(script, k3s_sha256=PROGRAM, k3s_installer_sha256=INSTALLER)) == 0, boot.log()
    program, installer = boot.root / "usr/local/bin/k3s", boot.root / "opt/gpucourse/install-k3s.sh"
    tag = k3s_pins(script)["k3s_version"].replace("+", "%2B")
    steps = [
        f"curl -sfL https://github.com/k3s-io/k3s/releases/download/{tag}/k3s -o {program}.new",
        f"curl -sfL https://raw.githubusercontent.com/k3s-io/k3s/{tag}/install.sh -o {installer}.new",
        f"sh {installer}",
        "download true: server --default-runtime nvidia --disable traefik,servicelb,coredns,local-storage,metrics-server "
        f"--pause-image {k3s_pins(script)['k3s_pause']}",
        "k3s kubectl wait --for=condition=Ready node --all --timeout=30s",
    ]
    assert [call for call in boot.commands_run if call in steps] == steps
    assert (program.read_text(), installer.read_text()) == (PROGRAM, INSTALLER)
    assert program.stat().st_mode & 0o777 == 0o755
    assert any(call.endswith("install -y -qq --no-install-recommends bpftrace") for call in boot.commands_run)
    assert (boot.root / "etc/environment").read_text() == "KUBECONFIG=/home/ubuntu/.kube/config\n"


@pytest.mark.parametrize("expected", [{"k3s_sha256": PROGRAM}, {"k3s_installer_sha256": INSTALLER}])
def test_download_without_its_checksum_never_runs(
    boot: Boot, scripts: dict[tuple[str, str], str], expected: dict[str, str]
) -> None:
    boot.stand_in("curl", K3S)
    assert boot.run(replace_checksums(scripts["gpu", "kubernetes"], **expected)) == 1
    assert (boot.state / "failed").read_text().startswith("step 'kubernetes' failed")
    assert "does not have the checksum" in boot.log()
    assert not [call for call in boot.commands_run if call.startswith(("sh ", "k3s "))]
    assert not (boot.root / "opt/gpucourse/install-k3s.sh").exists()


def test_kubernetes_needs_the_runtime_that_gives_pods_the_gpu(boot: Boot, scripts: dict[tuple[str, str], str]) -> None:
    (boot.root / "bin/nvidia-container-runtime").unlink()
    assert boot.run(scripts["gpu", "kubernetes"]) == 1
    report = (boot.state / "failed").read_text()
    assert report.startswith("step 'kubernetes' failed")
    assert "the image has no nvidia-container-runtime" in report


def test_units_are_valid_for_systemd(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:
        # The programs exist only on a node; everything else is as on a node.
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/gpucourse/deadline.sh", "/bin/true"))
    result = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *[str(tmp_path / unit.name) for unit in UNITS]],
        capture_output=True,
        text=True,
        timeout=STUCK_S,
        check=False,
    )
    lines = [line for line in result.stderr.splitlines() if "gpucourse" in line]
    assert (result.returncode, lines) == (0, []), result.stderr


def find_pin(package: str) -> str:
    """Return the line of constraints.txt for a package, such as transformers==5.23.0."""
    lines = (TERRAFORM.parent / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))


VLLM = "vllm==0.32.0"


@pytest.mark.parametrize("absent", [(), (VLLM,)])
def test_inference_packages_are_checked_and_installed(boot: Boot, inference: str, absent: tuple[str, ...]) -> None:
    boot.package_index(*absent)
    assert boot.run(inference) == 0, boot.log()
    commands = [line.split() for line in boot.commands_run if line.startswith("pip ")]
    assert [words[1] for words in commands] == (["download", "install"] + (["download"] if absent else ["download", "install"]))
    assert find_pin("transformers") in commands[0], "the version that was tried here"
    assert VLLM in commands[-1], "its options change between versions"
    for words in commands:
        assert "--no-deps" in words
        assert ("--no-index" in words) == (words[1] == "install"), "what was not checked is not fetched"
    assert (boot.state / "vllm").read_text().split()[0] == ("failed" if absent else "installed")
    assert (boot.root / "usr/local/bin/vllm").is_symlink() == (not absent)
    assert ("could not be installed" in boot.log()) == bool(absent)
    assert not (boot.root / "var/tmp/gpucourse-wheels").exists() or absent
    assert (boot.state / "ready").exists()


def test_vllm_is_installed_after_the_node_is_ready(boot: Boot, inference: str) -> None:
    """Compare time limits: those of all downloads before are together shorter than the wait of `deploy`, and one limit covers
    everything afterwards.
    """
    limits = [int(times) * int(seconds) for times, seconds in re.findall(r"^pip_install (\d+) (\d+) ", inference, re.MULTILINE)]
    assert 0 < sum(limits) <= 1080 < PATIENCE_S
    boot.package_index(hanging=VLLM)
    assert boot.run(inference.replace("VLLM_SECONDS=1800", "VLLM_SECONDS=2")) == 0, boot.log()
    assert boot.log().index(" done\n") < boot.log().index("vLLM could not be installed")
    assert (boot.state / "ready").exists()
    assert (boot.state / "vllm").read_text().startswith("failed ")
    until(lambda: not boot.is_downloading(), "the end of the download")


def test_vllm_is_noted_as_failed_if_the_node_stops_while_it_is_installed(boot: Boot, inference: str) -> None:
    """Stop the node during the installation. Without the note, exercises would wait for vLLM after the next start."""
    boot.package_index(hanging=VLLM)
    setup = boot.start(inference)
    group = until(lambda: (boot.root / "hanging").exists() and (boot.root / "hanging").read_text().strip(), "the download")
    assert (boot.state / "vllm").read_text().startswith("installing ")
    for number in (setup.pid, int(group)):
        os.killpg(number, signal.SIGTERM)
    setup.wait(timeout=STUCK_S)
    until(lambda: (boot.state / "vllm").read_text().startswith("failed "), "a note of the failure")


@pytest.mark.parametrize("answer", ["", 'case "$*" in *update*) exit 100 ;; esac'], ids=["answers", "does not answer"])
def test_vllm_gets_what_it_compiles_with_if_that_is_missing(boot: Boot, inference: str, answer: str) -> None:
    """Install the compiler. If the package repository does not answer, the set-up continues: the compiler may be there."""
    boot.package_index()
    boot.stand_in("apt-get", answer)
    (boot.root / "python/ensurepip.py").write_text("raise ImportError('Debian has it in a package of its own')\n")
    assert boot.run(inference.replace('sysconfig.get_path("include")', '"/nowhere"')) == 0, boot.log()
    [update, install] = [line.split() for line in boot.commands_run if line.startswith("apt-get")]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    assert (update[3], install[3]) == ("update", "install")
    assert install[install.index("--no-install-recommends") + 1 :][:2] == [f"{version}-venv", f"{version}-dev"]
    assert (boot.root / "usr/local/bin/vllm").is_symlink()


@pytest.mark.parametrize(
    ("absent", "version", "reason"),
    [("", "4.0.0", "none is installed"), (find_pin("transformers"), "", "")],
    ids=["another checksum", "not to be had"],
)
def test_inference_packages_fail_the_node_if_they_are_missing_or_have_another_checksum(
    boot: Boot, inference: str, absent: str, version: str, reason: str
) -> None:
    boot.package_index(absent)
    pin = find_pin("transformers")
    assert boot.run(inference.replace(f"\n{pin}\n", f"\n{f'transformers=={version}' if version else pin}\n")) == 1
    assert not [line for line in boot.commands_run if line.startswith("pip install") or "vllm" in line]
    assert reason in boot.log()
    assert "inference packages" in (boot.state / "failed").read_text()


@pytest.mark.parametrize("name", ["transformers", "vllm"])
def test_every_package_has_its_version_and_a_checksum(name: str) -> None:
    lines = (TERRAFORM / f"modules/node/packages/{name}.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.fullmatch(r"# 3\.1[23] [0-9a-f]{64}", line)] == lines[:2]
    assert all(re.fullmatch(r"[a-z0-9-]+==[a-z0-9.]+", line) for line in lines[2:])
