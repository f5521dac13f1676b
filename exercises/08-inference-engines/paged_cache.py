"""A cache in pages: several answers over one prompt, and how much of the memory holds tokens.

You will learn    how a cache in pages finds memory for answers of unknown length, and shares a prompt without a copy
You will produce  pages, copies and scores of several answers over one prompt; how much of its memory each allocator uses
Run it            python paged_cache.py --prompt=100 --answer=20 --requests=500
Your part         predict the pages; then my_pages.py (the allocator) and my_paged.py (attention through a table)
Reading           modules/08-inference-engines/lesson-3-pages.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import page_trial
import torch
import waste
from bench import say

PARTS = ("my_pages.py", "my_paged.py")
PAGE_SIZES = (1, 8, 16, 32, 64, 128, 256, 512)
LIMIT_S = 90

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="several answers over one prompt, in pages")
parser.add_argument("--page", type=int, default=16, help="tokens in a page")
parser.add_argument("--prompt", type=int, default=1000, help="tokens of the prompt")
parser.add_argument("--answer", type=int, default=200, help="tokens of each answer")
parser.add_argument("--samples", type=int, default=4, help="answers to the prompt")
parser.add_argument("--requests", type=int, default=2000, help="requests that come and go, to see what is wasted")
parser.add_argument("--longest", type=int, default=2048, help="the longest text that the engine allows, in tokens")
args = parser.parse_args()
if min(args.page, args.prompt, args.answer, args.requests) < 1 or not 1 <= args.samples <= 64:
    parser.error("all sizes must be positive, and --samples at most 64")
if args.prompt + args.answer > args.longest or args.longest > 8192:
    parser.error(f"--prompt + --answer ({args.prompt + args.answer}) must be at most --longest, and that at most 8192")

# --- set-up ------------------------------------------------------------------------------------------------------------
allocator, attention = (own_part.Process(name) for name in PARTS)  # before torch computes anything
torch.set_num_threads(1)  # the tensors are small, and threads would only wait for each other
device = bench.here()
sizes: dict[str, int] = {name: getattr(args, name) for name in ("page", "prompt", "answer", "samples")}
lengths = {"prompt": args.prompt, "answer": args.answer, "samples": args.samples}


def describe(how: str, pages: int, result: dict[str, Any], room: int | None = None) -> dict[str, Any]:
    """Return the row of one way to keep the answers. `room` is in tokens."""
    tokens = args.samples * (args.prompt + args.answer)
    room = room or pages * args.page
    return {"how": how, "pages": pages, "room": room, "of_text_percent": 100 * room / tokens} | result


# --- the experiment: several answers over one prompt -------------------------------------------------------------------
rows = [{"how": "contiguous", "room": args.samples * args.longest,
         "of_text_percent": 100 * args.longest / (args.prompt + args.answer),
         "pages": None, "copies": None, "logits_off": None}]  # fmt: skip
for how, is_shared in (("pages, not shared", False), ("pages, planned", True)):
    planned = page_trial.Planned(args.page, **lengths, is_shared=is_shared)
    result = page_trial.follow_answers(planned, planned.pages, **sizes, is_shared=is_shared)
    rows.append(describe(how, result["pages"], result))
    say(f"{how}: {result['pages']} pages, {result['copies']} copies, scores off by {result['logits_off']:.1e}")
unshared, shared = rows[1:]

# --- the experiment: requests that come and go -------------------------------------------------------------------------
requests = page_trial.draw_requests(args.requests, args.longest)
shares = []
for how, rule in waste.list_rules(args.longest, sorted({*PAGE_SIZES, args.page})).items():
    used, empty = waste.follow(requests, waste.Reserved(rule))
    shares.append({"how": how, "used_percent": used, "empty_places": empty})
of_page = next(row for row in shares if row["how"] == f"pages of {args.page}")

# --- the experiment: your parts ----------------------------------------------------------------------------------------
outcome = allocator.run(None, "page_trial:try_pages", limit_s=LIMIT_S, **sizes, requests=args.requests, longest=args.longest)
yours: dict[str, Any] = outcome.results[0] if outcome.state == "ran" else {}
if yours:
    rows.append(describe("pages, yours", yours["pages"], {key: yours[key] for key in ("pages", "copies", "logits_off")}))
    shares.append({"how": f"yours, pages of {args.page}"} | {key: yours[key] for key in ("used_percent", "empty_places")})
reading = attention.run(None, "page_trial:try_attention", limit_s=LIMIT_S, **sizes, device=device.type)
read: dict[str, Any] = reading.results[0] if reading.state == "ran" else {}

# --- the experiment: time by page size ---------------------------------------------------------------------------------
collected = page_trial.time_attention(page_trial.paged_model.gather, device.type)
own_times = {int(size): time for size, time in read.get("times_us", {}).items()}
speed = [{"page": size, "collected_us": time, "yours_us": own_times.get(size)} for size, time in collected.items()]

# --- the record --------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "caches": rows, "waste": shares, "speed": speed,
    "by_page": [{"page": size, "used_percent": row["used_percent"]}
                for row in shares for size in PAGE_SIZES if row["how"] == f"pages of {size}"],
    "logits_off": max(unshared["logits_off"], shared["logits_off"]),
    "pages_held": shared["pages"], "pages_unshared": unshared["pages"], "copies_needed": shared["copies"],
    "sharing_gain": unshared["pages"] / shared["pages"],
    "saved_percent": 100 * (1 - shared["pages"] / unshared["pages"]),
    "used_percent": of_page["used_percent"], "empty_places": of_page["empty_places"],
    "reserved_percent": shares[0]["used_percent"],
    "pages_error": "no error" if yours else outcome.text, "paged_error": "no error" if read else reading.text,
    "yours": {key: yours.get(key) for key in ("pages", "copies", "logits_off", "pages_lost", "used_percent", "engine")},
    "read": {key: read.get(key) for key in ("logits_off", "largest")},
}  # fmt: skip
title = f"{args.samples} answers of {args.answer} tokens over a prompt of {args.prompt}, in pages of {args.page}"
columns = {"how": "cache", "pages": "pages", "room": "room", "of_text_percent": "% of the text", "copies": "copies"}
bench.say_table(rows, columns | {"logits_off": "scores off"}, title=title)
bench.say_table(shares, {"how": "room for", "used_percent": "% used", "empty_places": "empty places"})
for name, result in zip(PARTS, (outcome, reading), strict=True):
    if result.state == "open":
        say(f"{name} is not written yet: its row would say yours. {result.text}")
    elif result.state == "failed":
        say(f"{name}: {result.text}")
bench.keep_files(__file__, *PARTS)
path = bench.write_metrics("paged_cache/1", device, world_size=1, seed=0, metrics=metrics)
bench.say_end(path, device)
