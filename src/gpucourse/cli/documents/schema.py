"""The JSON Schema of what `--json` prints, made from the types of the documents.

python -m gpucourse.cli.documents.schema > docs/json.schema.json
"""

from __future__ import annotations

import json
import sys
from typing import Any

from gpucourse.cli.documents import course, grades, labs, runs
from gpucourse.outside.documents import make_schemas

VERSION = 1
DOCUMENTS: dict[str, tuple[type, ...]] = {
    "answer": (course.Answers, course.SheetDocument),
    "break": (runs.OneRun, runs.RepairDocument),
    "cancel": (runs.OneRun,),
    "check": (course.RunCheck, course.CheckedAll, course.DiagnosedRun, course.DiagnosedCode),
    "compare": (runs.ComparisonDocument,),
    "cost": (labs.Money,),
    "deploy": (labs.OneBuiltLab, labs.BuiltLabs, labs.QuoteList),
    "destroy": (labs.DestroyDocument,),
    "dev": (course.CheckedCourseDocument, course.CourseFilesDocument),
    "doctor": (labs.Examination, labs.ExaminedAccount, labs.Quotas, labs.Policy, labs.Setup),
    "grade": (grades.Points, grades.GradedBundles, grades.NewBundle, grades.Reruns),
    "hint": (course.Hint,),
    "leaks": (labs.Leaks, labs.CleanupDocument),
    "list": (course.Listing,),
    "next": (course.NextDocument,),
    "quiz": (course.QuizState, course.QuizQuestions),
    "report": (course.ReportFiles, course.CourseReportFile),
    "reset": (course.ResetDocument,),
    "run": (runs.RunResultDocument, runs.OneRun, runs.Plan, runs.SweepOutput, runs.ModuleRuns),
    "runs": (runs.Runs,),
    "show": (course.ShownModule, course.ShownExercise, runs.RunResultDocument),
    "status": (labs.StatusDocument,),
    "trust": (course.TrustedFolders,),
    "try": (course.JudgedParts,),
    **dict.fromkeys(("allow-ip", "extend", "keep", "start", "stop"), (labs.ChangeDocument,)),
}
"""The documents of each command; a command that fails prints `course.FailureDocument` instead."""


def make_schema() -> dict[str, Any]:
    """Return the schema: `#/$defs/runs` is that of the command `runs`, the schema itself accepts any of them."""
    kinds = dict.fromkeys(kind for kinds in DOCUMENTS.values() for kind in kinds)
    definitions = make_schemas([*kinds, course.FailureDocument])
    for kind in (*kinds, course.FailureDocument):
        definition = definitions[kind.__name__]
        definition["properties"] = {"version": {"const": VERSION}} | definition["properties"]
        definition["required"] = ["version", *definition.get("required", [])]
    commands = {
        command: {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in (*kinds, course.FailureDocument)]}
        for command, kinds in sorted(DOCUMENTS.items())
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the commands of gpucourse print with --json",
        "anyOf": [{"$ref": f"#/$defs/{command}"} for command in commands],
        "$defs": commands | dict(sorted(definitions.items())),
    }


def format_schema() -> str:
    """Return the text of the file."""
    return json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(format_schema())
