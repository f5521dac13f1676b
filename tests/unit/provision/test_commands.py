"""The argument lists, word for word: they are the contract with every Terraform from 1.4 on."""

from __future__ import annotations

from pathlib import Path

from gpucourse.provision.commands import Commands

CHANGING = ["-json", "-no-color", "-input=false", "-lock-timeout=120s", "-parallelism=10"]


def test_commands_word_for_word() -> None:
    commands = Commands(("/usr/bin/terraform",))
    assert commands.init() == ["/usr/bin/terraform", "init", "-no-color", "-input=false"]
    assert commands.init(Path("/a b/mirror")) == [*commands.init(), "-plugin-dir=/a b/mirror"]
    assert commands.plan("x.tfplan") == ["/usr/bin/terraform", "plan", *CHANGING, "-out=x.tfplan"]
    assert commands.apply("x.tfplan") == ["/usr/bin/terraform", "apply", *CHANGING, "x.tfplan"]
    assert commands.destroy() == ["/usr/bin/terraform", "destroy", *CHANGING, "-auto-approve", "-refresh=false"]
    assert commands.push_state("x.tfstate") == ["/usr/bin/terraform", "state", "push", "-lock-timeout=120s", "x.tfstate"]
    addresses = ["terraform_data.node[0]", 'module.a["x y"].aws_instance.it["k_v"]']
    assert commands.plan("p", addresses)[-2:] == [f"-replace={address}" for address in addresses]
    from_pip = Commands(("/my python", "/a b/shim.py"), parallelism=64, lock_wait_s=0.4).destroy()
    assert from_pip[:3] == ["/my python", "/a b/shim.py", "destroy"]
    assert {"-parallelism=64", "-lock-timeout=0s"} <= set(from_pip)
