"""`grade --rerun`: asks for confirmation, runs the scripts of a bundle, judges its parts again, and shows which results
differ."""

from __future__ import annotations

import shlex
from pathlib import Path

from gpucourse.cli.asking import confirm
from gpucourse.cli.output import CardDocument, JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, MissingError
from gpucourse.learning.review.rerun import Rerun, rerun
from gpucourse.model.event import Note

WARNING = (
    "This runs the learner's code on this computer, with your permissions. If you do not know the learner, do it in a "
    "container or a virtual machine."
)


class Reruns(JsonDocument):
    """The output of `grade --rerun`. `original` says whether the course's own scripts replaced edited ones."""

    bundle: Path
    card: CardDocument
    original: bool
    exercises: list[Rerun]


def show_reruns(session: Session, path: Path, exercise: str | None, *, original: bool, yes: bool) -> None:
    """Run a bundle's scripts again if the person agrees. Raises CheckFailed if a result differs, and MissingError if nothing
    could be run again."""
    from gpucourse.learning.bundle import open_bundle
    from gpucourse.ui.views import grade as views

    console, command = session.console, f"gpucourse grade --rerun {shlex.quote(str(path))}"
    context = session.context.watched_by(lambda event: console.note(event.text) if isinstance(event, Note) else None)
    with open_bundle(context, path) as bundle:
        console.warn(WARNING)
        if not confirm(session, f"run the scripts of {bundle.path.name}?", yes=yes, command=command):
            console.note("nothing was run")
            return
        reruns = list(rerun(bundle.context, (exercise,) if exercise else (), original=original))
    document = Reruns(bundle=path, card=CardDocument.build(bundle.card), original=original, exercises=reruns)
    session.present(views.reruns(bundle.card, reruns, original=original), document)
    if different := [item.exercise for item in reruns if item.verdict == "differs"]:
        raise CheckFailed(
            f"results differ from those of the bundle: {', '.join(different)}",
            hint=f"{command} --exercise {different[0]} --json",
        )
    if not any(item.verdict == "agrees" or item.figures for item in reruns):
        reason = next((f": {item.exercise}: {item.why}" for item in reruns), "")
        raise MissingError(f"nothing in {path.name} could be run again{reason}", hint="gpucourse doctor")
