"""A prefix cache: what requests with equal beginnings find, by size of the memory, order of eviction, and order of the prompt.

You will learn    what a page of keys and values depends on, which page is given up first, and what one number can cost
You will produce  the share of tokens that are found, scores computed with found pages, and times of a real engine
Run it            python prefix_cache.py --pages=250
Your part         predict what a conversation finds; then my_prefix.py and my_template.yaml
Reading           modules/08-inference-engines/lesson-5-prefixes.md
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import engines
import own_part
import prefix_trial
import prefixes
import template
import torch
import yaml
from bench import say
from completions import RefusedByEngine, complete
from paged_engine import PART_ENGINE

FACTORS = (8, 1.6, 1.2, 1, 0.8, 0.6)  # of --pages, in the table by memory
PAGE_SIZES = (4, 16, 64, 256)
HEAD, NEW, TOKENS, PROMPTS = 936, 24, 4, 4  # tokens of the engine's prompts and answers, and how many prompts
LONGEST = prefixes.MAX_HEAD + 1 + 200 + prefixes.ANSWER

# --- knobs --------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="what a prefix cache finds")
parser.add_argument("--pages", type=int, default=250, help="pages of the cache")
parser.add_argument("--page", type=int, default=16, help="tokens of a page")
parser.add_argument("--requests", type=int, default=300, help="requests of the applications")
parser.add_argument("--applications", type=int, default=8, help="applications, each with its own beginning of a prompt")
parser.add_argument("--turns", type=int, default=5, help="turns of the conversation")
parser.add_argument("--system", type=int, default=300, help="tokens with which the conversation begins")
parser.add_argument("--tenants", type=int, default=1, help="customers who must not find each other's texts")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the texts are generated")
args = parser.parse_args()
if min(vars(args).values()) < 1:
    parser.error("all numbers must be at least 1")
requests = prefixes.make_requests(args.requests, args.applications, tenants=args.tenants, puzzle=args.puzzle)
if args.page >= (shortest := min(len(request.prompt) for request in requests)):
    parser.error(f"nothing can be found with --page={args.page}: the shortest prompt has {shortest} tokens")
if min(FACTORS) * args.pages < (least := 2 * -(-LONGEST // args.page)):
    parser.error(
        f"--pages={args.pages} is too small: two requests need {least} pages, and the table begins with {min(FACTORS):g} times "
        "as many"
    )

# --- set-up -------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_prefix.py")
torch.set_num_threads(1)
device = bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".").resolve()
folder = Path(__file__).resolve().parent

# --- what is found, by memory, page size and template -------------------------------------------------------------------
found_tokens = prefixes.search(requests, args.pages, args.page)
found_percent = prefixes.find_percent(requests, found_tokens)
memory: list[dict[str, Any]] = []
for pages in sorted({int(factor * args.pages) for factor in FACTORS}, reverse=True):
    percents = {
        order: prefixes.find_percent(requests, prefixes.search(requests, pages, args.page, order)) for order in prefixes.ORDERS
    }
    memory.append({"pages": pages, "yours": None, **{order.replace(" ", "_"): percent for order, percent in percents.items()}})
for_four = prefixes.make_requests(args.requests, args.applications, tenants=4 * args.tenants, puzzle=args.puzzle)
four_tenants_found = prefixes.find_percent(for_four, prefixes.search(for_four, args.pages, args.page))
token_by_token = prefixes.find_percent(requests, prefixes.find_beginnings(requests, 1))
sizes = [
    {"page": size, "found_percent": prefixes.find_percent(requests, prefixes.find_beginnings(requests, size)),
     "token_by_token": token_by_token}
    for size in PAGE_SIZES
]  # fmt: skip
stamped = {
    place: prefixes.make_requests(args.requests, args.applications, tenants=args.tenants, puzzle=args.puzzle, stamp=place)
    for place in ("front", "behind")
}
stamps = {place: prefixes.find_percent(rows, prefixes.find_beginnings(rows, args.page)) for place, rows in stamped.items()}
talk = prefixes.make_conversation(args.system, args.turns, args.puzzle)
talk_found = prefixes.search(
    talk, 2 * sum(len(turn.prompt) + len(turn.answer) for turn in talk) // args.page + args.turns, args.page
)
try:
    order_file = template.read_template(yaml.safe_load((folder / "my_template.yaml").read_text(encoding="utf-8")))
except (yaml.YAMLError, UnicodeDecodeError) as error:
    order_file = template.TemplateFile(faults=[f"it is not YAML: {str(error).splitlines()[0]}"])
templates = [
    {"order": "alphabet", "found_percent": template.measure_found(template.FIELDS)},
    {"order": "time first", "found_percent": template.measure_found(("time", *(n for n in template.FIELDS if n != "time")))},
    {"order": "best of 5,040", "found_percent": template.find_best()},
]
if order_file.order:
    templates.append({"order": "yours", "found_percent": template.measure_found(order_file.order)})

# --- yours --------------------------------------------------------------------------------------------------------------
settings = {"size": args.page, "count": args.requests, "system": args.system}
settings |= {name: getattr(args, name) for name in ("applications", "tenants", "puzzle", "turns")}
outcome = learner_part.run(
    None, "prefix_trial:use_yours", limit_s=40, memory=[args.pages, *(row["pages"] for row in memory)], **settings
)
yours: dict[str, Any] = dict.fromkeys(
    ("found_off", "talk_off", "false_hits", "lost", "logits_off", "computed_tokens", "found_percent")
)
if outcome.state == "ran":
    (result,) = outcome.results
    first, *others = result["runs"]
    for row, run in zip(memory, others, strict=True):
        row["yours"] = prefixes.find_percent(requests, run["found"])
    yours = {
        "found_off": sum(answer != right for answer, right in zip(first["found"], found_tokens, strict=True)),
        "talk_off": sum(answer != right for answer, right in zip(result["talk"]["found"], talk_found, strict=True)),
        "false_hits": sum(run["false_hits"] for run in result["runs"]), "lost": max(run["lost"] for run in result["runs"]),
        "found_percent": prefixes.find_percent(requests, first["found"]),
        **{key: result[key] for key in ("logits_off", "computed_tokens")},
    }  # fmt: skip

# --- a real engine ------------------------------------------------------------------------------------------------------
kind = engines.choose("auto")
chance = random.Random(args.puzzle)
prompts = [[chance.randrange(3, 1000) for _ in range(HEAD + NEW)] for _ in range(PROMPTS + 1)]


def repeat_prompts(url: str, model: str, cache: str) -> tuple[list[dict[str, Any]], float, int]:
    """Return the times to the first token of prompts that come twice, the ratio of the fastest, and how many answers differ."""
    complete(url, model, prompts[0], TOKENS, limit_s=60)  # the first answer of a process is slow
    answers = [[complete(url, model, prompt, TOKENS, limit_s=60) for _ in range(2)] for prompt in prompts[1:]]
    times = [[pair[place].ttft_s for pair in answers] for place in range(2)]
    rows = [
        {"cache": cache, "prompt": f"{HEAD + NEW} tokens {name}", "fastest_ms": 1e3 * min(seconds), **bench.spread_ms(seconds)}
        for name, seconds in zip(("for the first time", "again"), times, strict=True)
    ]
    # Other programs on the computer can only delay a token.
    return rows, min(times[0]) / min(times[1]), sum(first.text != again.text for first, again in answers)


served_part = folder / "my_prefix.py" if outcome.state == "ran" and kind != "vllm" else None
limits = {"max_num_seqs": 4, "max_model_len": 1000, "budget": 1024}
engine_error = None
with engines.running(kind, "tiny", out, **limits, is_sharing=True, part=served_part) as engine:
    times, plain_ratio, different = repeat_prompts(engine.url, engine.model, "vLLM's own" if kind == "vllm" else "none")
    ratio = plain_ratio if kind == "vllm" else None
    if served_part:
        try:
            own_times, ratio, own_different = repeat_prompts(engine.url, PART_ENGINE, "yours")
            times, different, engine_error = times + own_times, different + own_different, "no error"
        except (RefusedByEngine, OSError) as error:  # the learner's cache failed in it, or is stuck
            engine_error = f"{error}: look at the end of engine.log"

# --- the record ---------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "found_percent": found_percent, "talk_found_tokens": talk_found[-1],
    "four_tenants_times": four_tenants_found / found_percent if found_percent else None,
    "talk_found_percent": 100 * talk_found[-1] / len(talk[-1].prompt),
    "talk": [{"turn": number, "prompt": len(turn.prompt), "found": tokens}
             for number, (turn, tokens) in enumerate(zip(talk, talk_found, strict=True), 1)],
    "memory": memory, "sizes": sizes, "token_by_token": token_by_token, "templates": templates,
    "stamped_percent": stamps["front"],
    "behind_percent": stamps["behind"], "smallest_last_first": memory[-1]["last_page_first"] - memory[-1]["first_page_first"],
    "above_half": min((row["pages"] for row in memory if row["last_page_first"] >= 50), default=None),
    "below_half": max((row["pages"] for row in memory if row["last_page_first"] < 50), default=None),
    "radix_points": token_by_token - next(row["found_percent"] for row in sizes if row["page"] == 16),
    "false_hit_off": prefix_trial.measure_false_hit(), "engine": kind, "times": times, "engine_ratio": ratio,
    "engine_ratio_on_cpu": ratio if device.type == "cpu" else None, "different_answers": different,
    "plain_ratio": plain_ratio, "engine_error": engine_error,
    "yours": yours, "yours_error": "no error" if outcome.state == "ran" else outcome.text,
    "yours_above_forgotten": None if yours["found_percent"] is None
    else yours["found_percent"] - next(row["forgotten"] for row in memory if row["pages"] == args.pages),
    "template_error": "; ".join(order_file.faults) or "no error",
    "template_gap": templates[2]["found_percent"] - templates[3]["found_percent"] if order_file.order else None,
}  # fmt: skip
titles = {"pages": "pages", "yours": "yours", "last_page_first": "last page first", "first_page_first": "first page first"}
say(f"\nTokens that are found, in percent, by pages of {args.page} tokens and by the free page that is given up first")
bench.say_table(memory, titles | {"newest_first": "newest first", "forgotten": "keys dropped when a request ends"})
say(f"With a number in front of each prompt: {stamps['front']:.1f} %; behind the application's text: {stamps['behind']:.1f} %.")
say(f"\nTime to the first token on a real engine ({kind}), in ms")
bench.say_table(times, {"cache": "prefix cache", "prompt": "prompt", "fastest_ms": "fastest", "median_ms": "median"})
if outcome.state == "open":
    say(f"my_prefix.py is not written yet: here the column `yours` would be filled. {outcome.text}")
elif outcome.state == "failed":
    say(f"my_prefix.py: {outcome.text}")
if order_file.faults:
    say(f"my_template.yaml: {order_file.faults[0]}")
elif not order_file.order:
    say("my_template.yaml is still empty: here it would say how much is found with your order of a prompt")
else:
    say(
        f"my_template.yaml: {templates[3]['found_percent']:.1f} % are found; {templates[2]['found_percent']:.1f} % are possible"
    )
bench.keep_files(__file__, "my_prefix.py", "my_template.yaml")
path = bench.write_metrics("prefix_cache/1", device, world_size=1, seed=args.puzzle, metrics=metrics)
bench.say_end(path, device)
