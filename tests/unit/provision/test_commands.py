"""The argument lists, word for word: they are the contract with every Terraform from 1.4 on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from gpucourse.provision.commands import Commands

CHANGING = ["-json", "-no-color", "-input=false", "-lock-timeout=120s", "-parallelism=10"]


def test_golden() -> None:
    commands = Commands(("/usr/bin/terraform",))
    assert commands.init() == ["/usr/bin/terraform", "init", "-no-color", "-input=false"]
    assert commands.init(Path("/a b/mirror")) == [
        "/usr/bin/terraform",
        "init",
        "-no-color",
        "-input=false",
        "-plugin-dir=/a b/mirror",
    ]
    assert commands.plan("x.tfplan") == ["/usr/bin/terraform", "plan", *CHANGING, "-out=x.tfplan"]
    assert commands.apply("x.tfplan") == ["/usr/bin/terraform", "apply", *CHANGING, "x.tfplan"]
    assert commands.destroy() == ["/usr/bin/terraform", "destroy", *CHANGING, "-auto-approve", "-refresh=false"]
    assert commands.push_state("x.tfstate") == ["/usr/bin/terraform", "state", "push", "-lock-timeout=120s", "x.tfstate"]


def test_addresses_stay_as_they_are() -> None:
    hard = ["terraform_data.node[0]", 'module.a["x y"].aws_instance.it["k_v"]']
    assert Commands(("t",)).plan("p", hard)[-2:] == [f"-replace={address}" for address in hard]


def test_a_terraform_of_several_words() -> None:
    commands = Commands(("/my python", "/a b/shim.py"), parallelism=64, lock_wait_s=0.4)
    assert commands.destroy()[:3] == ["/my python", "/a b/shim.py", "destroy"]
    assert {"-parallelism=64", "-lock-timeout=0s"} <= set(commands.destroy())


def test_nothing_is_written_and_a_dict_of_variables_is_impossible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terraform.tfstate").write_text("half a sta", encoding="utf-8")
    commands = Commands(("terraform",))
    commands.plan("p")
    with pytest.raises(AttributeError):
        commands._build_command("plan", var={"secret": "x"})
    assert [path.name for path in tmp_path.iterdir()] == ["terraform.tfstate"]
