from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.errors import GpucourseError, ManifestError, StorageError, UnknownName
from gpucourse.model.record import RunRecord
from gpucourse.ui.console import Console
from gpucourse.ui.tables import Cell, Paragraph, View, table
from tests.unit.ui.emulator import terminal

VIEW = View(title="A title", blocks=(table(["name", "state"], [("node0", Cell("ready", "good"))]),), mode="local")


def face(
    *, as_json: bool = False, quiet: bool = False, verbose: bool = False, environ: dict[str, str] | None = None
) -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    console = Console(json=as_json, quiet=quiet, verbose=verbose, stdout=out, stderr=err, environ=environ or {})
    return console, out, err


def test_show_in_a_pipe_is_plain_and_says_its_mode_once_in_each_stream() -> None:
    console, out, err = face()
    console.mode("local")
    console.show(VIEW)
    console.show(VIEW)
    block = "A title\n\nname   state\nnode0  ready\n"
    assert out.getvalue() == f"simulated nodes (mode: local)\n\n{block}{block}"
    assert err.getvalue() == "simulated nodes (mode: local)\n\n", "the streams may go to two files"


def test_note_is_not_shown_when_quiet_and_results_and_warnings_are() -> None:
    console, out, err = face(quiet=True)
    console.mode("local")
    console.note("made a workspace")
    console.warn("torch is missing")
    console.show(View(blocks=(Paragraph("the result"),)))
    assert err.getvalue() == "! torch is missing\n"
    assert out.getvalue() == "the result\n"


def test_error_is_what_happened_what_to_type_and_the_log() -> None:
    console, out, err = face()
    console.error(UnknownName("exercise", "3.9", ["3.1", "3.2"]))
    console.error(GpucourseError("terraform failed\non two lines", hint="gpucourse deploy 3", log=Path("/w/apply.log")))
    console.error(GpucourseError("no cure"))
    assert err.getvalue().splitlines() == [
        "there is no exercise '3.9'. Did you mean 3.1 or 3.2?",
        "→ known: 3.1, 3.2",
        "terraform failed",
        "on two lines",
        "→ gpucourse deploy 3",
        "  log: /w/apply.log",
        "no cure",
    ]
    assert out.getvalue() == ""


def test_error_on_a_terminal_is_wrapped_by_word() -> None:
    console, _, err = face(environ={"COLUMNS": "44", "NO_COLOR": "1"})
    console.err.terminal = True
    console.error(GpucourseError("files were changed: metrics.json", hint="say which: gpucourse check --all, or run it again"))
    assert err.getvalue().splitlines() == [
        "files were changed: metrics.json",
        "→ say which: gpucourse check --all, or run",
        "  it again",
    ]


def test_error_about_a_manifest_stays_one_complaint_a_line() -> None:
    console, _, err = face()
    long = "modules/03/module.yaml: exercises.0.launch.nodes: " + "very " * 40 + "wrong"
    console.error(ManifestError([long, "modules/03/module.yaml: id: missing"], hint="see the schema"))
    assert err.getvalue().splitlines() == [long, "modules/03/module.yaml: id: missing", "→ see the schema"]


def make_error() -> GpucourseError:
    try:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise GpucourseError("outer", hint="hint") from error
    except GpucourseError as error:
        return error


def test_error_has_a_traceback_only_when_verbose() -> None:
    console, _, err = face()
    console.error(make_error())
    assert "Traceback" not in err.getvalue()
    console, _, err = face(verbose=True)
    console.error(make_error())
    assert "KeyError: 'inner'" in err.getvalue()
    assert err.getvalue().endswith("outer\n→ hint\n")


def test_error_as_a_document() -> None:
    console, out, err = face(as_json=True)
    console.error(StorageError("no space", hint="df -h", log=Path("/w/x.log")))
    assert json.loads(out.getvalue()) == {
        "version": 1,
        "error": {"code": "storage", "what": "no space", "hint": "df -h", "log": "/w/x.log", "exit_code": 3},
    }
    assert err.getvalue() == ""


def test_document_is_written_only_once() -> None:
    console, out, err = face(as_json=True)
    console.document({"run": {"id": "x"}})
    console.show(VIEW)
    console.error(GpucourseError("a check did not pass"))
    assert json.loads(out.getvalue()) == {"version": 1, "run": {"id": "x"}}
    assert err.getvalue() == "a check did not pass\n"


@dataclass
class Listed:
    record: RunRecord
    path: Path


def test_document_holds_records_paths_and_text_that_is_not_utf8() -> None:
    console, out, _ = face(as_json=True)
    record = RunRecord(
        id="r", exercise="3.2", module="3", stack="s", mode="local", launcher="torchrun", state="running", created="now"
    )
    console.document({"runs": [Listed(record, Path("/w"))], "file": "x\udcff", "bell": "\x07\x9b\u202e"})
    document = json.loads(out.getvalue())
    assert document["version"] == 1
    assert document["runs"][0]["record"]["state"] == "running"
    assert document["runs"][0]["path"] == "/w"
    assert document["file"] == "x\\udcff"
    assert document["bell"] == "\x07\x9b\u202e"
    assert out.getvalue().replace("\n", "").isprintable()


def test_console_writes_no_escape_sequence() -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jname\x07\x9b1m[red]x[/red]"
    console, out, err = face()
    console.show(View(title=evil, blocks=(table([evil], [(evil,)]), Paragraph(evil)), footer=(evil,)))
    console.note(evil)
    console.warn(evil)
    console.error(GpucourseError(evil, hint=evil, log=Path(f"/w/{evil}")))
    for text in (out.getvalue(), err.getvalue()):
        assert text.replace("\n", "").isprintable()
        assert "[red]x[/red]" in text


@pytest.mark.parametrize(
    ("environ", "colours", "moves"),
    [({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False), ({"NO_COLOR": ""}, True, True)],
)
def test_console_of_a_terminal_has_what_its_environment_allows(environ: dict[str, str], *, colours: bool, moves: bool) -> None:
    with terminal(columns=70) as screen:
        console = Console(json=False, quiet=False, verbose=False, stdout=screen.stream, stderr=screen.stream, environ=environ)
        assert console.width(console.out) == 70
        assert console.can_redraw(console.err) is moves
        console.mode("local")
        console.show(VIEW)
        console.error(GpucourseError("it failed", hint="again"))
    assert ("\x1b[" in screen.received) is colours
    assert screen.received.count("mode: local") == 1, "one terminal shows both streams"
    assert "node0" in screen.received


@pytest.mark.parametrize(("words", "agreed"), [("y\n", True), ("YES \n", True), ("n\n", False), ("\n", False), ("", False)])
def test_ask_treats_anything_but_yes_as_no(words: str, agreed: bool) -> None:
    console, out, err = face()
    assert console.ask("Spend $1?", io.StringIO(words)) is agreed
    assert err.getvalue() == "Spend $1? [y/N] " + ("" if words else "\n")
    assert out.getvalue() == ""
