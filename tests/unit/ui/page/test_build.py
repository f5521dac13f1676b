"""The page of a workspace as files: their content, that all of it is escaped, and their size."""

from __future__ import annotations

from pathlib import Path

from tests.learning import METRICS, Learning
from tests.unit.ui.page.pages import HOSTILE, Reader, pages_of


def test_build_makes_every_page_that_a_link_leads_to(learning: Learning) -> None:
    learning.put(
        "modules/01-rivers/lesson.md",
        "# Rivers\n\n## Rain\n\nIt falls, [again](lesson.md#rain). `E = m c²`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    )
    record = learning.record("1.1")
    pages = pages_of(learning)
    assert {"index.html", "book.html", "runs.html", "book/1-1.html", "exercises/1.1.html"} <= set(pages)
    assert f"runs/1.1/{record.id}.html" in pages
    for name, text in pages.items():
        ids = {attributes["id"] for _, attributes in Reader(text).tags if "id" in attributes}
        for link in Reader(text).links:
            place, _, anchor = link.partition("#")
            target = Path("/", name).parent.joinpath(place).resolve().relative_to("/").as_posix() if place else name
            assert target in pages, f"{name} leads to {link}"
            target_ids = ids if target == name else {attributes.get("id") for _, attributes in Reader(pages[target]).tags}
            assert not anchor or anchor in target_ids, f"{name} leads to {link}"


def test_build_shows_the_progress_and_the_checks_tables_and_logs_of_a_run(learning: Learning) -> None:
    record = learning.record("1.1")
    logs = learning.context.paths.run("1.1", record.id).logs
    logs.joinpath("node0-rank0.log").write_text("loss 2.5\n")
    pages = pages_of(learning)
    for words in (f'href="runs/1.1/{record.id}.html"', "0 of 2 exercises done", "of 25 points"):
        assert words in pages["index.html"]
    assert 'href="../book.html" aria-current="page"' in pages["exercises/1.1.html"]
    page = pages[f"runs/1.1/{record.id}.html"]
    for words in ("It is wet", "Springs", "loss 2.5", "rank 0 on node0", "Simulated nodes (mode: local)"):
        assert words in page


def test_build_escapes_names_and_logs_full_of_html(learning: Learning) -> None:
    metrics = METRICS | {"device": HOSTILE, "springs": [{"litres": HOSTILE, "busy_percent": 1}]}
    for _ in range(2):
        record = learning.record("1.1", metrics, error=HOSTILE, parameters={HOSTILE: HOSTILE})
    logs = learning.context.paths.run("1.1", record.id).logs
    for rank in range(2):
        logs.joinpath(f"node{rank}-rank{rank}.log").write_text(HOSTILE)
    learning.put(
        "modules/01-rivers/lesson.md", f"# {HOSTILE}\n\n[x](javascript:alert(1)) ![{HOSTILE}](http://x/x.svg)\n\n{HOSTILE}\n"
    )
    for name, text in pages_of(learning).items():
        page = Reader(text)
        assert page.count("script") == 1, name
        assert page.count("img") == 0, name
        assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes), name
        assert not any(link.startswith("javascript") for link in page.links), name
        assert "\x1b" not in text
        assert " 49" not in text  # nothing of it was taken for a template
