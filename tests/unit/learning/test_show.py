from __future__ import annotations

from tests.learning import METRICS, Learning


def test_list_open_work_names_each_thing_that_is_missing(learning: Learning) -> None:
    output = learning.types("show", "1.1").out
    assert "Still open\n  • a good run: gpucourse run 1.1\n" in output
    assert "depth          100         10  int 1 to 1,000" in output
    assert "b. in the sea" in output
    record = learning.record(metrics={**METRICS, "wet": False})
    learning.types("answer", "1.1", "--set", "speedup=1.9", "--set", "busy=9", code=5)
    output = learning.types("show", "1.1").out
    assert "a check that passes: It is wet" in output
    assert "answers to why, where, power: gpucourse answer 1.1" in output
    assert "better answers to busy: gpucourse answer 1.1" in output
    assert "to hand in: The log, The measurements" in output
    assert "✓ speedup" in output
    (learning.folder(record) / "metrics.json").write_text("{")
    assert "metrics.json is damaged" in " ".join(learning.types("show", "1.1").out.split())
    assert "metrics.json is damaged" in learning.types("show", "1.1", "--json").document["open"][0]
