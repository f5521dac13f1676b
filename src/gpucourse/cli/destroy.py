"""The command `destroy`: removes labs, and proves that nothing is left."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import choice_option, gpu_option
from gpucourse.cli.output import UNSET, JsonDocument, UnsetType
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, UsageError
from gpucourse.labs.target import list_targets
from gpucourse.model.deployment import Receipt
from gpucourse.model.node import SIMULATED
from gpucourse.ui.console import ErrorDocument, describe_errors

if TYPE_CHECKING:
    from gpucourse.labs.destroy import DestroyRequest, Survey


class Destroyed(JsonDocument):
    """The output of `destroy`, with `error` if not every lab was removed."""

    receipts: list[Receipt]
    error: ErrorDocument | UnsetType = UNSET


def destroy(
    session: Session,
    module: Annotated[
        str | None, typer.Argument(help="The number of a module; or --all.", autocompletion=complete.deployed_modules)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every lab of this workspace.")] = False,
    target: Annotated[
        str | None, choice_option("--target", "Only the lab on this target, if the module has several.", list_targets())
    ] = None,
    gpu: Annotated[str | None, gpu_option("Only the lab with that GPU")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation (only paid labs need it).")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Discard outputs that have not been collected yet.")] = False,
    forget_unreachable: Annotated[
        bool,
        typer.Option(
            "--forget-unreachable",
            help="On hosts: forget machines that cannot be reached any more, and list what may be left there.",
        ),
    ] = False,
) -> None:
    """Collect outputs, take the lab down, prove that nothing is left."""
    from gpucourse.cli.ssh_include import remove_line
    from gpucourse.labs.destroy import DestroyRequest, survey
    from gpucourse.labs.destroy import destroy as act
    from gpucourse.ui.views.lab import destroy_result

    if (module is None) == (not everything):
        raise UsageError("name one module, or all of them", hint="gpucourse destroy 3, or gpucourse destroy --all")
    context = session.look(with_note=True)
    with session.console.watch() as live:
        request = DestroyRequest(module=module, target=target, gpu=gpu, forget_unreachable=forget_unreachable)
        survey_result = survey(context.watched_by(live), request)
    command = _format_command(request, discard=discard)
    _agree(session, survey_result, yes=yes, discard=discard, command=command)
    if any(lab.is_simulated for lab in survey_result.labs):
        session.console.mode(SIMULATED)
    with session.console.watch(brief=not session.console.verbose) as live:
        try:
            result = act(context.watched_by(live), survey_result, discard=discard, forget_unreachable=forget_unreachable)
        except KeyboardInterrupt:
            raise Interrupted("interrupted while labs were being taken down; some may still be there", hint=command) from None
    remove_line(session)
    error = describe_errors(result.errors) if result.errors else UNSET
    session.console.document(Destroyed(receipts=result.receipts, error=error))
    if result.receipts or not result.errors:
        subject = _describe_missing(module, target, gpu)
        other_labs, whole = survey_result.others, session.console.verbose
        session.console.show(
            destroy_result(result.receipts, context.paths.receipts, not_deployed=subject, deployed_labs=other_labs, whole=whole)
        )
    session.fail(result.errors)


def _format_command(request: DestroyRequest, *, discard: bool) -> str:
    """Return the command as it was typed. Without its options, a repeated command would remove more than was intended."""
    words = ["gpucourse", "destroy", request.module or "--all"]
    words += ["--target", request.target] if request.target else []
    words += ["--gpu", request.gpu] if request.gpu else []
    words += ["--discard"] if discard else []
    words += ["--forget-unreachable"] if request.forget_unreachable else []
    return shlex.join(words)


def _agree(session: Session, survey_result: Survey, *, yes: bool, discard: bool, command: str) -> None:
    """Ask for confirmation if a lab that costs money would be removed. Raises Interrupted if the person declines."""
    if yes or not (survey_result.all_untracked or any(lab.costs for lab in survey_result.labs)):
        return
    from gpucourse.cli.asking import confirm
    from gpucourse.labs.destroy import preview_destroy
    from gpucourse.ui.views.destroy_preview import destroy_preview as view

    preview = preview_destroy(session.look(), survey_result.labs)
    session.console.show(
        view(preview, untracked=survey_result.all_untracked, free_labs=len(survey_result.labs) - len(preview), discard=discard)
    )
    if not confirm(session, "Take this down?", yes=yes, command=command):
        raise Interrupted("nothing was changed", hint=f"when you are done with it: {command}")


def _describe_missing(module: str | None, target: str | None, gpu: str | None) -> str:
    """Return the message for labs that are not deployed."""
    text = f"Module {module} is not deployed" if module else "No such lab is deployed"
    return text + (f" on {target}" if target else "") + (f" with {gpu}" if gpu else "")
