"""The stack's own copy of its files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from gpucourse.errors import MissingError
from gpucourse.provision.template import copy_template


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_tf", ".tf")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_copy_template_takes_the_files_of_the_stack(tmp_path: Path) -> None:
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


def test_copy_template_names_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="Terraform files are missing") as caught:
        copy_template(tmp_path / "none", tmp_path / "w")
    assert "pip install --force-reinstall" in caught.value.hint
    template = write(tmp_path / "stack", main_tf='module "a" {\n  source = "../../modules/gone"\n}\n')
    with pytest.raises(MissingError, match=r"gone, which .*main\.tf needs"):
        copy_template(template, tmp_path / "w")
    assert not (tmp_path / "w").exists()
