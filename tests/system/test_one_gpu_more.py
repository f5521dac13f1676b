"""A GPU is added by one entry in one table. In a copy of the program whose table has an invented GPU, everything else follows.

The copy runs in separate processes, with `python -m tests.system.test_one_gpu_more`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws.policy import policy_text
from tests.waiting import STUCK_S

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("src", "modules", "exercises", "terraform")
Z9: dict[str, Any] = {
    "gpu": "Z9", "names": ["NVIDIA Z9"], "capability": "19.0", "sms": 100, "cores_per_sm": 256,
    "tensor_fma_per_clock": 4096, "boost_ghz": 2.5, "fp32": 128, "tf32": 1024, "fp16": 2048, "bf16": 2048, "fp8": 4096,
    "memory_gb": 96, "memory": "HBM9", "bus_bits": 8192, "memory_mhz": 4000, "gb_per_s": 8192,
    "tdp_w": 500, "l2_mb": 90, "link": "PCIe 9 x16", "measured_fp16": None, "note": "", "drawn": True,
    "aws": {
        "gpu": "Z9", "vram_mib": 98304, "quota": "P5", "family": "p9z", "offered": ["2xlarge"],
        "types": {
            "p9z.2xlarge": {
                "vcpus": 8, "ram_gib": "128", "gpus": 2, "disk_gb": 500, "network_gbps": "50", "burst_gbps": "50",
                "usd_per_hour": "9.99",
            }
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the program and its course, with one more entry in its table of GPUs."""
    root = tmp_path_factory.mktemp("copy")
    for part in PARTS:
        shutil.copytree(ROOT / part, root / part)
    table = root / "exercises" / "shared" / "gpus.json"
    data = json.loads(table.read_text(encoding="utf-8"))
    data["gpus"].append(Z9)
    table.write_text(json.dumps(data), encoding="utf-8")
    return root


def run_program(program: Path, *words: str, workspace: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in the copy and return the result. The copy's packages come before those of the checkout."""
    environ = {
        **os.environ,
        "PYTHONPATH": f"{program / 'src'}{os.pathsep}{ROOT}",
        "GPUCOURSE_WORKSPACE": str(workspace),
        "COLUMNS": "200",
    }
    return subprocess.run(
        [sys.executable, *words], cwd=program, env=environ, capture_output=True, text=True, timeout=STUCK_S, check=False
    )


@pytest.fixture(scope="module")
def answers(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the copy reports about the invented GPU."""
    result = run_program(program, "-m", "tests.system.test_one_gpu_more", workspace=tmp_path_factory.mktemp("work"))
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    assert Path(document["program"]).is_relative_to(program)
    return document


def test_the_help_names_it(program: Path, tmp_path: Path) -> None:
    for command in ("deploy", "run"):
        output = run_program(program, "-m", "gpucourse", command, "--help", workspace=tmp_path).stdout
        assert "z9" in output, command


def test_its_type_its_price_and_its_quota(answers: dict[str, Any]) -> None:
    assert answers["type"] == ["p9z.2xlarge", 8, 2, {"on-demand": "L-417A185B", "spot": "L-C4BD4855"}]
    assert answers["price"] == "9.99"
    assert answers["quotas"] == [["L-417A185B", "Running On-Demand P instances", 16]]
    assert answers["asked"] == ["L-417A185B"]


def test_terraform_is_given_its_type_and_its_number_of_gpus(answers: dict[str, Any]) -> None:
    """Check the variables. terraform/modules/lab/tests checks what Terraform does with such a type; no table is read there."""
    assert answers["terraform"] == ["p9z.2xlarge", 2]


def test_the_policy_lets_it_start(answers: dict[str, Any]) -> None:
    """Check the policy, which names sizes in every family of kind G, and each type of kind P."""
    assert '"p9z.2xlarge"' in answers["policy"]
    assert "p9z" not in policy_text()


def test_the_exercises_compute_with_it(answers: dict[str, Any]) -> None:
    assert answers["found"] == "Z9"
    assert answers["peak"] == pytest.approx(100 * 4096 * 2 * 2.5 / 1e3)
    assert answers["ridge"] == pytest.approx(250)
    assert answers["cores"] == 256
    assert answers["derived"] == pytest.approx(0.0)
    assert answers["cost row"] == ["p9z.2xlarge", "Z9", 9.99 / 2, None], "one of its two GPUs, at its share"
    assert "p9z.2xlarge" in answers["choices of 4.4"]


def _answers() -> dict[str, Any]:
    import gpucourse
    from gpucourse.aws.money import PriceBook
    from gpucourse.aws.offerings import type_for
    from gpucourse.aws.quota import Quotas
    from gpucourse.labs.aws.choice import need_of
    from gpucourse.labs.aws.lab import variables
    from tests.unit.aws.cloud import ScriptedAccount
    from tests.unit.exercises.scripts import beside_the_script
    from tests.unit.labs.aws.fakes import context_in, deployment_of

    kind = type_for("z9")
    with tempfile.TemporaryDirectory() as folder:
        context, _events = context_in(Path(folder))
        lab = variables(context, deployment_of(gpu="z9", instance_type=kind.name))["lab"]
        need = need_of(context.catalog.module("3"), gpu="z9")
        [instance] = [p for p in context.catalog.exercise("4.4")[1].parameters if p.name == "instance"]
    account = ScriptedAccount(
        {
            ("service-quotas", "get_service_quota"): {"Quota": {"Value": 4.0}},
            ("ec2", "describe_instances"): {"Reservations": []},
        }
    )
    quotas = Quotas(account).assess([need])
    gpus, costs = beside_the_script("shared", "gpus"), beside_the_script("04-benchmarking", "costs")
    specs = beside_the_script("04-benchmarking", "specs")
    gpu = gpus.find("NVIDIA Z9")
    row = next(price for price in costs.prices()[0] if price.gpu == "Z9")
    assert isinstance(lab, dict)
    return {
        "program": gpucourse.__file__,
        "type": [kind.name, kind.vcpus, kind.gpus, kind.quota],
        "price": str(PriceBook(region="us-east-1").instance(kind.name).usd_per_hour),
        "quotas": [[quota.code, quota.name, quota.needed] for quota in quotas],
        "asked": [call["QuotaCode"] for call in account.list_calls("get_service_quota")],
        "terraform": [lab["instance_type"], lab["gpus"]],
        "policy": policy_text(),
        "found": gpu.gpu,
        "peak": gpu.peak_tflops("float16"),
        "ridge": gpu.ridge_flop_per_byte,
        "cores": gpus.cores_per_sm("19.0"),
        "derived": specs.comparison([gpu])[0]["formula_off_percent"],
        "cost row": [row.instance, row.gpu, row.usd_per_hour, row.spot],
        "choices of 4.4": instance.choices,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_answers()))
