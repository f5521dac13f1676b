"""The paths of one stack's files. The other paths of the workspace are in `paths`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Folder:
    """A folder whose files have names in the program. A subclass lists them."""

    folder: Path


class Place:
    """A path with a fixed name below the folder of its owner, such as `folder / "plan.json"`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, owner: Folder, _kind: object) -> Path:
        return owner.folder / self.name


class StackPaths(Folder):
    """Every file of one stack: Terraform's folder with its state, the simulated nodes, the SSH configuration."""

    terraform = Place("terraform")  # the stack's own copy of its Terraform files, with the state next to them
    state = Place("terraform/terraform.tfstate")  # the file with Terraform's state: what it has built
    # The file in which Terraform leaves the state if it could not write it under its own name.
    error_state = Place("terraform/errored.tfstate")
    # The stack's variables: Terraform reads this file by itself, so `destroy` uses the same values as `deploy`.
    variables = Place("terraform/gpucourse.auto.tfvars.json")
    # The file in which the stack's Terraform files may declare a variable for each value, as those of version 0.1 do.
    declarations = Place("terraform/variables.tf")
    plan_file = Place("terraform/gpucourse.tfplan")  # the plan that was shown and is about to be applied
    # The lock that a running Terraform holds as long as it lives, even if the command that started it has died.
    terraform_lock = Place("terraform.lock")
    nodes = Place("nodes")  # the simulated nodes: their homes and keys, and the process that hosts them
    ssh_config = Place("ssh_config")  # the configuration file for plain `ssh -F`, `scp -F`, `rsync -e 'ssh -F ...'` and editors
    ssh_hosts = Place("ssh_hosts")  # the same nodes under unique names, for the learner's own SSH configuration to include
    known_hosts = Place("known_hosts")  # the pinned host keys of this stack's nodes, for plain `ssh`

    def terraform_log(self, command: str) -> Path:
        """Return the file with the whole output of the last Terraform command of that name."""
        return self.folder / f"terraform-{command}.log"
