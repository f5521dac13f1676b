"""Compare with vLLM's own benchmark: the same model, lengths and number of concurrent requests, but no HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KEYS = ("elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second")


def command(
    model: str, *, input_len: int, output_len: int, at_a_time: int, prompts: int, out: Path, options: list[str]
) -> list[str]:
    """Return the command that measures throughput with random prompts and writes the results to `out`."""
    return [
        "vllm", "bench", "throughput", f"--model={model}", "--dataset-name=random", f"--input-len={input_len}",
        f"--output-len={output_len}", f"--num-prompts={prompts}", f"--max-num-seqs={at_a_time}", "--no-enable-prefix-caching",
        f"--output-json={out}", *options,
    ]  # fmt: skip


def read(text: str, input_len: int, output_len: int) -> dict[str, float]:
    """Return vLLM's figures under the course's names. Raises ValueError if `vllm bench throughput` did not write the document.

    vLLM counts input and output tokens together; each request generated `output_len` tokens.
    """
    data = json.loads(text)
    missing = [key for key in KEYS if not isinstance(data.get(key), (int, float))] if isinstance(data, dict) else list(KEYS)
    if missing:
        raise ValueError(f"this is not what vllm bench throughput writes: {', '.join(missing)} missing")
    share = output_len / (input_len + output_len)
    return {
        "seconds": data["elapsed_time"], "requests": data["num_requests"], "requests_per_s": data["requests_per_second"],
        "total_tok_per_s": data["tokens_per_second"], "output_tok_per_s": data["tokens_per_second"] * share,
    }  # fmt: skip


def compare(words: list[str], out: Path, input_len: int, output_len: int) -> tuple[dict[str, float] | None, str | None]:
    """Run the command `words` and return its figures, or None and the reason."""
    process = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if process.returncode:
        sys.stdout.write("\n".join(process.stdout.splitlines()[-10:]) + "\n")
        return None, f"vllm bench ended with code {process.returncode}"
    try:
        return read(out.read_text(encoding="utf-8"), input_len, output_len), None
    except (OSError, ValueError) as error:
        return None, str(error)
