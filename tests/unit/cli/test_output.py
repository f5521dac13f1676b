from __future__ import annotations

import json
from dataclasses import replace

from gpucourse.cli.output import LabDocument
from gpucourse.model.slurm_facts import ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings
from tests.learning import Learning
from tests.unit.labs.slurm.test_deploy import make_lab


def test_output_of_a_run_is_not_the_stored_record(learning: Learning) -> None:
    record = learning.record()
    [run] = learning.types("runs", "--json").document["runs"]
    stored = json.loads((learning.folder(record) / "run.json").read_text())
    assert (run["id"], run["verdict"], run["detail"]) == (record.id, "passed", "")
    assert {"outputs", "rank_exits", "phases_s", "full_logs", "silence_s"} <= set(stored) - set(run)


def test_output_of_a_lab_on_a_cluster_has_its_partition_and_its_lacks() -> None:
    lab = make_lab(ProbeFacts(), settings=SlurmSettings(login="uni", account="abc"), lacks="torch sees no GPU")
    document = LabDocument.build(lab)
    assert document.cluster is not None
    assert (document.cluster.login, document.cluster.partition, document.cluster.account) == ("uni", "gpu", "abc")
    assert document.lacks == "torch sees no GPU"
    assert replace(lab, settings=SlurmSettings(partition="cpu")).cluster.partition == "cpu"
    without_gpus = replace(lab, facts=SlurmFacts(partitions=lab.facts.partitions[:1]))
    assert without_gpus.cluster.partition == "cpu"
