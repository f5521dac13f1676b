"""An instructor sees the edits of a run as a diff."""

from __future__ import annotations

import csv
import io

from gpucourse.model.record import RunRecord
from gpucourse.runs.finish import seal
from gpucourse.runs.mutations import keep_edited_files
from gpucourse.workspace import runs
from tests.learning import FOLDER, SCRIPT, Learning


def record_edit(learning: Learning, text: str) -> RunRecord:
    """Return a good run of an edited script, as `run` keeps it."""
    file = learning.workspace / f"exercises/{FOLDER}/source.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    record = learning.record()
    context = learning.open_context()
    keep_edited_files(context, record)
    runs.save(context.paths, record)
    seal(runs.files_of(context.paths, record), "local")
    file.write_text(SCRIPT)  # put back after the run: what ran is what counts
    return record


def test_read_edits_shows_an_edit_as_a_diff_and_counts_its_lines(learning: Learning) -> None:
    record_edit(learning, SCRIPT.replace('"wet": True', '"wet": "\x1b[31myes"').replace("print(", "# <b>printed</b>\nprint("))
    path = learning.hand_in()
    output = learning.types("grade", "--open", str(path)).out
    assert f"1.1 (2 lines); see: gpucourse grade --open {path} --exercise 1.1" in " ".join(output.split())
    diff = learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "source.py: 2 added, 1 removed" in diff
    assert "+# <b>printed</b>" in diff
    assert "\x1b" not in diff
    document = learning.types("grade", "--open", str(path), "--exercise", "1.1", "--json").document["bundles"][0]
    assert document["edited_lines"] == 2
    assert document["edits"] == [{"exercise": "1.1", "lines": 2, "files": ["source.py"]}]
    assert "+# <b>printed</b>" in document["diffs"][0]["lines"]
    table = list(csv.DictReader(io.StringIO(learning.types("grade", "--open", str(path), "--csv").out)))
    assert {row["row"]: row["edited_lines"] for row in table}["total"] == "2"
    assert "lines edited" in " ".join(learning.types("grade", "--open", str(path), str(learning.hand_in("b.zip"))).out.split())


def test_read_edits_shortens_a_long_edit_and_names_a_missing_one(learning: Learning) -> None:
    record = record_edit(learning, SCRIPT + "# x\n" * 1000)
    output = learning.types("grade", "--open", str(learning.hand_in()), "--exercise", "1.1").out
    assert "more lines" in output
    assert output.count("+# x") < 500
    (learning.folder(record) / "edited/source.py").unlink()
    seal(runs.files_of(learning.open_context().paths, record), "local")
    output = learning.types("grade", "--open", str(learning.hand_in("second.zip")), "--exercise", "1.1").out
    assert "edited, but the run has no copy of it" in output


def test_list_edits_of_a_run_without_edits_is_empty(learning: Learning) -> None:
    learning.record()
    path = learning.hand_in()
    assert "No file was edited for the run that counts" in learning.types("grade", "--open", str(path), "--exercise", "1.1").out
    assert "there is no exercise '1.9'" in learning.types("grade", "--open", str(path), "--exercise", "1.9", code=2).err
    assert "--exercise needs exactly one bundle" in learning.types("grade", "--exercise", "1.1", code=2).err
