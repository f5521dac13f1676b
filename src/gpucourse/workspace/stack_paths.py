"""The files of one stack by name; `paths` has the rest of the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StackPaths:
    """Every file of one stack: Terraform's folder with its state, the simulated nodes, the SSH configuration."""

    folder: Path

    @property
    def terraform(self) -> Path:
        """Return the stack's own copy of its Terraform files, with the state beside them."""
        return self.folder / "terraform"

    @property
    def state(self) -> Path:
        """Return the file with Terraform's state: what it has built."""
        return self.terraform / "terraform.tfstate"

    @property
    def error_state(self) -> Path:
        """Return the file in which Terraform leaves the state if it could not write it under its own name."""
        return self.terraform / "errored.tfstate"

    @property
    def variables(self) -> Path:
        """Return the stack's variables: Terraform reads this file by itself, so `destroy` uses the same values as `deploy`."""
        return self.terraform / "gpucourse.auto.tfvars.json"

    @property
    def declarations(self) -> Path:
        """Return the file in which the stack's Terraform files may declare a variable for each value, as those of version 0.1
        do."""
        return self.terraform / "variables.tf"

    @property
    def plan_file(self) -> Path:
        """Return the plan that was shown and is about to be applied."""
        return self.terraform / "gpucourse.tfplan"

    @property
    def terraform_lock(self) -> Path:
        """Return the lock that a running Terraform holds as long as it lives, even if the command that started it has died."""
        return self.folder / "terraform.lock"

    def terraform_log(self, command: str) -> Path:
        """Return the whole output of the last Terraform command of that name."""
        return self.folder / f"terraform-{command}.log"

    @property
    def nodes(self) -> Path:
        """Return the folder of the simulated nodes: their homes and keys, and the process that hosts them."""
        return self.folder / "nodes"

    @property
    def ssh_config(self) -> Path:
        """Return the configuration file for plain `ssh -F`, `scp -F`, `rsync -e 'ssh -F ...'` and editors."""
        return self.folder / "ssh_config"

    @property
    def ssh_hosts(self) -> Path:
        """Return the file with the same nodes under unique names, for the learner's own SSH configuration to include."""
        return self.folder / "ssh_hosts"

    @property
    def known_hosts(self) -> Path:
        """Return the file with the pinned host keys of this stack's nodes, for plain `ssh`."""
        return self.folder / "known_hosts"
