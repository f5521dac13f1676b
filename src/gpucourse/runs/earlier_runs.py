"""The measurements of earlier runs that an exercise builds on: they are sent along with its script."""

from __future__ import annotations

from gpucourse.errors import MissingError
from gpucourse.model.manifest import Exercise
from gpucourse.model.plan import Upload
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_metrics
from gpucourse.workspace.paths import WorkspacePaths

MOST = 8
FAULTY = {"failed", "error"}


def earlier_runs(paths: WorkspacePaths, exercise: Exercise) -> list[Upload]:
    """Return, for each exercise that this one builds on, its newest good run on each device and with each model, as
    `earlier-4.3-20260131-142501-otter.json`. A run that failed, or whose checks did, is left out."""
    uploads: list[Upload] = []
    for wanted in exercise.builds_on:
        taken: set[tuple[str, str]] = set()
        for record in runs.iterate_newest_first(paths, wanted):
            source = runs.files_of(paths, record).metrics
            if not record.is_evidence or record.verdict in FAULTY or not source.is_file():
                continue
            try:
                metrics = read_metrics(source)
            except MissingError:
                continue
            kind = (str(metrics.get("device")), str(metrics.get("model"))) if isinstance(metrics, dict) else ("", "")
            if kind[0] and kind not in taken and len(taken) < MOST:
                taken.add(kind)
                uploads.append(Upload(name=f"earlier-{wanted}-{record.id}.json", source=source))
    return uploads
