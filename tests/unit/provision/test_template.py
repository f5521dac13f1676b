"""The stack's own copy of its files, and what it says about providers."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError, MissingError
from gpucourse.provision import providers, state
from gpucourse.provision.environment import terraform_environment
from gpucourse.provision.template import copy_template


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_tf", ".tf")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_what_is_copied(tmp_path: Path) -> None:
    template = write(tmp_path / "t", main_tf="# main", outputs_tf="# outputs", tests__unit_tf="x", scripts__boot="#!")
    for name in (".terraform.lock.hcl", "data.sh.tftpl", "terraform.tfstate", "my.tfvars", "a.auto.tfvars.json", "README.md"):
        (template / name).write_text(name, encoding="utf-8")
    write(template, **{".terraform__x": "y"})
    (template / "main.tf").chmod(0o444)
    target = tmp_path / "w" / "terraform"
    copy_template(template, target)
    assert listing(target) == [".terraform.lock.hcl", "data.sh.tftpl", "main.tf", "outputs.tf", "scripts/boot"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    (target / "main.tf").write_text("mine", encoding="utf-8")
    write(target, old_tf="left over")
    (tmp_path / "w" / ".terraform.new").mkdir()  # an earlier copy was killed on its way
    copy_template(template, target)
    assert (target / "main.tf").read_text(encoding="utf-8") == "# main"
    assert not (target / "old.tf").exists()
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["terraform"]


def test_modules_come_along_and_are_found_there(tmp_path: Path) -> None:
    write(
        tmp_path / "modules" / "net", main_tf='module "x" {\n  source = "../node/"\n}\nmodule "in" {\n  source = "./inner"\n}'
    )
    write(tmp_path / "modules" / "net" / "inner", main_tf="")
    write(tmp_path / "modules" / "node", main_tf="")
    write(tmp_path / "other" / "net", main_tf="")
    text = (
        'module "a" {\n  source = "../modules/net"\n}\nmodule "b" {\n  source   = "../other/net"\n}\n'
        'module "c" {\n  source = "./local"\n}\nmodule "d" { source = "../modules/net" }\n'
        'terraform {\n  required_providers {\n    aws = { source = "hashicorp/aws" }\n  }\n}\n'
    )
    template = write(tmp_path / "stack", main_tf=text, local__main_tf="")
    target = tmp_path / "w"
    copy_template(template, target)
    assert (target / "main.tf").read_text(encoding="utf-8") == text.replace("../modules/net", "./modules/net").replace(
        "../other/net", "./modules/net-2"
    )
    assert '"../node"' in (target / "modules" / "net" / "main.tf").read_text(encoding="utf-8")
    assert '"./inner"' in (target / "modules" / "net" / "main.tf").read_text(encoding="utf-8")
    assert listing(target) == [
        "local/main.tf", "main.tf", "modules/net-2/main.tf", "modules/net/inner/main.tf", "modules/net/main.tf",
        "modules/node/main.tf",
    ]  # fmt: skip


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="Terraform files are missing") as caught:
        copy_template(tmp_path / "none", tmp_path / "w")
    assert "pip install --force-reinstall" in caught.value.hint
    template = write(tmp_path / "stack", main_tf='module "a" {\n  source = "../gone"\n}\n')
    with pytest.raises(MissingError, match=r"gone, which .*main\.tf needs"):
        copy_template(template, tmp_path / "w")
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ('resource "terraform_data" "x" {}\noutput "nodes" { value = [] }', False),
        ('data "terraform_remote_state" "x" {}', False),
        ("", False),
        ('resource "aws_instance" "x" {}', True),
        ("resource aws_instance x {}", True),
        ('data "aws_ami" "x" {}', True),
        ('module "x" {\n  source = "./x"\n}', True),
        ('provider "aws" {}', True),
        ("terraform {\n  required_providers {\n  }\n}", True),
        ('terraform {\n  backend "s3" {}\n}', True),
        ('variable "provider" {\n}\n# module of the course', False),
    ],
)
def test_whether_there_is_anything_to_fetch(tmp_path: Path, text: str, needed: bool) -> None:
    assert providers.needs_init(write(tmp_path, main_tf=text)) is needed


def test_json_configuration_is_always_initialised(tmp_path: Path) -> None:
    (tmp_path / "main.tf.json").write_text("{}", encoding="utf-8")
    assert providers.needs_init(tmp_path)


def test_init_is_done_once_until_something_changes(tmp_path: Path) -> None:
    program = tmp_path / "mirror"
    program.mkdir()
    folder = write(tmp_path / "s", main_tf="a", modules__x__main_tf="b", **{".terraform.lock.hcl": "hashes"})
    plugin = folder / ".terraform" / "providers" / "host" / "ns" / "aws" / "5.0.0" / "linux_amd64"
    plugin.parent.mkdir(parents=True)
    plugin.symlink_to(program)
    version = (1, 9, 0)
    assert not providers.is_initialised(folder, version)
    providers.mark_initialised(folder, version)
    assert providers.is_initialised(folder, version)
    assert not providers.is_initialised(folder, (1, 10, 0))
    program.rmdir()
    assert not providers.is_initialised(folder, version), "the link to the provider leads nowhere"
    program.mkdir()
    for file in ("main.tf", "modules/x/main.tf", ".terraform.lock.hcl"):
        assert providers.is_initialised(folder, version)
        (folder / file).write_text("something else", encoding="utf-8")
        assert not providers.is_initialised(folder, version), file
        providers.mark_initialised(folder, version)


def test_where_providers_come_from(tmp_path: Path) -> None:
    folder = write(tmp_path / "s", main_tf='required_providers { aws = { source = "hashicorp/aws" } }')
    usual, named = tmp_path / "usual", tmp_path / "named"
    named.mkdir()
    places = (str(tmp_path / "none")[1:], str(usual)[1:])
    assert providers.find_mirror(folder, {}, None, places) is None
    (usual / "registry.example" / "hashicorp" / "random").mkdir(parents=True)
    assert providers.find_mirror(folder, {}, None, places) is None
    (usual / "registry.example" / "hashicorp" / "aws").mkdir()
    assert providers.find_mirror(folder, {}, None, places) == usual
    assert providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(named)}, None, places) == named
    assert providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": "/none"}, named) == named
    with pytest.raises(MissingError, match="does not exist"):
        providers.find_mirror(folder, {"TF_PLUGIN_MIRROR": str(tmp_path / "none")}, None, places)


def test_the_cache_of_providers(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert providers.cache_folder(environ) == tmp_path / ".cache/gpucourse/terraform-plugins"
    assert providers.cache_folder({**environ, "XDG_CACHE_HOME": "/c"}) == Path("/c/gpucourse/terraform-plugins")


def test_what_terraform_hears_of_the_environment() -> None:
    environ = {"PATH": "/bin", "TF_VAR_a": "1", "TF_LOG": "trace", "TF_TOKEN_x": "t", "TF_CLI_CONFIG_FILE": "/c", "TFX": "1"}
    assert terraform_environment(environ, {"TF_PLUGIN_CACHE_DIR": "/p"}) == {
        "PATH": "/bin", "TF_TOKEN_x": "t", "TF_CLI_CONFIG_FILE": "/c", "TFX": "1",
        "TF_IN_AUTOMATION": "1", "CHECKPOINT_DISABLE": "1", "TF_PLUGIN_CACHE_DIR": "/p", "GOGC": "400",
    }  # fmt: skip
    assert terraform_environment({"GOGC": "50"})["GOGC"] == "50"  # whoever has little memory says so


def test_addresses_of_a_state(tmp_path: Path) -> None:
    path = tmp_path / "terraform.tfstate"
    assert state.addresses(path) == []
    path.write_bytes(b"\n")
    assert state.addresses(path) == []
    path.write_text(
        '{"version": 4, "resources": ['
        '{"mode": "managed", "type": "a", "name": "b", "instances": [{}]},'
        '{"mode": "data", "type": "a", "name": "read", "instances": [{}]},'
        '{"module": "module.m[0]", "mode": "managed", "type": "a", "name": "c",'
        ' "instances": [{"index_key": 1}, {"index_key": "k"}]},'
        '{"mode": "managed", "type": "a", "name": "none", "instances": []}]}',
        encoding="utf-8",
    )
    assert state.addresses(path) == ["a.b", "module.m[0].a.c[1]", 'module.m[0].a.c["k"]']


@pytest.mark.parametrize(
    "content", [b'{"resources": [', b"[]", b"null", b"{}", b'{"resources": [{"mode": "managed"}]}', b"\xff"]
)
def test_a_damaged_state_is_said_to_be_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "terraform.tfstate"
    path.write_bytes(content)
    with pytest.raises(InfrastructureError, match="is damaged") as caught:
        state.addresses(path)
    assert "restore it from a backup" in caught.value.hint
    path.with_name("terraform.tfstate.backup").touch()
    with pytest.raises(InfrastructureError) as caught:
        state.addresses(path)
    assert f"cp '{path}.backup' '{path}'" in caught.value.hint
