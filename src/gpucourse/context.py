"""The workspace, course, environment and watcher that a command passes to the functions it calls. A context never changes: code
that needs another watcher makes a copy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.course.locate import CourseFolders
from gpucourse.errors import ManifestError
from gpucourse.guard import guard
from gpucourse.ports import Transport
from gpucourse.workspace.locate import Workspace, are_delivered_settings
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:  # these import pydantic or are slow to import, and `status` has to start fast
    from gpucourse.course.catalog import Catalog
    from gpucourse.judge.client import Judge
    from gpucourse.model.event import Watcher
    from gpucourse.workspace.settings import Settings


@dataclass(frozen=True)
class ReviewedWork:
    """A learner's work that a reviewer has opened.

    `keeper`: the reviewer's workspace, which stores the judgements.
    `key`: the learner's key in that workspace.
    """

    keeper: WorkspacePaths
    key: str


def _ssh_transport(key: Path) -> Transport:
    """Return a transport that connects to each node over SSH with this private key, in the `way` that the node's record
    names."""
    from gpucourse.remote.transport import NodeTransport

    return NodeTransport(key)


@dataclass
class _Opened:
    """Objects that are loaded or started on first use. All contexts of one command share them."""

    catalog: Catalog | None = None
    settings: Settings | None = None
    judge: Judge | None = None


@dataclass(frozen=True)
class Context:
    """The workspace, course, environment and watcher of one command.

    `stop`: set when the user asks the command to end.
    `reviewed`: None unless a reviewer has opened this workspace from a bundle.
    `make_transport`: makes the transport to the nodes from the workspace's private key file.
    `targets`: the targets that the settings may name. If it is empty, any name is valid.
    """

    workspace: Workspace
    folders: CourseFolders
    environ: Mapping[str, str]
    watch: Watcher = lambda _event: None
    stop: threading.Event = field(default_factory=threading.Event)
    reviewed: ReviewedWork | None = None
    make_transport: Callable[[Path], Transport] = _ssh_transport
    targets: tuple[str, ...] = ()
    opened: _Opened = field(default_factory=_Opened, repr=False)

    @property
    def paths(self) -> WorkspacePaths:
        """Return the paths of all files of the workspace."""
        return self.workspace.paths

    def watched_by(self, watch: Watcher) -> Context:
        """Return a copy of this context whose progress events go to another watcher."""
        return replace(self, watch=watch)

    def with_label(self, label: str) -> Context:
        """Return a copy of this context that adds a label to every event, so that the events of parallel tasks can be told
        apart."""
        from gpucourse.model.event import label_events

        return self.watched_by(label_events(self.watch, label))

    def lock(self, name: str, command: str) -> AbstractContextManager[int]:
        """Return a context manager that holds a stack's lock for `command`. If another command holds the lock, the context
        manager sends the watcher one warning and waits. It raises StackBusy if the wait takes too long."""
        return hold_lock(self.paths.lock(name), command, on_wait=lambda holder: self._warn(f"waiting for {holder}"))

    def guard(self, part: str) -> AbstractContextManager[None]:
        """Return a context manager that turns an error in its block into a warning and a line in the workspace's log.

        `part`: the words that complete the sentence "could not ...".
        """
        return guard(part, lambda: self.paths.log, self._warn)

    def _warn(self, text: str) -> None:
        from gpucourse.model.event import Note

        self.watch(Note(text=text, level="warning"))

    @cached_property
    def transport(self) -> Transport:
        """Return the transport that connects to nodes with the workspace's key, or with the key that a node's record names."""
        return self.make_transport(self.paths.client_key)

    @property
    def judge(self) -> Judge:
        """Return the judge of the learner's parts. `close` ends the judge's process."""
        if self.opened.judge is None:
            from gpucourse.judge.client import Judge

            self.opened.judge = Judge()
        return self.opened.judge

    def close(self) -> None:
        """End the judge's process if it is running."""
        if self.opened.judge is not None:
            self.opened.judge.close()

    @property
    def catalog(self) -> Catalog:
        """Return the course. It is read only once."""
        if self.opened.catalog is None:
            from gpucourse.course.catalog import load

            self.opened.catalog = load(self.folders)
        return self.opened.catalog

    @property
    def settings(self) -> Settings:
        """Return the learner's settings. They are read only once."""
        if self.opened.settings is None:
            from gpucourse.workspace.settings import read_settings

            self.opened.settings = read_settings(self.paths.settings, self.targets)
        return self.opened.settings

    def find_settings_error(self) -> str:
        """Return what is wrong with the learner's settings and how to correct it, or an empty string if nothing is wrong.
        Settings that are still as delivered are not parsed, which keeps `status` fast."""
        if are_delivered_settings(self.paths.settings):
            return ""
        try:
            _ = self.settings
        except ManifestError as error:
            return f"{error.what}; {error.hint}"
        return ""
