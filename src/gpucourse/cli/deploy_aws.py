"""deploy on AWS: look and price, show, ask, build exactly that."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING

from gpucourse.cli.confirm import confirmed
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, Interrupted

if TYPE_CHECKING:
    from gpucourse.labs.aws.build import Built
    from gpucourse.labs.aws.propose import Proposal
    from gpucourse.labs.deploy import Wish


def deploy_on_aws(session: Session, wish: Wish, *, yes: bool, json: bool) -> int:
    """Show what would be built and what it costs; after a yes, build it."""
    from gpucourse.labs.aws.build import build
    from gpucourse.labs.aws.propose import offered
    from gpucourse.ui.views.cloud import quote

    context, face = session.context, session.face
    command = typed(wish)
    with ExitStack() as held:
        with face.watch() as live:
            context.watch = live
            proposal = held.enter_context(offered(context, wish))
        if wish.dry_run:
            if json:
                face.document(_document(proposal))
            face.show(quote(proposal, again=command))
            return ExitCode.DONE
        if proposal.matters:
            face.show(quote(proposal))
        proposal.purse.check(proposal.quotes, over_budget=wish.over_budget)
        question = "Build this?" if any(quote.creates for quote in proposal.quotes) else "Change the lab like this?"
        if proposal.matters and not confirmed(session, question, yes=yes, command=command):
            said = "built, and nothing costs" if all(offer.fresh for offer in proposal.offers) else "changed"
            raise Interrupted(f"nothing was {said}", hint=command)
        with face.watch() as live:
            context.watch = live
            built = build(context, proposal)
    return _show(session, proposal, built, json=json)


def typed(wish: Wish) -> str:
    """The command that this wish was typed as, without --dry-run."""
    words = ["gpucourse", "deploy", wish.module, "--target", "aws"]
    for flag, value in (
        ("--nodes", wish.nodes),
        ("--gpu", ",".join(wish.gpu)),
        ("--region", wish.region),
        ("--ttl", f"{wish.ttl_s:g}s" if wish.ttl_s is not None else None),
        ("--ssh-cidr", wish.ssh_cidr),
    ):
        words += [flag, str(value)] if value else []
    words += [] if wish.spot is None else ["--spot" if wish.spot else "--no-spot"]
    words += ["--yes-over-budget"] if wish.over_budget else []
    return shlex.join(words)


def _show(session: Session, proposal: Proposal, built: Built, *, json: bool) -> int:
    from gpucourse.ui.views.cloud import built as view

    context, face = session.context, session.face
    if json:
        face.document({"labs": built.labs, **_document(proposal), **_told(built)})
    for lab in built.labs:
        first = context.catalog.module(lab.deployment.module).exercises[0].id
        face.show(view(lab, context.paths.stack(lab.deployment.stack).ssh_config, first))
    if not built.errors:
        return ExitCode.DONE
    *others, worst = sorted(built.errors, key=lambda error: error.exit_code)
    for error in others:
        face.error(error)
    raise worst  # it decides the exit code


def _told(built: Built) -> dict[str, object]:
    """The gravest error, where some labs were built and others were not."""
    if not built.errors:
        return {}
    worst = max(built.errors, key=lambda error: error.exit_code)
    what = "\n".join(error.what for error in built.errors)
    return {
        "error": {"code": worst.code, "what": what, "hint": worst.hint, "log": worst.log, "exit_code": int(worst.exit_code)}
    }


def _document(proposal: Proposal) -> dict[str, object]:
    purse = proposal.purse
    return {
        "quotes": [quote.document() for quote in proposal.quotes],
        "later": [choice.gpu for choice in proposal.later],
        "notes": proposal.notes,
        "findings": proposal.findings,
        "budget_usd": str(purse.budget) if purse.budget is not None else None,
        "spent_usd": f"{purse.spent:.4f}",
        "left_usd": f"{purse.left:.4f}" if purse.left is not None else None,
    }
