from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.aws import quota
from gpucourse.course.catalog import Catalog, load
from gpucourse.course.locate import find_course
from gpucourse.errors import UsageError
from gpucourse.labs.aws.needs import HEAD, need_of, needs

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load(find_course({}))


def test_need_of_module_3_is_two_machines_and_shared_storage(catalog: Catalog) -> None:
    need = need_of(catalog.module("3"))
    assert [(machine.instance_type, machine.count) for machine in need.machines] == [("g4dn.2xlarge", 2)]
    assert need.storage_gib == 5
    assert need.hours == Decimal(str(catalog.module("3").hours))
    larger = need_of(catalog.module("3"), gpu="l4", nodes=4)
    assert [(machine.instance_type, machine.count) for machine in larger.machines] == [("g6.2xlarge", 4)]


def test_need_of_two_nodes_fits_into_a_first_grant_of_8_vcpus(catalog: Catalog) -> None:
    module = catalog.module("3")
    assert need_of(module).smaller == "g4dn.xlarge"
    small = need_of(module, size="xlarge")
    assert (small.smaller, [(machine.instance_type, machine.count) for machine in small.machines]) == ("", [("g4dn.xlarge", 2)])
    assert quota.needs([small], "on-demand") == {("L-DB2E81BA", "on-demand"): {"3": 8}}
    assert need_of(module, gpu="h100").smaller == "", "it is offered in one size"


def test_need_of_refuses_a_module_without_a_cloud_lab(catalog: Catalog) -> None:
    with pytest.raises(UsageError) as refused:
        need_of(catalog.module("0"))
    assert "--target local" in refused.value.hint
    assert "0" not in [need.module for need in needs(catalog)]


def test_needs_price_what_the_stacks_make(catalog: Catalog) -> None:
    """The disks of the estimate are the disks that Terraform makes."""
    node = (ROOT / "terraform/modules/node/variables.tf").read_text(encoding="utf-8")
    root = re.search(r'variable "root_gb" \{[^}]*default\s*=\s*(\d+)', node)
    head = re.search(r"root_gb\s*=\s*(\d+)", (ROOT / "terraform/stacks/slurm-cluster/main.tf").read_text(encoding="utf-8"))
    assert root
    assert head
    assert int(head.group(1)) == HEAD.disk_gib
    for need in needs(catalog):
        assert {machine.disk_gib for machine in need.machines if machine != HEAD} == {int(root.group(1))}
    for module in catalog.modules:
        lab = module.lab.aws
        made = lab and (ROOT / "terraform/stacks" / lab.template / "main.tf").read_text(encoding="utf-8")
        assert not lab or bool(re.search(r"shared_storage += true", str(made))) == (lab.storage_gib > 0), (
            f"storage of module {module.id}"
        )
