"""Tables on terminals that are too narrow for them."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from gpucourse.ui.render import render
from gpucourse.ui.tables import Column, View, table


def draw(width: int, columns: list[Column | str], *rows: tuple[str, ...]) -> list[str]:
    return render(View(blocks=(table(columns, rows),)), width=width).splitlines()


def test_lay_out_wraps_a_column_on_a_narrow_terminal() -> None:
    columns: list[Column | str] = ["node", Column("lines", align="right"), Column("seen", wrap=True)]
    reason = "its process has ended, and nobody knows why it did so"
    lines = draw(40, columns, ("node0", "1,234", "it answers"), ("node11", "7", reason))
    assert lines[:4] == ["node    lines  seen", "─" * 40, "node0   1,234  it answers", "node11      7  its process has ended,"]
    assert all(len(line) <= 40 for line in lines)


@pytest.mark.parametrize("text", ["x" * 100, "日本語" * 20, "é" + "\u0301" * 80 + "x" * 40, "short " + "x" * 70 + " end"])
def test_lay_out_breaks_an_endless_word(text: str) -> None:
    page = render(View(blocks=(table([Column("text", wrap=True), "n"], [(text, "1")]),)), width=31)
    assert max(map(cell_len, page.splitlines())) <= 31
    assert re.sub(r"\s", "", text) in re.sub(r"[\s1]", "", page), "all of it is there"


def test_lay_out_names_the_columns_that_have_no_room() -> None:
    columns: list[Column | str] = ["stack", "address", Column("state", spare=True)]
    assert draw(36, columns, ("m3-local", "learner@127.0.0.1:22001", "ready"), ("m4-local", "", "failed")) == [
        "stack     address",
        "─" * 33,
        "m3-local  learner@127.0.0.1:22001",
        "m4-local",
        "no room for: state",
    ]


def test_lay_out_folds_a_table_that_stays_whole() -> None:
    values = table([Column("value", wrap=True), "willow", "oak"], [("bytes", "1,600,000", "1,600,004")])._replace(whole=True)
    assert render(View(blocks=(values,)), width=40).splitlines()[0] == "value  willow     oak"
    lines = render(View(blocks=(values,)), width=22).splitlines()
    assert lines[2:] == ["bytes", "• willow: 1,600,000", "• oak: 1,600,004"]
