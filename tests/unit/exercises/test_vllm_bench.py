"""vLLM's own benchmark: what it writes, read; and what it says when it fails."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

vllm_bench = beside_the_script("04-benchmarking", "vllm_bench")
WRITTEN = {
    "elapsed_time": 12.5,
    "num_requests": 64,
    "total_num_tokens": 16384,
    "requests_per_second": 5.12,
    "tokens_per_second": 1310.72,
}


def test_read_counts_tokens_in_and_out_together() -> None:
    figures = vllm_bench.read(json.dumps(WRITTEN), 128, 128)
    assert (figures["total_tok_per_s"], figures["output_tok_per_s"]) == (1310.72, 655.36)
    assert figures["total_tok_per_s"] == pytest.approx(WRITTEN["total_num_tokens"] / WRITTEN["elapsed_time"])


def test_beside_says_if_the_benchmark_fails(tmp_path: Any) -> None:
    outcome, reason = vllm_bench.compare([sys.executable, "-c", "raise SystemExit(3)"], tmp_path / "none.json", 1, 1)
    assert (outcome, reason) == (None, "vllm bench ended with code 3")
