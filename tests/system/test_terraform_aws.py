"""The stacks and modules for AWS with the real Terraform and the real provider, which is mocked: no request is sent to AWS."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpucourse.provision.providers import find_mirror
from gpucourse.provision.template import copy_template
from tests.parts import slow_after
from tests.system.provisioning import any_terraform
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

TERRAFORM = Path(__file__).parents[2] / "terraform"
STACKS = ["basic-gpu", "slurm-cluster", "parallel", "benchmark", "tracing"]
FOLDERS = sorted(path.parent.relative_to(TERRAFORM).as_posix() for path in TERRAFORM.glob("*/**/tests") if path.is_dir())
FIRST = ["modules/lab", "modules/node/boot", "modules/slurm/boot"]
"""The stacks are the lab's module with other values, and the other modules are parts of it: they are left to make slow."""
CHOSEN = slow_after(len(FIRST), *FIRST, *(name for name in FOLDERS if name not in FIRST and "simulated" not in name))
VALIDATED = "parallel"


@dataclass(frozen=True)
class Output:
    """The exit code and the text of a terraform command."""

    code: int
    text: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the lines of `-json`."""
        return [json.loads(line) for line in self.text.splitlines() if line.startswith("{")]


class Terraform:
    """Terraform with the AWS provider, in copies of the course's files."""

    def __init__(self, root: Path) -> None:
        binary = any_terraform()
        if "tofu" in Path(binary.argv[-1]).name:
            pytest.skip("the provider's lock and the mocks are Terraform's; only OpenTofu is on this machine")
        if binary.version < (1, 7, 0):
            pytest.skip("Terraform before 1.7 cannot mock a provider")
        self.argv = list(binary.argv)
        self.root = root
        self.attached: dict[str, str] = {}
        mirror = find_mirror(TERRAFORM / "modules" / "lab", os.environ)
        if mirror is None:
            pytest.skip("the AWS provider is not on this machine: name a folder that holds it in TF_PLUGIN_MIRROR")
        self.mirror = mirror

    def run(self, folder: Path, *words: str) -> Output:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "AWS_"))}
        settings = {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", "TF_CLI_CONFIG_FILE": os.devnull, **self.attached}
        settings["GOGC"] = "400"  # as gpucourse does: a fifth less of a processor for each start of the provider
        output = subprocess.run(
            [*self.argv, *words],
            cwd=folder,
            env={**environment, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        return Output(output.returncode, output.stdout)

    def init(self, folder: Path, *words: str) -> Output:
        return self.run(folder, "init", "-backend=false", "-input=false", "-no-color", *words)

    def test(self, name: str) -> Output:
        """Run `terraform test` in a fresh copy of all files."""
        copy = self.root / name.replace("/", "-")
        shutil.copytree(TERRAFORM, copy)
        output = self.init(copy / name)
        return self.run(copy / name, "test", "-json") if output.code == 0 else output

    @contextmanager
    def one_provider(self) -> Iterator[None]:
        """Let every command use one process of the provider, by the way that providers have for debuggers: starting it (700 MB)
        takes longer than a run of a test."""
        folder = self.root / "provider"
        shutil.copytree(TERRAFORM, folder)
        stack = folder / "stacks" / "parallel"
        output = self.init(stack, f"-plugin-dir={self.mirror}", "-lockfile=readonly")
        assert output.code == 0, output.text
        program = next((stack / ".terraform" / "providers").glob("*/hashicorp/aws/*/*/terraform-provider-aws*"))
        log = folder / "provider.log"
        with log.open("w") as sink:
            process = subprocess.Popen(
                [str(program), "-debug"], stdout=sink, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        try:
            self.attached = {"TF_REATTACH_PROVIDERS": self._address(process, log)}
            yield
        finally:
            process.terminate()
            process.wait(STUCK_S)

    def _address(self, process: subprocess.Popen[bytes], log: Path) -> str:
        def read() -> str:
            match = re.search(r"TF_REATTACH_PROVIDERS='(.*)'", log.read_text())
            assert match or process.poll() is None, log.read_text()
            return match[1] if match else ""

        return str(until(read, "the provider's address"))


@pytest.fixture(scope="module")
def terraform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terraform]:
    terraform = Terraform(tmp_path_factory.mktemp("terraform"))
    with terraform.one_provider():
        yield terraform


def _tests_of(name: str) -> Path:
    return TERRAFORM / name / "tests" / ("stack.tftest.hcl" if name.startswith("stacks/") else "module.tftest.hcl")


@pytest.mark.parametrize("name", CHOSEN)
def test_terraform_keeps_the_promises_of_a_folder(terraform: Terraform, name: str) -> None:
    output = terraform.test(name)
    runs = [event["test_run"] for event in output.events if event.get("type") == "test_run" and "status" in event["test_run"]]
    states = {run["run"]: run["status"] for run in runs if run.get("progress", "complete") == "complete"}
    names = re.findall(r'^run "([^"]+)"', _tests_of(name).read_text(), re.MULTILINE)
    assert states == dict.fromkeys(names, "pass"), output.text
    assert output.code == 0, output.text


@pytest.fixture(scope="module")
def copy(terraform: Terraform) -> Path:
    """Return the copy that a deployment makes of a stack, modules and all, initialized."""
    copy = terraform.root / "copy"
    copy_template(TERRAFORM / "stacks" / VALIDATED, copy)
    output = terraform.init(copy)
    assert output.code == 0, output.text
    return copy


def _arrows(graph: str) -> dict[str, set[str]]:
    """Return, for each part of the graph, the parts that it waits for. The form of a line: "[root] a (expand)" -> "[root] b
    (expand)".
    """
    arrows: dict[str, set[str]] = {}
    for line in graph.splitlines():
        source, arrow, target = line.strip().partition('" -> "')
        if arrow:
            arrows.setdefault(source.removeprefix('"[root] '), set()).add(target.removeprefix("[root] ").removesuffix('"'))
    return arrows


def _reach(arrows: dict[str, set[str]], start: str) -> set[str]:
    """Return everything that `start` waits for, directly or indirectly."""
    resources: set[str] = set()
    frontier = [start]
    while frontier:
        new = arrows.get(frontier.pop(), set()) - resources
        resources |= new
        frontier += new
    return resources


@pytest.mark.slow
def test_nodes_come_after_all_that_they_need_and_go_before_it(terraform: Terraform, copy: Path) -> None:
    arrows = _arrows(terraform.run(copy, "graph", "-type=plan").text)
    addresses = {
        "module.lab.module.network.aws_internet_gateway.this (expand)",
        "module.lab.module.network.aws_route.internet (expand)",
        "module.lab.module.network.aws_route_table_association.public (expand)",
        "module.lab.module.network.aws_vpc_security_group_ingress_rule.ssh (expand)",
        "module.lab.module.network.aws_vpc_security_group_ingress_rule.among_nodes (expand)",
        "module.lab.module.network.aws_vpc_security_group_egress_rule.all (expand)",
        "module.lab.module.storage.aws_efs_mount_target.shared (expand)",
        "module.lab.aws_placement_group.close (expand)",
    }
    assert addresses - _reach(arrows, "module.lab.module.nodes.aws_instance.node (expand)") == set()
    assert "module.lab.module.network.aws_subnet.public (expand)" in _reach(
        arrows, "module.lab.module.storage.aws_efs_mount_target.shared (expand)"
    )


def test_terraform_files_are_formatted(terraform: Terraform) -> None:
    output = terraform.run(TERRAFORM, "fmt", "-check", "-recursive", "-no-color")
    assert output.code == 0, output.text


@pytest.mark.parametrize("stack", STACKS)
def test_provider_tags_everything_and_gives_up_in_time(stack: str) -> None:
    text = (TERRAFORM / "stacks" / stack / "main.tf").read_text()
    provider = re.findall(r'^provider "aws" \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL)
    assert len(provider) == 1
    assert re.search(r"default_tags \{\s+tags = var\.lab\.tags\s+\}", provider[0])
    assert re.search(r"^  max_retries = 6\b", provider[0], re.MULTILINE)
    assert 'provider "' not in "".join(file.read_text() for file in (TERRAFORM / "modules").rglob("*.tf"))


def test_lock_has_the_hashes_of_every_platform() -> None:
    locks = {(TERRAFORM / "stacks" / stack / ".terraform.lock.hcl").read_text() for stack in STACKS}
    assert len(locks) == 1
    [lock] = locks
    assert lock.count('"h1:') >= 2, "a lock with the hash of one platform alone stops everybody else"
    assert lock.count('"zh:') == 15, "the registry publishes one hash a package, signed"


def test_stacks_have_nothing_that_bills_by_itself_or_keeps_a_secret() -> None:
    text = "\n".join(file.read_text() for file in TERRAFORM.rglob("*.tf"))
    resources = set(re.findall(r'^resource "(aws_\w+)"', text, re.MULTILINE))
    assert not resources & {"aws_nat_gateway", "aws_eip", "aws_spot_instance_request", "aws_iam_access_key"}
    assert "iam_instance_profile" not in text, "a node has no credentials of AWS"
    assert not re.search(r"^\s*monitoring\s*=", text, re.MULTILINE), "detailed monitoring is billed"
    assert "tls_private_key" not in text
    assert "file(var." not in text, "a key file that is gone would stop `destroy`"
