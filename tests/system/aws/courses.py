"""A course with one module for each stack on AWS, so that every stack can be deployed."""

from __future__ import annotations

from pathlib import Path

_MANIFEST = """\
format: 1
id: "{id}"
title: {title}
summary: A lab and one exercise.
hours: 2
lab:
  local: {{template: simulated, nodes: 1}}
  aws: {{template: {template}, {lab}}}
exercises:
  - id: "{id}.1"
    title: Hello
    goal: Say hello.
    minutes: 20
    script: hello.py
    launch: {{kind: python}}
    tasks: [Say it.]
    hints: [Look up., Look down., Listen.]
"""
_LABS = {
    "1": ("01-one", "basic-gpu", "gpu: t4, nodes: 1, max_nodes: 1"),
    "2": ("02-cluster", "slurm-cluster", "gpu: t4, nodes: 3, min_nodes: 2, head: true, storage_gib: 5"),
    "4": ("04-several", "benchmark", "gpu: t4, nodes: 1, max_nodes: 1"),
}


def write_course(folder: Path) -> Path:
    """Write the course into a folder for GPUCOURSE_COURSE."""
    for number, (name, template, lab) in _LABS.items():
        module, scripts = folder / "modules" / name, folder / "exercises" / name
        module.mkdir(parents=True)
        scripts.mkdir(parents=True)
        manifest = _MANIFEST.format(id=number, title=f"Lab {number}", template=template, lab=lab)
        (module / "module.yaml").write_text(manifest, encoding="utf-8")
        (module / "lesson.md").write_text("# Lab\n", encoding="utf-8")
        (scripts / "hello.py").write_text('print("hello")\n', encoding="utf-8")
    return folder
