"""The files that are uploaded with a learner's own script."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import neighbours


def lay(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_init", "__init__")
        path = path.with_suffix(".py") if not path.suffix else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "train.py"


def names(script: Path) -> list[str]:
    return [upload.name for upload in neighbours.find_imports(script)]


def test_find_imports_takes_modules_beside_the_script_and_their_imports(tmp_path: Path) -> None:
    script = lay(
        tmp_path,
        train="import torch, os\nfrom datautils import Data\nif False:\n    import late\n",
        datautils="import deeper.inner\n",
        late="",
        unrelated="",
        deeper___init="",
        deeper__inner="from . import sibling\nfrom .sibling import x\n",
        deeper__sibling="",
        deeper__other="",
    )
    assert names(script) == ["datautils.py", "deeper/__init__.py", "deeper/inner.py", "deeper/sibling.py", "late.py"]


def test_find_imports_takes_a_package_without_init(tmp_path: Path) -> None:
    script = lay(tmp_path, train="from models import tiny, missing\nfrom ..outside import z\n", models__tiny="import train\n")
    assert names(script) == ["models/tiny.py"]


def test_find_imports_of_a_script_that_does_not_parse_is_empty(tmp_path: Path) -> None:
    assert names(lay(tmp_path, train="def :\n", helper="")) == []


def test_find_named_files_keeps_a_place_under_the_script_and_else_the_name(tmp_path: Path) -> None:
    script = lay(tmp_path / "work", train="")
    (tmp_path / "work/data/deep").mkdir(parents=True)
    (tmp_path / "work/data/deep/a.bin").write_bytes(b"a")
    (tmp_path / "work/data/__pycache__").mkdir()
    (tmp_path / "work/data/__pycache__/x.pyc").write_bytes(b"")
    (tmp_path / "elsewhere/set").mkdir(parents=True)
    (tmp_path / "elsewhere/set/b.bin").write_bytes(b"b")
    (tmp_path / "elsewhere/one.txt").write_text("1")
    paths = (tmp_path / "work/data", tmp_path / "elsewhere/set", tmp_path / "work/../elsewhere/one.txt")
    assert [upload.name for upload in neighbours.find_named_files(paths, script.parent)] == [
        "data/deep/a.bin",
        "set/b.bin",
        "one.txt",
    ]


def test_find_named_files_refuses_missing_or_too_many_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or folder"):
        neighbours.find_named_files((tmp_path / "nothing",), tmp_path)
    (tmp_path / "many").mkdir()
    for number in range(5):
        (tmp_path / f"many/{number}").write_text("")
    with pytest.raises(UsageError, match="more than 3 files"):
        neighbours.find_named_files((tmp_path / "many",), tmp_path, max_files=3)


@pytest.mark.parametrize("name", ["pkg.train", "pkg.run", "pkg"])
def test_find_module_takes_its_packages_along(tmp_path: Path, name: str) -> None:
    program = "import other\nfrom . import data\nfrom pkg.more import x\n"
    lay(tmp_path, pkg___init="", pkg__more="", pkg__data="", other="", pkg__unrelated="", pkg__train=program)
    (tmp_path / "pkg/run").mkdir()
    for place in ("pkg/run/__main__.py", "pkg/__main__.py"):
        (tmp_path / place).write_text("from pkg import data, more\nimport other\n")
    script = neighbours.find_module(name, tmp_path)
    assert script == tmp_path / {"pkg.train": "pkg/train.py", "pkg.run": "pkg/run/__main__.py", "pkg": "pkg/__main__.py"}[name]
    uploads = neighbours.find_imports(script, tmp_path, name)
    assert [upload.name for upload in uploads] == ["other.py", "pkg/__init__.py", "pkg/data.py", "pkg/more.py"]


@pytest.mark.parametrize("name", ["pkg.none", "train.py", "../train", "pkg..train", "", "/etc.passwd"])
def test_find_module_refuses_one_that_is_missing(tmp_path: Path, name: str) -> None:
    lay(tmp_path, train="", pkg___init="")
    with pytest.raises(UsageError, match="there is no such module in"):
        neighbours.find_module(name, tmp_path)


def test_find_base_keeps_the_place_of_a_script_in_a_folder_that_is_uploaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, tools__train="import helper\n", tools__helper="", other="")
    script, root = tmp_path / "tools/train.py", tmp_path.resolve()
    monkeypatch.chdir(tmp_path)
    assert neighbours.find_base(script, ()) == root / "tools"
    assert neighbours.find_base(script, (Path("other.py"), Path("tools"))) == root / "tools"
    assert neighbours.find_base(script, (Path("tools"), Path())) == root
    assert [upload.name for upload in neighbours.find_imports(script, root)] == ["tools/helper.py"]
    monkeypatch.chdir(tmp_path / "tools")
    assert neighbours.find_base(script, (Path(".."),)) == root / "tools", "it runs in the folder in which it was typed"


def test_find_mentioned_files_of_a_batch_file_takes_along_their_imports(tmp_path: Path) -> None:
    lay(
        tmp_path,
        helper="import torch\n",
        tools__train="import shared_part\n",
        tools__shared_part="",
        unrelated="",
    )
    (tmp_path / "next.sh").write_text("#!/bin/bash\npython ./helper.py < list.txt\nsbatch job.sh\n")
    (tmp_path / "list.txt").write_text("unrelated.py\n")
    (tmp_path / "large.bin").write_bytes(bytes(neighbours.MAX_BYTES + 1))
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/bash\nsrun python tools/train.py large.bin ../x {'y' * 5000}\nsbatch next.sh # not: none.sh\n")
    uploads = neighbours.find_mentioned_files(script)
    assert [upload.name for upload in uploads] == ["helper.py", "list.txt", "next.sh", "tools/shared_part.py", "tools/train.py"]
