from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.errors import UsageError
from gpucourse.ui.page.folder import update_folder, write_folder


def test_write_folder_replaces_the_page_that_was_there(tmp_path: Path) -> None:
    page = tmp_path / "page"
    assert write_folder(page, [("index.html", b"1"), ("runs/a.html", b"2")]) == 2
    assert write_folder(page, [("index.html", b"3")]) == 1
    assert [path.read_bytes() for path in page.rglob("*.html")] == [b"3"]
    assert list(tmp_path.iterdir()) == [page], "nothing is left of what was written aside"


def test_update_folder_writes_only_the_pages_that_changed(tmp_path: Path) -> None:
    pages = [tmp_path / name for name in ("a.html", "runs/b.html", "c.html")]
    update_folder(tmp_path, [("a.html", b"1"), ("runs/b.html", b"2")])
    before = [page.lstat().st_ino for page in pages[:2]]
    update_folder(tmp_path, [("a.html", b"1"), ("runs/b.html", b"3"), ("c.html", b"4")])
    assert [page.read_bytes() for page in pages] == [b"1", b"3", b"4"]
    assert [page.lstat().st_ino == number for page, number in zip(pages, before, strict=False)] == [True, False]


def test_write_folder_refuses_foreign_files_and_links(tmp_path: Path) -> None:
    thesis = tmp_path / "other" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for folder, message in ((thesis.parent, "contains something that is not a page"), (thesis, "is not"), (link, "is not")):
        with pytest.raises(UsageError, match=message):
            write_folder(folder, [("index.html", b"1")])
    assert thesis.read_text() == "mine"
    with pytest.raises(UsageError, match="cannot make the folder"):
        write_folder(Path("/proc/x"), [])


def test_write_folder_that_fails_keeps_the_old_page(tmp_path: Path) -> None:
    write_folder(tmp_path / "page", [("index.html", b"1")])
    with pytest.raises(ZeroDivisionError):
        write_folder(tmp_path / "page", ((str(number), bytes(1 // number)) for number in (1, 0)))
    assert (tmp_path / "page" / "index.html").read_bytes() == b"1"
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
