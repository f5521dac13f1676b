"""The two labs of the live hour, as a separate course: one instance each, of the smallest type with a GPU."""

from __future__ import annotations

from pathlib import Path

from gpucourse.course.locate import CourseFolders, course_in
from gpucourse.hardware import hardware
from gpucourse.storage import write_text

ON_DEMAND, SPOT = "1", "2"
TTL_H = 1
_MANIFEST = """\
format: 1
id: "{id}"
title: {title}
summary: A lab of one instance.
hours: 1
lab:
  local: {{template: simulated, nodes: 1}}
  aws: {{template: {template}, gpu: {gpu}, size: xlarge, nodes: 1, max_nodes: 1{more}}}
exercises:
  - id: "{id}.1"
    title: Hello
    goal: Say hello.
    minutes: 5
    script: hello.py
    launch: {{kind: python}}
    tasks: [Say it.]
    hints: [Look up., Look down., Listen.]
"""
_LABS = {
    ON_DEMAND: ("01-on-demand", "On demand", "basic-gpu", ""),
    SPOT: ("02-spot", "Spot, with shared storage", "parallel", ", storage_gib: 5"),
}


def write_course(folder: Path) -> CourseFolders:
    """Write the course to that folder, over existing files; return its folders."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)  # a folder that others may write to would be refused
    gpu = hardware().choices[0]  # the cheapest
    for number, (name, title, template, more) in _LABS.items():
        manifest = _MANIFEST.format(id=number, title=title, template=template, gpu=gpu, more=more)
        write_text(Path(folder, "modules", name, "module.yaml"), manifest)
        write_text(Path(folder, "modules", name, "lesson.md"), f"# {title}\n")
        write_text(Path(folder, "exercises", name, "hello.py"), 'print("hello")\n')
    return course_in(folder, named_by=str(folder), hint="gpucourse dev live writes it again")
