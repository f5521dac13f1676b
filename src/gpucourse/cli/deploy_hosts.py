"""deploy on machines that exist already."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode

if TYPE_CHECKING:
    from gpucourse.labs.deploy import Deployed, Wish
    from gpucourse.labs.hosts.host_keys import UnknownHosts


@dataclass(frozen=True, kw_only=True)
class Doors:
    """Which machines, with which private key, and which fingerprints are vouched for."""

    hosts: tuple[str, ...]
    key: Path | None
    trust: tuple[str, ...]


def doors(hosts: str | None, key: Path | None, trust: list[str] | None) -> Doors:
    """As they were typed: machines with commas between them."""
    return Doors(hosts=tuple(filter(None, (hosts or "").replace(" ", "").split(","))), key=key, trust=tuple(trust or ()))


def deploy_on_hosts(session: Session, wish: Wish, through: Doors, *, json: bool) -> int:
    """Look at the machines, ask about those that nobody knows, and take them."""
    from gpucourse.labs.hosts.host_keys import UnknownHosts
    from gpucourse.ui.views.lab import deploy_plan, deployed

    context = session.context
    try:
        result = _deploy(session, wish, through, ())
    except UnknownHosts as error:
        if session.options.json or not sys.stdin.isatty() or not _vouched(session, error):
            raise
        result = _deploy(session, wish, through, tuple(one.fingerprint for one in error.strangers))
    if json:
        session.face.document(result)
    if wish.dry_run:
        session.face.show(deploy_plan(result))
    else:
        first = context.catalog.module(wish.module).exercises[0].id
        session.face.show(deployed(result, context.paths.stack(result.deployment.stack).ssh_config, first))
    return ExitCode.DONE


def _deploy(session: Session, wish: Wish, through: Doors, also: tuple[str, ...]) -> Deployed:
    from gpucourse.labs.hosts.deploy import deploy

    with session.face.watch() as live:
        session.context.watch = live
        return deploy(session.context, wish, through.hosts, key=through.key, trust=(*through.trust, *also))


def _vouched(session: Session, error: UnknownHosts) -> bool:
    """Whether the person says that every fingerprint is the right one. `--yes` is no answer to that."""
    return all(
        session.face.ask(f"{one.said} shows the host key {one.fingerprint}. Is that the right machine?", sys.stdin)
        for one in error.strangers
    )
