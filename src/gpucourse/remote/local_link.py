"""A link to the computer that this program runs on, if it is itself the login node of a cluster."""

from __future__ import annotations

import os

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.command_link import CommandLink
from gpucourse.remote.process_channel import ProcessChannel


class LocalLink(CommandLink):
    """A link whose commands are processes of this computer. Implements ports.Link."""

    def __init__(self, node: Node, shared: str = "") -> None:
        super().__init__(node, shared)
        self._open = True

    @property
    def alive(self) -> bool:
        """Return whether `close` has not been called."""
        return self._open

    def close(self) -> None:
        """Refuse further commands. Processes that run keep running."""
        self._open = False

    def _start(self, line: str, _timeout_s: float, /) -> ProcessChannel:
        if not self._open:
            raise UnreachableError(f"{self.node.label}: the link is closed")
        env = {name: value for name, value in os.environ.items() if not name.startswith("GPUCOURSE_")}
        try:
            return ProcessChannel(["/bin/sh", "-c", line], env=env, ends=False)
        except OSError as error:  # the user may have no more processes, or no more memory
            raise UnreachableError(
                f"{self.node.label}: no shell can be started here: {error.strerror or error}",
                hint="ulimit -u shows how many processes you may have; end some, then type the command again",
            ) from error
