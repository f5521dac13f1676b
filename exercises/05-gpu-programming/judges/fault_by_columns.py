"""Judge a repaired copy: the matrix is stored row by row, so neighbouring columns are neighbours in memory."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a load of a warp of walk_columns takes {given:.3g} sectors, but 32 neighbouring numbers need 4")}
RUNS = {
    word: {"walks": [{"kernel": "walk_rows", "load_sectors_per_request": 31.0},
                     {"kernel": "walk_columns", "load_sectors_per_request": sectors}]}
    for word, sectors in (("right", 4.4), ("wrong", 31.0))
}  # fmt: skip


def judge(part: Part) -> None:
    """Check that the lanes of a warp read neighbouring numbers in the kernel with a thread for each column."""
    sectors = {row["kernel"]: row["load_sectors_per_request"] for row in part.metrics["walks"]}
    if sectors["walk_columns"] > 8:
        raise part.wrong("still", given=sectors["walk_columns"])
    part.note(f"walk_columns: {sectors['walk_columns']:.3g} sectors a load, walk_rows: {sectors['walk_rows']:.3g}")
