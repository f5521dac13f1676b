"""Add the line to ~/.ssh/config that lets plain `ssh` reach the nodes, if the person agrees, and remove it again."""

from __future__ import annotations

import sys

from gpucourse.cli.asking import can_answer
from gpucourse.cli.session import Session
from gpucourse.errors import GpucourseError


def offer_line(session: Session, module: str, *, ask: bool) -> None:
    """Ask whether to add the line to ~/.ssh/config, and add it if the person agrees. The answer is stored, so the person
    is asked only once, and never without a terminal. Problems are reported, but do not stop the command.
    """
    from gpucourse.labs import ssh

    context, console = session.context, session.console
    try:
        consent = ssh.read_answer(context.paths)
        if consent is None:
            if not ask or not can_answer(session) or not console.err.terminal:
                return
            try:
                ssh.find_config(context.environ)
            except GpucourseError:  # do not offer what cannot be done; `init --ssh-include` says why
                return
            question = f"Add one line to ~/.ssh/config, so that `ssh gpucourse-{module}-node0` and editors reach these nodes?"
            consent = console.ask(question, sys.stdin)
            ssh.keep_answer(context.paths, answer=consent)
        if consent and ssh.add_line(context):
            console.note(f"~/.ssh/config includes this workspace's nodes now: ssh gpucourse-{module}-node0")
    except GpucourseError as error:
        console.warn(f"{error.what}; {error.hint}")


def decide(session: Session, *, included: bool) -> None:
    """Add the line to ~/.ssh/config or remove it, and store the person's choice.

    Raises MissingError or UsageError if the file cannot be changed.
    """
    from gpucourse.labs import ssh

    has_changed = (ssh.add_line if included else ssh.remove_line)(session.context)
    ssh.keep_answer(session.context.paths, answer=included)
    state = "includes this workspace's nodes" if included else "does not include this workspace's nodes"
    session.console.note(f"~/.ssh/config {state}{' now' if has_changed else ', as before'}")


def remove_line(session: Session) -> None:
    """Remove the line in ~/.ssh/config if no lab is left. The next deploy adds it again."""
    from gpucourse.labs import ssh

    context = session.look()
    try:
        if ssh.read_answer(context.paths) and not ssh.has_labs(context.paths) and ssh.remove_line(context):
            session.console.note("~/.ssh/config does not include this workspace's nodes any more")
    except GpucourseError as error:
        session.console.warn(f"{error.what}; {error.hint}")
