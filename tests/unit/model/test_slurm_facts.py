from __future__ import annotations

import pytest

from gpucourse.model.slurm_facts import PartitionFacts, ProbeFacts, SlurmFacts

CPU = PartitionFacts(name="cpu", default=True, max_s=300, nodes=2, usable=2, cores=4)
SHORT = PartitionFacts(
    name="short", max_s=1800, nodes=2, usable=2, gpus=4, gpu_nodes=2, gpu_types={"a100": 1, "v100": 1}, accounts=("abc",)
)
LONG = PartitionFacts(name="long", max_s=None, nodes=2, usable=2, gpus=1, gpu_nodes=2)
DOWN = PartitionFacts(name="down", open=False, nodes=9, usable=9, gpus=8, gpu_nodes=9)
DRAINED = PartitionFacts(name="drained", nodes=4, gpus=8, gpu_nodes=4)


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ({"gpus": 0}, "cpu"),
        ({"gpus": 1}, "long"),
        ({"gpus": 2}, "short"),
        ({"gpus": 1, "gpu": "a100"}, "short"),
        ({"gpus": 1, "gpu": "a100", "nodes": 2}, None),  # the GPUs of the others have no type that Slurm knows
        ({"gpus": 1, "time_s": 3600.0}, "long"),
        ({"gpus": 4, "account": "other"}, "drained"),
        ({"gpus": 8}, "drained"),
        ({"gpus": 9}, None),
        ({"gpus": 0, "nodes": 5}, None),
    ],
)
def test_choose_partition_returns_one_that_fits(request_: dict[str, object], name: str | None) -> None:
    facts = SlurmFacts(partitions=[CPU, SHORT, LONG, DOWN, DRAINED], accounts=("abc",))
    partition = facts.choose_partition(**request_)  # type: ignore[arg-type]
    assert (partition.name if partition else None) == name


def test_choose_partition_prefers_one_for_everybody_if_the_accounts_are_unknown() -> None:
    for_all = PartitionFacts(name="all", max_s=60, nodes=1, usable=1, gpus=1, gpu_nodes=1)
    partition = SlurmFacts(partitions=[SHORT, for_all]).choose_partition(gpus=1)
    assert partition is for_all


def test_admits_follows_the_accounts_of_a_partition() -> None:
    denied = PartitionFacts(name="a", denied_accounts=("abc",))
    assert [SHORT.admits(["abc"]), SHORT.admits(["dead"]), SHORT.admits([])] == [True, False, True]
    assert [denied.admits(["abc"]), denied.admits(["abc", "own"])] == [False, True]


def test_slurm_facts_refuse_what_no_cluster_says() -> None:
    for make in (
        lambda: PartitionFacts(name="a b"),
        lambda: PartitionFacts(name="a", accounts=("\x1b[31m",)),
        lambda: SlurmFacts(cluster="x" * 2000),
        lambda: SlurmFacts(partitions=[CPU] * 501),
        lambda: ProbeFacts(problem="\x07"),
    ):
        with pytest.raises(ValueError):
            make()
