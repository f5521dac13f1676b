"""Judges my_definition.def of 7.4: an Apptainer definition without the four faults."""

from __future__ import annotations

from pathlib import Path

import images

from gpucourse.judge import Part, Verdict, Way

DRIVER = "580.126"
WAYS = {
    "cuda": Way("{fault}", ("cuda:12.8.1", "cuda:13.2.0")),
    "latest": Way("{fault}", ("nvidia/cuda:12.8.1-runtime-ubuntu24.04", "nvidia/cuda")),
    "torch": Way("{fault}", ("torch==2.13.0", "torch")),
    "data": Way("{fault}", ("gpus.json /course\n", "gpus.json /course\n    checkpoints/model.safetensors /course\n")),
    "no-environment": Way("{fault}", ("%environment\n    export PATH=/opt/course/bin:$PATH\n", "")),
    "secret": Way(
        "{fault}", ("    export PATH=/opt/course/bin:$PATH", "    export PATH=/opt/course/bin:$PATH HF_TOKEN=hf_0123456789")
    ),
    "emptied": Way(
        "it has no {word} any more: repair it, and keep what it is for",
        ('%runscript\n    exec python /course/hello_gpu.py "$@"\n', ""),
    ),
}


def judge(part: Part) -> None:
    """The first fault names the way, the others stand below it."""
    if part.text == (Path(__file__).parent.parent / part.file.name).read_text(encoding="utf-8"):
        raise Verdict("open", says="as delivered: four faults")
    missing = [word for word in ("%runscript", "hello_gpu.py", "torch") if word not in part.text]
    if missing:
        raise part.wrong("emptied", word=missing[0])
    faults = images.find_faults(part.text, DRIVER)
    for fault in faults[1:]:
        part.note(f"also line {fault.line}: {fault.says}")
    if faults:
        raise part.wrong(faults[0].word, fault=f"line {faults[0].line}: {faults[0].says}")
    part.note("no fault is left")
