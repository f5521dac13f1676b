from __future__ import annotations

from gpucourse.ui.line import Segment, cut, line, plain, wrap_log_line


def test_wrap_log_line_between_words_below_the_text() -> None:
    row = line(
        Segment("[n0 r0]", "rank0"), " ", "a sum of all ranks, right on every element", Segment(" … whole in logs/x", "dim")
    )
    rows = [plain(part) for part in wrap_log_line(row, 40)]
    assert rows[0] == "[n0 r0] a sum of all ranks, right on"
    assert rows[1].startswith("        every element")
    assert wrap_log_line(line("[n0 r0]", " ", "short"), 40) == [line("[n0 r0]", " ", "short")]


def test_wrap_log_line_keeps_a_wide_path_whole() -> None:
    row = line("[n0 r0]", " ", f"written: {'/folder' * 9}")
    assert [plain(part).strip() for part in wrap_log_line(row, 40)] == ["[n0 r0] written:", "/folder" * 9]
    assert [plain(part) for part in wrap_log_line(line("[n0 r0]", " ", " " * 90 + "."), 40)][-1].endswith(".")


def test_cut_keeps_the_styles_of_what_has_room() -> None:
    row = line(Segment("good", "good"), " and ", Segment("bad", "bad"))
    assert cut(row, 20, "…") == row
    assert cut(row, 7, "…") == (Segment("good", "good"), Segment(" a…"))
