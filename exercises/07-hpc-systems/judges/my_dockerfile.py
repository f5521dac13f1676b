"""Judges my_dockerfile.txt of 7.4: a Dockerfile without the seven faults."""

from __future__ import annotations

from pathlib import Path

import images

from gpucourse.judge import Part, Verdict, Way

DRIVER = "580.126"
WAYS = {
    "cuda": Way("{fault}", ("FROM python:3.12-slim-bookworm", "FROM nvidia/cuda:13.2.0-runtime-ubuntu24.04")),
    "latest": Way("{fault}", ("FROM python:3.12-slim-bookworm", "FROM python")),
    "torch": Way("{fault}", ("torch==2.13.0 numpy", "torch numpy")),
    "secret": Way("{fault}", ("WORKDIR /course\n", "WORKDIR /course\nENV HF_TOKEN=hf_0123456789\n")),
    "data": Way("{fault}", ("gpus.json /course/", "gpus.json data/ /course/")),
    "root": Way("{fault}", ("USER learner\n", "")),
    "shared-memory": Way("{fault}", (" --shm-size=1g", "")),
    "no-base": Way("{fault}", ("FROM python:3.12-slim-bookworm\n", "")),
    "emptied": Way("it has no {word} any more: repair it, and keep what it is for", ('CMD ["python", "hello_gpu.py"]\n', "")),
}


def judge(part: Part) -> None:
    """The first fault names the way, the others stand below it."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", says="as delivered: seven faults")
    missing = [word for word in ("CMD", "hello_gpu.py", "torch") if word not in part.text]
    if missing:
        raise part.wrong("emptied", word=missing[0])
    faults = images.find_faults(part.text, DRIVER)
    for fault in faults[1:]:
        part.note(f"also line {fault.line}: {fault.says}")
    if faults:
        raise part.wrong(faults[0].word, fault=f"line {faults[0].line}: {faults[0].says}")
    part.note("no fault is left")
