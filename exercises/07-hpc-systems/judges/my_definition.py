"""Judge my_definition.def of 7.4: an Apptainer definition without faults."""

from __future__ import annotations

from faults_of_image import judge_image

from gpucourse.judge import Part, Way

WAYS = {
    "cuda": Way("{fault}", ("cuda:12.8.1", "cuda:13.2.0")),
    "latest": Way("{fault}", ("nvidia/cuda:12.8.1-runtime-ubuntu24.04", "nvidia/cuda")),
    "torch": Way("{fault}", ("torch==2.10.0", "torch")),
    "torch-cuda": Way("{fault}", ("torch==2.10.0", "torch==2.13.0")),
    "data": Way("{fault}", ("gpus.json /course\n", "gpus.json /course\n    checkpoints/model.safetensors /course\n")),
    "no-environment": Way("{fault}", ("%environment\n    export PATH=/opt/course/bin:$PATH\n", "")),
    "secret": Way(
        "{fault}", ("    export PATH=/opt/course/bin:$PATH", "    export PATH=/opt/course/bin:$PATH HF_TOKEN=hf_0123456789")
    ),
    "emptied": Way(
        "it no longer has {word}: repair it, but keep its purpose",
        ('%runscript\n    exec python /course/hello_gpu.py "$@"\n', ""),
    ),
}


def judge(part: Part) -> None:
    """Judge the faults that are found by reading the file."""
    judge_image(part, ("%runscript", "/hello_gpu.py", "torch"))
