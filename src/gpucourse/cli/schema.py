"""The JSON Schema of the output of `--json`, made from the classes of the documents.

python -m gpucourse.cli.schema > docs/json.schema.json
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from gpucourse.cli import (
    answer,
    break_,
    check,
    compare,
    cuda,
    deploy,
    destroy,
    dev,
    doctor,
    grade,
    grade_rerun,
    hint,
    leaks,
    list_,
    next_,
    outcome,
    output,
    quiz,
    report,
    reset,
    runs,
    show,
    status,
    trust,
    try_,
)
from gpucourse.labs.aws.cost import Cost
from gpucourse.labs.results import ChangeResult, LoginReport
from gpucourse.learning.course_report import CourseReport
from gpucourse.ui.console import FailureDocument

VERSION = 1
DOCUMENTS: dict[str, tuple[type, ...]] = {
    "answer": (answer.Answers, answer.SheetFile),
    "break": (output.OneRun, break_.JudgedRepair),
    "cancel": (output.OneRun,),
    "check": (check.RunCheck, check.CheckedAll, check.DiagnosedRun, check.DiagnosedCode),
    "compare": (compare.ComparisonDocument,),
    "cost": (Cost,),
    "cuda": (cuda.CudaPrograms,),
    "deploy": (deploy.OneBuiltLab, deploy.BuiltLabs, deploy.QuoteList),
    "destroy": (destroy.Destroyed,),
    "dev": (dev.CheckedCourseDocument, dev.CourseFiles),
    "doctor": (
        doctor.Examination,
        doctor.ExaminedAccount,
        LoginReport,
        doctor.Quotas,
        doctor.Policy,
        doctor.Setup,
    ),
    "grade": (grade.Points, grade.GradedBundles, grade.NewBundle, grade_rerun.Reruns),
    "hint": (hint.Hint, hint.Hints),
    "leaks": (leaks.Leaks, leaks.Cleanup),
    "list": (list_.Listing,),
    "next": (next_.Next,),
    "quiz": (quiz.QuizState, quiz.QuizQuestions),
    "report": (report.ReportFiles, CourseReport),
    "reset": (reset.ResetFiles,),
    "run": (outcome.RunOutput, output.OneRun, outcome.Plan, outcome.SweepOutput, outcome.ModuleRuns),
    "runs": (runs.Runs,),
    "show": (show.ShownModule, show.ShownExercise, show.Solutions, outcome.RunOutput),
    "status": (status.StatusDocument,),
    "trust": (trust.TrustedFolders,),
    "try": (try_.JudgedParts,),
    **dict.fromkeys(("allow-ip", "extend", "keep", "start", "stop"), (ChangeResult,)),
}
"""The documents of each command; a command that fails prints a `FailureDocument` instead."""


def make_schema() -> dict[str, Any]:
    """Return the schema. `#/$defs/runs` is the schema of the command `runs`; the schema as a whole accepts the output of any
    command."""
    kinds = dict.fromkeys(kind for kinds in DOCUMENTS.values() for kind in kinds)
    definitions = _make_definitions([*kinds, FailureDocument])
    for kind in (*kinds, FailureDocument):
        definition = definitions[kind.__name__]
        definition["properties"] = {"version": {"const": VERSION}} | definition["properties"]
        definition["required"] = ["version", *definition["required"]]
    commands = {
        command: {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in (*kinds, FailureDocument)]}
        for command, kinds in sorted(DOCUMENTS.items())
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of gpucourse print with --json",
        "anyOf": [{"$ref": f"#/$defs/{command}"} for command in commands],
        "$defs": commands | dict(sorted(definitions.items())),
    }


def _make_definitions(kinds: Sequence[type]) -> dict[str, Any]:
    """Return the schemas of these classes and of the classes that they contain, by name. A path counts as text. Every key is
    required unless it may be UNSET, because default values are printed as well."""
    text, any_value = {"type": "string"}, {"description": "any value"}
    _, definitions = msgspec.json.schema_components(
        kinds, ref_template="#/$defs/{name}", schema_hook=lambda kind: text if kind is Path else any_value
    )
    optional = {
        kind.__name__: {field.encode_name for field in msgspec.structs.fields(kind) if field.default is UNSET}
        for kind in _list_subclasses(Struct)
    }
    for name, definition in definitions.items():
        if description := definition.get("description"):
            # Before Python 3.13, a docstring keeps its indent.
            definition["description"] = inspect.cleandoc(description)
        if properties := definition.get("properties"):
            definition["required"] = [key for key in properties if key not in optional.get(name, ())]
            for value in properties.values():
                value.pop("default", None)
    return definitions


def _list_subclasses(kind: type[Struct]) -> list[type[Struct]]:
    return [subclass for child in kind.__subclasses__() for subclass in (child, *_list_subclasses(child))]


def format_schema() -> str:
    """Return the text of `docs/json.schema.json`."""
    return json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_schema())
