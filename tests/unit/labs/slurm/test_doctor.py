from __future__ import annotations

from gpucourse.labs.slurm.doctor import write_settings
from gpucourse.model.slurm_facts import SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from gpucourse.workspace.settings import Settings
from tests.unit.labs.slurm.test_deploy import FACTS
from tests.unit.labs.slurm.test_facts import LOGIN


def test_write_settings_writes_what_gpucourse_yaml_accepts() -> None:
    from gpucourse.outside.yaml_reader import read_document

    facts = SlurmFacts(partitions=FACTS.partitions, modules=("gcc/13", "PyTorch/2.5"))
    text = write_settings(LOGIN, SlurmSettings(folder="$SCRATCH", gpu="a100"), facts, FACTS.partitions[1], "abc")
    settings = Settings.model_validate(read_document(text.encode()).data)
    assert settings.slurm.choose() == SlurmSettings(
        login="me@uni",
        partition="gpu",
        cpu_partition="cpu",
        account="abc",
        gpu="a100",
        setup=("module load PyTorch/2.5",),
        folder="$SCRATCH",
    )


def test_write_settings_leaves_out_what_needs_no_value() -> None:
    assert write_settings(LOGIN, SlurmSettings(), SlurmFacts(), None, "") == "slurm:\n  login: me@uni"
