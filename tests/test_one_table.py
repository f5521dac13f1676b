"""A GPU is named in one table, `exercises/shared/gpus.json`: no code names a GPU, its instance types or its quotas."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.hardware import TABLE, hardware
from tests.over_files import nodes_of, over_files

ROOT = Path(__file__).resolve().parent.parent
TEACHES = {  # scripts whose lesson is one GPU beside another: their questions name both
    "exercises/04-benchmarking/judges/my_peaks.py": "its cases are GPUs whose data sheets are known, in numbers of its own",
    "exercises/04-benchmarking/gpu_specs.py": "4.1 asks how much faster an L4 is than a T4",
    "exercises/05-gpu-programming/versions.py": "the figures that others published of their kernels name the GPU of each",
    "exercises/04-benchmarking/cost_analysis.py": "4.4 asks from where on an L4 pays for itself beside a T4",
    "exercises/06-training-at-scale/estimates.py": "6.1 asks on which of six GPUs a training fits",
    "exercises/06-training-at-scale/memory_optimisation.py": "6.1 begins with the smallest of them",
    "exercises/06-training-at-scale/targets.py": "its clusters are examples, one beside another, with the links of each",
    "exercises/07-hpc-systems/cases.py": "what a computer lists names the GPU that is in it",
    "exercises/07-hpc-systems/mig.py": "it has GPUs that can be divided beside some that cannot",
    "exercises/07-hpc-systems/topology.py": "its listings of links are those of known computers",
}
CODE = {
    path.relative_to(ROOT).as_posix(): path
    for folder, pattern in [
        ("src", "*.py"), ("src", "*.json"), ("exercises", "*.py"), ("exercises", "*.json"), ("benchmarks", "*.py"),
        ("terraform", "*.tf"), ("terraform", "*.sh"), ("terraform", "*.py"), ("terraform", "*.tftpl"),
    ]
    for path in sorted((ROOT / folder).rglob(pattern))
    if path != ROOT / TABLE and ".terraform" not in path.parts
}  # fmt: skip


def names() -> re.Pattern[str]:
    """Whatever belongs to one GPU: the words for it, its families of instances, the codes of its quotas."""
    rented = [entry for entry in hardware().rented if entry.gpu]
    words = {word for entry in rented for word in (entry.gpu, entry.choice)}
    families = {name.partition(".")[0] for entry in rented for name in entry.types}
    codes = {code for quota in hardware().quotas.values() for code, _name in quota.by_market.values()}
    return re.compile(
        rf"(?<![\w.-])(?:{'|'.join(map(re.escape, sorted(words | codes)))})(?![\w-])"
        rf"|(?<![\w.-])(?:{'|'.join(sorted(families))})(?:\.[a-z0-9]+)?(?![\w-])"
    )


def texts(path: Path) -> Iterator[str]:
    """The strings of Python's code without docstrings; of other files what is no comment. Prose may name a GPU."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        yield json.dumps(json.loads(text))
    elif path.suffix != ".py":
        yield from (re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines())
    else:
        prose = {
            id(node.body[0].value)
            for node in nodes_of(path)
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes_of(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
                yield node.value


@over_files(CODE.values())
def test_no_code_names_a_gpu(path: Path) -> None:
    name, pattern = path.relative_to(ROOT).as_posix(), names()
    named = [match[0] for text in texts(path) for match in pattern.finditer(text)]
    assert bool(named) == (name in TEACHES), f"{name} names {named}: read it from {TABLE}"


@pytest.mark.parametrize(
    "word", ["T4", "t4", "NVIDIA L4", "g6e", "g4dn.xlarge", "H100", "p5.48xlarge", "L-DB2E81BA", "a g5 or a g6"]
)
def test_the_names_are_seen(word: str) -> None:
    assert names().search(word)


@pytest.mark.parametrize("word", ["", "T40", "t3.medium", "L-F678F1CE", "the L2 cache", "-g6", "/dev/xvdt4", "us-east-2"])
def test_other_words_are_not_taken_for_names(word: str) -> None:
    assert not names().search(word)
