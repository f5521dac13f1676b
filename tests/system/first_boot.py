"""The first boot of a node, carried out in a folder: Terraform renders the script, bash runs it, and stand-ins replace the
system's programs.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S

TERRAFORM = Path(__file__).parents[2] / "terraform"
KEYS = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhvc3Q= root@node\n"
HOOKS = {
    "none": '""',
    "kubernetes": 'file("${path.module}/../stacks/tracing/files/kubernetes.sh")',
    "inference": '""\n  inference = true',
    "slurm": "module.scheduler.setup",
}
_CONFIGURATION = """
variable "nodes" { type = any }
module "scheduler" { source = "../modules/slurm/boot" }
"""
_RENDERED = """
module "%(name)s" {
  source = "../modules/node/boot"
  node   = var.nodes["%(node)s"]
  setup  = %(setup)s
}
output "%(name)s" { value = module.%(name)s.user_data }
"""
GPU_NODE = {
    "name": "node0",
    "role": "head",
    "stack": "w1-0123456789ab",
    "gpus": 1,
    "ttl_hours": 4,
    "idle_minutes": 30,
    "shared_address": "",
}


def with_stand_in_checksums(script: str) -> str:
    """Return the script with the checksums of what the stand-in for pip downloads with this Python."""
    for name in ("transformers", "vllm"):
        text = (TERRAFORM / f"modules/node/packages/{name}.txt").read_text(encoding="utf-8")
        sums = sorted(hashlib.sha256(line.encode()).hexdigest() for line in text.splitlines() if not line.startswith("#"))
        digest = hashlib.sha256("".join(f"{line}\n" for line in sums).encode()).hexdigest()
        real_checksums = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
        assert script.count(real_checksums) == 1
        script = script.replace(real_checksums, f"# {sys.version_info.major}.{sys.version_info.minor} {digest}\n")
    return script


def in_hours(hours: float) -> str:
    """Return the tag Expires for so many hours from now."""
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def render(folder: Path, scripts: Iterable[tuple[str, str]], **nodes: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Return the set-up scripts that Terraform renders, by the name of the node and of its stack's hook.
    `nodes`: the differences from GPU_NODE.
    """
    shutil.copytree(TERRAFORM, folder / "terraform")
    root = folder / "terraform" / "try"
    root.mkdir()
    names = {(node, hook): f"{node}_{hook}" for node, hook in scripts}
    modules = [_RENDERED % {"name": name, "node": node, "setup": HOOKS[hook]} for (node, hook), name in names.items()]
    (root / "main.tf").write_text(_CONFIGURATION + "".join(modules))
    facts = {"python": str(_python(folder)), "expires": in_hours(4)}
    variables = {"nodes": {name: {**GPU_NODE, **facts, **changes} for name, changes in nodes.items()}}
    (root / "terraform.tfvars.json").write_text(json.dumps(variables))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TF_")} | {
        "CHECKPOINT_DISABLE": "1"
    }
    program = list(any_terraform().argv)

    def run(*words: str) -> str:
        result = subprocess.run(
            [*program, *words], cwd=root, env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    run("init", "-input=false")
    run("apply", "-auto-approve", "-input=false")
    outputs = json.loads(run("output", "-json"))
    return {script: outputs[name]["value"] for script, name in names.items()}


def _python(folder: Path) -> Path:
    """Return a path of this Python that contains no special characters, wherever it is installed."""
    path = folder / "python3"
    path.write_text(f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n')
    path.chmod(0o755)
    return path


@dataclass
class Boot:
    """One boot in a folder that replaces the root of the node. `commands_run`: the commands of the system's programs."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("bin", "dev", "etc/ssh", "sys/kernel/btf", "etc/rancher/k3s", "home/ubuntu"):
            (self.root / name).mkdir(parents=True)
        (self.root / "etc/ssh/ssh_host_ed25519_key.pub").write_text(KEYS)
        for name in (
            "systemctl",
            "mount",
            "mount.nfs4",
            "chown",
            "sleep",
            "apt-get",
            "apt-cache",
            "curl",
            "k3s",
            "install",
            "sh",
        ):
            self.stand_in(name)
        self.stand_in(
            "nvidia-smi",
            'case "$*" in --list-gpus) echo "GPU 0: Tesla T4" ;; *name*) echo Tesla T4 ;; *driver*) echo 595.71 ;; esac',
        )
        self.stand_in("nvidia-container-runtime")
        self.stand_in("python3", f'exec {shlex.quote(sys.executable)} "$@"')
        self.stand_in("hostname", "echo 10.77.1.7 fe80::1")
        (self.root / "sys/kernel/btf/vmlinux").touch()
        self.torch(gpus=1)

    @property
    def state(self) -> Path:
        """Return the node's report on itself."""
        return self.root / "var/lib/gpucourse"

    @property
    def commands_run(self) -> list[str]:
        return (self.root / "done").read_text().splitlines()

    @property
    def console(self) -> str:
        return (self.root / "dev/console").read_text()

    def stand_in(self, name: str, body: str = "") -> None:
        """Write a stand-in for a program of the system. It records its arguments and runs `body`."""
        path = self.root / "bin" / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>"{self.root}/done"\n{body}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def torch(self, gpus: int) -> None:
        """Install a torch that reports this number of GPUs."""
        (self.root / "python").mkdir(exist_ok=True)
        (self.root / "python/torch.py").write_text(
            "class cuda:\n"
            f"    device_count = staticmethod(lambda: {gpus})\n"
            "class version:\n"
            "    cuda = '13.2'\n"
            "__version__ = '2.12.0'\n"
        )

    def package_index(self, *absent: str, hanging: str = "") -> None:
        """Write a pip and a venv that record their arguments. Packages in `absent` cannot be downloaded, and the download of
        `hanging` never ends.

        A wheel contains the line that requested it.
        """
        pip = f"""import fcntl, os, signal, sys
from pathlib import Path
verb, words = sys.argv[1], sys.argv[2:]
lines = [line for line in Path(words[words.index("--requirement") + 1]).read_text().splitlines() if line[:1] != "#"]
with Path({str(self.root / "done")!r}).open("a") as done:
    done.write(" ".join(["pip", verb, *words, *lines]) + "\\n")
if verb == "download":
    if set(lines) & set({absent!r}):
        sys.exit(1)
    if {hanging!r} in lines:
        held = Path({str(self.root / "hanging")!r}).open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
        print(os.getpgrp(), file=held, flush=True)
        signal.pause()
    wheels = Path(words[words.index("--dest") + 1])
    wheels.mkdir(parents=True)
    for line in lines:
        (wheels / (line + ".whl")).write_text(line)
"""
        (self.root / "python").mkdir(exist_ok=True)
        (self.root / "python/pip.py").write_text(pip)
        program = f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n'
        venv = f"""import sys
from pathlib import Path
folder = Path(sys.argv[1]) / "bin"
folder.mkdir(parents=True)
(folder / "python").write_text({program!r})
(folder / "python").chmod(0o755)
"""
        (self.root / "python/venv.py").write_text(venv)
        (self.root / "usr/local/bin").mkdir(parents=True)

    def run(self, script: str) -> int:
        """Run the set-up and return its exit code."""
        return self.start(script).wait(timeout=240)

    def start(self, script: str) -> subprocess.Popen[bytes]:
        """Start the set-up in its own process group."""
        path = self.root / "user-data"
        path.write_text(script)
        environment = {
            "GPUCOURSE_ROOT": str(self.root),
            "PATH": f"{self.root}/bin:/usr/bin:/bin",
            "PYTHONPATH": str(self.root / "python"),
            **self.environment,
        }
        return subprocess.Popen(["/bin/bash", str(path)], env=environment, start_new_session=True)

    def is_downloading(self) -> bool:
        """Return whether the hanging pip is running."""
        if not (self.root / "hanging").exists():
            return False
        with (self.root / "hanging").open() as lock_file:
            try:
                fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def log(self) -> str:
        return (self.root / "var/log/gpucourse-setup.log").read_text()
