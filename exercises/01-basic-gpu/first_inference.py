"""First inference: an engine loads a language model, a client sends it requests over HTTP and times the answers.

You will learn    the time to load, to the first token and per token; why a longer answer takes longer, and by how much
You will produce  the generated text; times of the first (cold) and of warm requests; metrics.json
Run it            python first_inference.py --model tiny
                  python first_inference.py --model gpt2 --prompt "The future of GPU computing is" --max-tokens 100
Your part         write my_latencies.py and my_decoding.py; the run times its streams and generates an answer with them
Reading           modules/01-basic-gpu/lesson-2-engine.md, "What an engine does"
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import ceilings
import engines
import own_part
from bench import say
from completions import Answer, RefusedByEngine, complete
from language_models import MODELS

SEED, REPEATS = 0, 5

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="load a language model, ask it, time the answer")
parser.add_argument(
    "--engine", type=str, default="auto", choices=["auto", "vllm", "transformers"], help="which engine computes"
)
parser.add_argument("--model", type=str, default="gpt2", choices=list(MODELS), help="tiny has random weights and is made here")
parser.add_argument("--prompt", type=str, default="The best way to learn is", help="the text that the model continues")
parser.add_argument("--max-tokens", type=int, default=50, help="tokens to generate")
parser.add_argument("--temperature", type=float, default=0.8, help="0: always the likeliest token; 1: as the model predicts")
args = parser.parse_args()
longest = MODELS[args.model].longest
if not args.prompt or not 2 <= args.max_tokens <= longest // 2 or not 0 <= args.temperature <= 10:
    parser.error(f"a prompt, --max-tokens from 2 to {longest // 2} and --temperature from 0 to 10 are needed")

latencies, decoding = own_part.Process("my_latencies.py"), own_part.Process("my_decoding.py")

# --- load: the engine is a separate process ----------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
kind, device = engines.choose(args.engine), bench.here()
say(f"{kind} loads {args.model} on {device} ...")
if not MODELS[args.model].hub:
    say("The tiny model has random weights: its text is noise, but its times are real.")


def row(kind: str, answers: list[Answer]) -> dict:
    """Return the medians over answers of one kind, and the resulting speed. An impossible speed is refused."""
    tokens = min(answer.tokens for answer in answers)
    ttft, e2e = (statistics.median(times) for times in zip(*((a.ttft_s, a.e2e_s) for a in answers), strict=True))
    tpot = statistics.median(answer.tpot_s or 0.0 for answer in answers)
    speed = tokens / e2e
    ceiling = limits.find(1, answers[0].prompt_tokens, tokens)
    possible_speed = ceilings.limit_to_possible(speed, ceiling)
    return {
        "what": kind, "tokens": tokens, "requests": len(answers), "ttft_ms": ttft * 1e3, "tpot_ms": tpot * 1e3,
        "e2e_ms": e2e * 1e3, "tok_per_s": possible_speed, "refused": possible_speed is None, "ceiling": ceiling.reason,
        "ceiling_tok_per_s": ceiling.tok_per_s, "share_of_ceiling_percent": possible_speed and ceiling.tok_per_s
        and 100 * possible_speed / ceiling.tok_per_s,
    }  # fmt: skip


# --- the experiment: cold, warm, half as long, and twice at temperature 0 ----------------------------------------------
limits = ceilings.Ceilings(MODELS[args.model], device)
with engines.running(kind, args.model, out, max_num_seqs=4, max_model_len=longest) as engine:
    say(f"ready after {engine.load_s:.1f} s; memory {(engine.memory_bytes() or 0) / 2**20:,.0f} MiB\n")

    def ask(tokens: int, temperature: float) -> Answer:
        return complete(engine.url, engine.model, args.prompt, tokens, temperature=temperature)

    try:
        cold = ask(args.max_tokens, args.temperature)
        warm = [ask(args.max_tokens, args.temperature) for _ in range(REPEATS)]
        half = [ask(args.max_tokens // 2, args.temperature) for _ in range(REPEATS)]
        likeliest = [ask(args.max_tokens // 2, 0.0) for _ in range(2)]
    except RefusedByEngine as error:
        sys.exit(str(error))
    memory = engine.memory_bytes()

    # --- your parts: the streams that just arrived; then a model in your own loop, without an engine -----------------------
    streams = [(a.sent_s, [*((moment, 1) for moment in a.arrivals_s), (a.sent_s + a.e2e_s, 0)]) for a in warm]
    is_one_each = all(answer.events == answer.tokens for answer in warm)  # some engines put several tokens into an event
    timed = latencies.run(None, "answers:summarise_yours", streams=streams) if is_one_each else None
    decoded = decoding.run(
        None, "answers:decode_yours", limit_s=300, place=engine.model, prompt=args.prompt, count=args.max_tokens
    )

rows = [row("first request", [cold]), row("warm", warm), row("warm, half as long", half)]
text = warm[-1].text
(out / "generated.txt").write_text(f"{args.prompt}{text}\n", encoding="utf-8")

# --- the record ----------------------------------------------------------------------------------------------------------
engine_version, numbers = engines.version(kind), 2 if device.type == "cuda" else 4
first_s = engine.load_s + rows[0]["e2e_ms"] / 1e3
predicted = rows[2]["ttft_ms"] + (args.max_tokens - 1) * rows[2]["tpot_ms"]  # from the short answers alone
lengths = [*[args.max_tokens] * (1 + REPEATS), *[args.max_tokens // 2] * (REPEATS + len(likeliest))]
of_yours = []
arrivals = [
    {"line": line, "at_ms": 1e3 * (moment - answer.sent_s), "token": place + 1}
    for line, answer in (("first request", cold), ("warm", sorted(warm, key=lambda answer: answer.e2e_s)[len(warm) // 2]))
    for place, moment in enumerate(answer.arrivals_s)
]
for outcome, part in ((timed, "my_latencies.py"), (decoded, "my_decoding.py")):
    if outcome is None:
        say("An event of this engine's stream contains several tokens, and does not say how many: your times are not measured.")
    elif outcome.state == "ran":
        of_yours += outcome.results[0].get("rows", outcome.results)
        arrivals += outcome.results[0].get("arrivals", [])
    elif outcome.state == "open":
        say(f"{part} is open: once it is written, the table has a row 'yours' for it")
    else:
        say(f"no row of yours: {outcome.text}")
verdicts = [
    outcome.results[0]["verdict"] if outcome.state == "ran" else outcome.text if outcome.state == "failed" else None
    for outcome in (timed or own_part.Outcome("open"), decoded)
]
metrics = {
    **vars(args), "engine": kind, "engine_version": engine_version, "rows": rows,
    "requests_of_all": rows + of_yours, "your_latencies": verdicts[0], "your_decoding": verdicts[1],
    "arrivals": arrivals, "reloaded_of_kept": 100 * first_s / (first_s + 99 * rows[1]["e2e_ms"] / 1e3),
    "tokens_of_ten_ttft": 1 + 9 * rows[1]["ttft_ms"] / rows[1]["tpot_ms"] if rows[1]["tpot_ms"] else None,
    "ttft_over_tpot": rows[1]["ttft_ms"] / rows[1]["tpot_ms"] if rows[1]["tpot_ms"] else None,
    "load_s": engine.load_s, "text": text, "prompt_tokens": cold.prompt_tokens,
    **{key: rows[1][key] for key in ("ttft_ms", "tpot_ms", "e2e_ms", "tok_per_s", "ceiling_tok_per_s")},
    "e2e_over_half": rows[1]["e2e_ms"] / rows[2]["e2e_ms"],
    "requests": len(lengths), "ceiling_reason": rows[1]["ceiling"], "predicted_e2e_ms": predicted,
    "tokens_missing": sum(abs(a.tokens - n) for a, n in zip([cold, *warm, *half, *likeliest], lengths, strict=True)),
    "not_streamed": sum(answer.events < 2 or answer.ttft_s >= answer.e2e_s for answer in [cold, *warm]),
    "greedy_answers_differ": int(likeliest[0].text != likeliest[1].text), "refused": sum(row["refused"] for row in rows),
    "engine_memory_bytes": memory, "weight_bytes": MODELS[args.model].weight_bytes(numbers),
    "simulated": None if device.type == "cuda" else "transformers on the CPU: the shapes hold on a GPU, the numbers do not",
}  # fmt: skip
say(f"{args.prompt}{text}\n")
titles = {"what": "request", "tokens": "tokens", "ttft_ms": "TTFT ms", "tpot_ms": "TPOT ms", "e2e_ms": "in all ms",
          "tok_per_s": "tokens/s", "ceiling_tok_per_s": "ceiling tokens/s"}  # fmt: skip
bench.say_table(rows + of_yours, titles)
say(
    f"from the shorter answers: {args.max_tokens} tokens should take {predicted:,.0f} ms; they took {rows[1]['e2e_ms']:,.0f} ms"
)
for refused_row in (row for row in rows if row["refused"]):
    say(f"refused: the figure of '{refused_row['what']}' is higher than possible ({refused_row['ceiling']})")
path = bench.write_metrics("first_inference/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device, f"{kind} {engine_version}")
