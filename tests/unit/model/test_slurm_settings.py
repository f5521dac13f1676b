from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest

from gpucourse.errors import UsageError
from gpucourse.model.slurm_settings import SlurmClusters, SlurmContainer, SlurmSettings, merge, read_words

FULL = SlurmSettings(
    partition="gpu", cpu_partition="cpu", account="abc", qos="course", gpu="a100", cpus_per_gpu=8, mem="32G",
    options={"constraint": "ib", "exclusive": True, "requeue": False},
)  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "gpus", "flags"),
    [
        (SlurmSettings(), 0, ""),
        (SlurmSettings(), None, ""),
        (SlurmSettings(), 2, "--gres=gpu:2"),
        (
            FULL,
            2,
            "--partition=gpu --account=abc --qos=course --mem=32G --gres=gpu:a100:2 --cpus-per-gpu=8 --constraint=ib "
            "--exclusive",
        ),
        (FULL, 0, "--partition=cpu --account=abc --qos=course --mem=32G --constraint=ib --exclusive"),
        (FULL, None, "--partition=gpu --account=abc --qos=course --mem=32G --constraint=ib --exclusive"),
        (SlurmSettings(gpu="a100", options={"gpus-per-node": 1}), 1, "--gpus-per-node=1"),
        (SlurmSettings(options={"gres": "gpu:1"}), 0, ""),
    ],
)
def test_flags_are_the_words_after_sbatch(settings: SlurmSettings, gpus: int | None, flags: str) -> None:
    assert " ".join(settings.flags(gpus=gpus)) == flags


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"partition": "a b"}, "partition: must be the name of a partition"),
        ({"login": "-oProxyCommand=x"}, "login: must be a machine"),
        ({"login": "me uni"}, "login: must be a machine"),
        ({"mem": "much"}, "mem: must be the memory"),
        ({"folder": "scratch"}, r"folder: must be a folder"),
        ({"folder": "$(id)"}, r"folder: must be a folder"),
        ({"folder": '/a"; id'}, r"folder: must be a folder"),
        ({"cpus_per_gpu": 0}, "cpus_per_gpu: must be between"),
        ({"python": "'"}, "python: is not a command"),
        ({"setup": ("a\nb",)}, "setup: must be one line"),
        ({"options": {"job-name": "x"}}, "job-name belongs to the course"),
        ({"options": {"time": "5"}}, "type --timeout"),
        ({"options": {"partition": "x"}}, "partition is a key of its own"),
        ({"options": {"-n": "x"}}, "not a long option"),
        ({"options": {"exclude": "a\x1b"}}, "options: must be one line"),
    ],
)
def test_slurm_settings_refuse_what_no_cluster_can_use(values: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        SlurmSettings(**values)


def test_slurm_settings_have_one_image_as_container() -> None:
    for values in ({}, {"apptainer": "a.sif", "pyxis": "b"}):
        with pytest.raises(ValueError, match="name one image"):
            SlurmContainer(**values)


def test_merge_overrides_values_and_combines_options() -> None:
    merged = merge(FULL, SlurmSettings(), SlurmSettings(qos="long", options={"constraint": "a", "nice": 5}))
    assert merged.qos == "long"
    assert merged.account == "abc"
    assert merged.options == {"constraint": "a", "exclusive": True, "requeue": False, "nice": 5}


def test_read_words_returns_keys_and_options() -> None:
    words = ["qos=long", "cpus-per-gpu=4", "gres=gpu:a100:1", "exclusive", "no-requeue=true", "requeue=false"]
    assert read_words([*words, "setup=module load a"]) == SlurmSettings(
        qos="long",
        cpus_per_gpu=4,
        setup=("module load a",),
        options={"gres": "gpu:a100:1", "exclusive": True, "no-requeue": True, "requeue": False},
    )


def test_write_command_repeats_what_was_typed() -> None:
    words = ["--slurm", "mem=8G", "--slurm", "setup=module load a", "--slurm", "constraint=ib", "--slurm", "exclusive"]
    settings = replace(read_words(words[1::2]), login="me@uni", account="abc")
    command = settings.write_command("3")
    assert shlex.split(command) == [
        "gpucourse",
        "deploy",
        "3",
        "--target",
        "slurm",
        "--login",
        "me@uni",
        "--account",
        "abc",
        *words,
    ]


@pytest.mark.parametrize(
    "word", ["login=me@uni", "folder=/x", "job-name=a", "cpus_per_gpu=many", "=x", "partition=a b", "comm=x", "gpus-per-no=1"]
)
def test_read_words_refuses_what_is_not_for_a_run(word: str) -> None:
    with pytest.raises(UsageError, match="--slurm"):
        read_words([word])


def test_choose_returns_the_cluster_of_a_name_or_a_login() -> None:
    uni, company = SlurmSettings(login="me@uni", partition="gpu"), SlurmSettings(login="me@company", account="own")
    several = SlurmClusters(account="abc", clusters={"uni": uni, "company": company})
    assert several.choose(cluster="uni") == SlurmSettings(login="me@uni", partition="gpu", account="abc")
    assert several.choose(login="me@company").account == "own"
    assert several.choose(login="me@other") == SlurmSettings(login="me@other", account="abc")
    with pytest.raises(UsageError, match="several Slurm clusters, and none is the default"):
        several.choose()
    with pytest.raises(UsageError, match=r"no Slurm cluster 'unni'.*Did you mean uni"):
        several.choose(cluster="unni")
    assert SlurmClusters(default="uni", clusters={"uni": uni, "company": company}).choose().login == "me@uni"
    assert SlurmClusters(clusters={"uni": uni}).choose().login == "me@uni"
    assert SlurmClusters(login="me@uni").choose().login == "me@uni"


def test_slurm_settings_refuse_an_unknown_default_cluster() -> None:
    with pytest.raises(ValueError, match="default: there is no cluster 'un'"):
        SlurmClusters(default="un", clusters={"uni": SlurmSettings()})
