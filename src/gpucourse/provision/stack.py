"""A stack: its own copy of the Terraform files, its variables and state, and its three operations.

    prepare ──▶ plan ──▶ up ──▶ Inventory          down ──▶ addresses removed

`plan` shows and saves the plan; `up` applies exactly the saved plan. If an operation is killed at any time, the same command
continues from the state.

Every stack describes its nodes in the Terraform output `nodes`: a list with one object for each node, whose keys are those of
model.node.Node (`host_key` may be left out). An entry is null if the node's resource exists but the node did not start.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from gpucourse.errors import InfrastructureError
from gpucourse.model.event import Event, Note, ResourceEvent, Stage, Watcher, ignore_event
from gpucourse.model.node import Inventory, Node
from gpucourse.outside.documents import convert
from gpucourse.outside.names import OutsideError
from gpucourse.provision import providers, state
from gpucourse.provision.binary import TerraformBinary
from gpucourse.provision.commands import Commands
from gpucourse.provision.runner import Runner
from gpucourse.provision.template import copy_template, is_stack, restore_template
from gpucourse.storage import storing
from gpucourse.workspace.files import write_record
from gpucourse.workspace.lock import hold_lock, is_held
from gpucourse.workspace.paths import StackPaths


@dataclass(kw_only=True)
class TerraformStack:
    """One stack of a workspace, driven by Terraform.

    `template`: the course's Terraform files.
    `variables`: their variables (JSON values).
    `environ`: the environment, which is cleaned before Terraform gets it.
    `stop`: setting it has the effect of one Ctrl-C, for stacks in threads.
    `lock_wait_s`: how long to wait for another Terraform process that works on the stack.
    """

    paths: StackPaths
    template: Path
    variables: dict[str, object]
    binary: TerraformBinary
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    stop: threading.Event | None = None
    lock_wait_s: float = 120.0
    _prepared: bool = field(default=False, init=False)
    _planned: bool = field(default=False, init=False)

    @property
    def folder(self) -> Path:
        """Return the stack's folder, which contains Terraform's folder."""
        return self.paths.folder

    def addresses(self) -> list[str]:
        """Return the existing resources as Terraform addresses, read only from the state file.

        Raises InfrastructureError if the file is damaged.
        """
        return state.addresses(self.paths.state)

    def exists(self) -> bool:
        """Return whether any resource of the stack still exists, according to the state."""
        return self.paths.error_state.exists() or bool(self.addresses())

    def prepare(self, watcher: Watcher = ignore_event) -> None:
        """Wait for the Terraform process of a killed command, copy the template, and store the variables.

        If a resource already exists, the stack keeps its own copy of the template. Raises MissingError if the template does not
        exist, StorageError, StackBusy, InfrastructureError, Interrupted.
        """
        self.settle(watcher)
        if not self.exists():
            copy_template(self.template, self.paths.terraform)
        elif not is_stack(self.paths.terraform):
            self._restore(watcher)
        self._prepared = True
        self._store_variables()

    def settle(self, watcher: Watcher = ignore_event) -> None:
        """Wait until the Terraform process of a killed command has ended, so that the state contains all its changes.

        Raises StackBusy, Interrupted.
        """
        self._runner().wait_for_predecessor(watcher)
        self._rescue(watcher)

    def init(self, watcher: Watcher = ignore_event) -> bool:
        """Fetch the providers and modules that the stack uses; return whether Terraform had to be run for this."""
        folder, version = self.paths.terraform, self.binary.version
        if providers.is_initialised(folder, version):
            return False
        mirror = providers.find_mirror(folder, self.environ)
        start_s = time.monotonic()
        watcher(Stage(name="init", text="getting Terraform's providers"))
        if mirror is not None or self.environ.get("TF_PLUGIN_CACHE_DIR"):
            self._runner().run("init", self._commands().init(mirror), watcher)
        else:
            self._init_with_cache(watcher)
        providers.mark_initialised(folder, version)
        watcher(Stage(name="init", text="Terraform providers ready", seconds=time.monotonic() - start_s))
        return True

    def plan(self, watcher: Watcher = ignore_event, replace: Sequence[str] = ()) -> list[tuple[str, str]]:
        """Return what `up` would do, as (action, address). The resources in `replace` are recreated.

        The plan is saved, so that `up` does exactly this.
        """
        if not self._prepared:
            self.prepare(watcher)
        self._forget_plan()
        self.init(watcher)
        transcript = self._runner().run("plan", self._commands().plan(self.paths.plan_file.name, replace), watcher)
        self._planned = True
        return transcript.planned

    def up(self, watcher: Watcher = ignore_event) -> Inventory:
        """Apply the plan; return the nodes. If there is no plan yet, create one first.

        Raises TerraformFailed (resources that were built remain recorded), InfrastructureError for outputs that are not an
        inventory.
        """
        if not self._planned:
            self.plan(watcher)
        try:
            transcript = self._runner().run(
                "apply", self._commands().apply(self.paths.plan_file.name), _ignore_planned_changes(watcher)
            )
        finally:
            self._forget_plan()
        return inventory(self.paths.folder.name, transcript.outputs)

    def down(self, watcher: Watcher = ignore_event) -> list[str]:
        """Remove everything, with the same files that built it; return the removed addresses.

        Raises TerraformFailed. Resources that could not be removed stay in the state, so that the removal can be repeated.
        """
        self.settle(watcher)
        if not self.addresses():
            return []
        if not is_stack(self.paths.terraform):
            self._restore(watcher)
        if not self.paths.variables.exists():
            self._store_variables()
        self._forget_plan()
        self.init(watcher)
        transcript = self._runner().run("destroy", self._commands().destroy(), watcher)
        if remaining := self.addresses():
            raise InfrastructureError(
                f"Terraform says that it removed everything, but its state still contains {', '.join(remaining)}",
                hint="type the command again",
                log=self.paths.terraform_log("destroy"),
            )
        return [address for action, address in transcript.finished if action == "delete"]

    def discard_if_empty(self) -> bool:
        """Remove Terraform's folder if no resource exists and no Terraform process works on the stack. Return whether the
        folder is gone."""
        if is_held(self.paths.terraform_lock) or self.exists():
            return False
        with storing(self.paths.terraform):
            shutil.rmtree(self.paths.terraform, ignore_errors=True)
            self.paths.terraform_lock.unlink(missing_ok=True)
            for command in ("init", "plan") if self._planned else ():  # an error may refer to such a log
                self.paths.terraform_log(command).unlink(missing_ok=True)
            if self.folder.is_dir() and not any(self.folder.iterdir()):
                self.folder.rmdir()
        self._prepared = self._planned = False
        return True

    def _runner(self) -> Runner:
        return Runner(paths=self.paths, environ=self.environ, stop=self.stop, wait_s=self.lock_wait_s)

    def _commands(self) -> Commands:
        return Commands(self.binary.argv, lock_wait_s=self.lock_wait_s)

    def _store_variables(self) -> None:
        self._forget_plan()
        write_record(self.paths.variables, self.variables, mode=0o600)

    def _forget_plan(self) -> None:
        self._planned = False
        self.paths.plan_file.unlink(missing_ok=True)

    def _restore(self, watcher: Watcher) -> None:
        watcher(Note(text=f"{self.paths.terraform} lost its Terraform files; using the course's", level="warning"))
        restore_template(self.template, self.paths.terraform)

    def _rescue(self, watcher: Watcher) -> None:
        """Recover the state that Terraform could not write to its usual file because the disk was full."""
        rescued = self.paths.error_state
        if rescued.exists():
            self._runner().run("state-push", self._commands().push_state(rescued.name), watcher)
            rescued.unlink()
            watcher(Note(text="recovered the state that an earlier Terraform process could not store"))

    def _init_with_cache(self, watcher: Watcher) -> None:
        cache = providers.cache_folder(self.environ)
        with storing(cache):
            cache.mkdir(parents=True, exist_ok=True)
        with hold_lock(
            cache / "gpucourse.lock", "terraform init", wait_s=600.0
        ):  # Terraform's cache is not safe for two commands at the same time
            self._runner().run("init", self._commands().init(), watcher, extra={"TF_PLUGIN_CACHE_DIR": str(cache.absolute())})


def _ignore_planned_changes(watcher: Watcher) -> Watcher:
    """Return a watcher that ignores planned changes. They were already shown, but `apply` reports them again before it
    begins."""

    def tell(event: Event) -> None:
        if not (isinstance(event, ResourceEvent) and event.state == "planned"):
            watcher(event)

    return tell


_REQUIRED = {field.name for field in fields(Node) if field.default is MISSING}


def inventory(stack: str, outputs: dict[str, Any] | None) -> Inventory:
    """Return the nodes in Terraform's outputs (as in `terraform output -json`), head first.

    Raises InfrastructureError, which names the missing or wrong field, or the nodes that did not start.
    """
    entry = (outputs or {}).get("nodes")
    entries = entry.get("value") if isinstance(entry, dict) else None
    if not isinstance(entries, list) or not entries:
        raise _refuse("is not a list with at least one node")
    absent = [str(number) for number, node in enumerate(entries) if node is None]
    if absent:
        raise InfrastructureError(
            f"{len(absent)} of {len(entries)} nodes of {stack} did not start: number {', '.join(absent)}, counted from 0",
            hint="type `gpucourse deploy` again: it builds what is missing",
        )
    try:
        nodes = convert(entries, list[Node])
    except OutsideError as error:
        raise _refuse(f"is not valid: {error}") from error
    _check(nodes)
    return Inventory(stack=stack, nodes=tuple(sorted(nodes, key=lambda node: node.role != "head")))


def _check(nodes: Sequence[Node]) -> None:
    """Check that values are in range and that the nodes belong together. Raises InfrastructureError if they do not."""
    for node in nodes:
        if empty := sorted(name for name in _REQUIRED if getattr(node, name) == ""):
            raise _refuse(f"has no {empty[0]} for {node.name or 'a node'}")
        if node.port not in range(1, 65536) or node.gpus not in range(1025):
            raise _refuse(f"has the port {node.port} and {node.gpus} GPUs for {node.name}")
    heads = sum(node.role == "head" for node in nodes)
    if heads != 1:
        raise _refuse(f"must have exactly one node with the role head, not {heads}")
    for place, count in Counter(place for node in nodes for place in (node.name, f"{node.address}:{node.port}")).items():
        if count > 1:
            raise _refuse(f"has {count} nodes called {place}")


def _refuse(subject: str) -> InfrastructureError:
    return InfrastructureError(
        f"the stack's Terraform output `nodes` {subject}",
        hint="the stack does not fit this version of gpucourse: `gpucourse destroy` removes it, then `gpucourse deploy` "
        "rebuilds it",
    )
