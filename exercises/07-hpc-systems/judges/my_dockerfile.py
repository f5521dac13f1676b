"""Judge my_dockerfile.txt of 7.4: a Dockerfile without faults."""

from __future__ import annotations

from faults_of_image import judge_image

from gpucourse.judge import Part, Way

WAYS = {
    "cuda": Way("{fault}", ("FROM python:3.12-slim-bookworm", "FROM nvidia/cuda:13.2.0-runtime-ubuntu24.04")),
    "latest": Way("{fault}", ("FROM python:3.12-slim-bookworm", "FROM python")),
    "torch": Way("{fault}", ("torch==2.10.0 numpy", "torch numpy")),
    "torch-cuda": Way("{fault}", ("torch==2.10.0 numpy", "torch==2.13.0 numpy")),
    "secret": Way("{fault}", ("WORKDIR /course\n", "WORKDIR /course\nENV HF_TOKEN=hf_0123456789\n")),
    "data": Way("{fault}", ("gpus.json /course/", "gpus.json data/ /course/")),
    "root": Way("{fault}", ("USER learner\n", "")),
    "shared-memory": Way("{fault}", (" --shm-size=1g", "")),
    "no-base": Way("{fault}", ("FROM python:3.12-slim-bookworm\n", "")),
    "emptied": Way("it no longer has {word}: repair it, but keep its purpose", ('CMD ["python", "hello_gpu.py"]\n', "")),
}


def judge(part: Part) -> None:
    """Judge the faults that are found by reading the file. One is in the comment that says how to run the image."""
    judge_image(part, ("CMD|ENTRYPOINT|cmd|entrypoint", "hello_gpu.py", "torch"))
    if "docker run" not in part.text:
        raise part.wrong("emptied", word="docker run")
