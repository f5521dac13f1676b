from __future__ import annotations

from gpucourse.learning.pages.run_content import LOG_BYTES, MAX_LINES, RunReader, read_run
from tests.learning import METRICS, PLOT, Learning
from tests.unit.runs.conftest import CHECKS


def test_read_run_has_both_ends_of_a_huge_log(learning: Learning) -> None:
    record = learning.record("1.1")
    with learning.context.paths.run("1.1", record.id).rank_log("node0", 0).open("wb") as log:
        log.write(b"the first line\n")
        log.truncate(200_000_000)  # a hole in the file takes no room on the disk
        log.seek(200_000_000)
        log.write(b"\nthe last line")
    (excerpt,) = read_run(learning.context, record).logs
    assert excerpt.begin.startswith(b"the first line")
    assert excerpt.end.endswith(b"the last line")
    assert len(excerpt.begin) + len(excerpt.end) == LOG_BYTES
    assert excerpt.left_out == 200_000_014 - LOG_BYTES


def test_read_run_of_a_flood_of_short_lines_has_the_first_and_the_last_ones(learning: Learning) -> None:
    record = learning.record("1.1")
    log = learning.context.paths.run("1.1", record.id).rank_log("node0", 0)
    log.write_text("".join(f"{n}\n" for n in range(100_000)))
    (excerpt,) = read_run(learning.context, record).logs
    assert excerpt.begin.split()[-1] == b"%d" % (MAX_LINES // 4 - 1)
    assert excerpt.end.split()[::4499] == [b"95500", b"99999"]
    assert excerpt.left_out == sum(len(f"{n}\n") for n in range(MAX_LINES // 4, 95_500))


def test_read_run_names_a_log_that_is_a_link_and_does_not_read_it(learning: Learning) -> None:
    record = learning.record("1.1")
    path = learning.context.paths.run("1.1", record.id).rank_log("node0", 0)
    path.unlink()
    learning.root.joinpath("secret").write_text("hidden words")
    path.symlink_to(learning.root / "secret")
    content = read_run(learning.context, record)
    assert content.logs == ()
    assert content.trouble[0].startswith("node0-rank0.log cannot be read")


def test_read_has_the_tables_and_the_plots_for_which_the_run_measured_something(learning: Learning) -> None:
    manifest = learning.course / "modules/01-rivers/module.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace(CHECKS, PLOT + CHECKS))
    records = [learning.record(metrics=METRICS), learning.record(metrics=METRICS | {"springs": []})]
    reader = RunReader(learning.open_context())
    contents, empty = (reader.read(record) for record in records)
    assert [(grid.title, grid.rows) for grid in contents.list_tables()] == [("Springs", (("1.5",), ("2.5",)))]
    assert [plot.title for plot, _points in contents.list_plots()] == ["Flow"]
    assert (empty.list_tables(), list(empty.list_plots())) == ([], [])
