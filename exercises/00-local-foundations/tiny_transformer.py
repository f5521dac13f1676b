"""A language model from scratch: it reads characters, guesses the next one, and is corrected. Two depths, one run.

You will learn    what forward, loss, backward and step do; how to tell learning from guessing; why a deeper model can be
                  better a step and worse a second
You will produce  the loss of every step for both depths; tokens/s; text that each model made up; metrics.json, samples.txt
Run it            python tiny_transformer.py
                  python tiny_transformer.py --epochs 10 --hidden 128 --layers 1 --compare-layers 6
Your part         write one step yourself, in my_step.py; change --layers, --hidden and --lr; try a text of your own
Reading           modules/00-local-foundations/lesson.md, "The loop", and transformer.py, the model
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node bench.py lies beside

import bench
import stories
import torch
from bench import say
from torch import nn
from transformer import TinyTransformer

SEED, CONTEXT, HEADS = 0, 64, 4  # the model sees at most CONTEXT characters back

# --- knobs ------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a tiny transformer, trained in a visible loop, in two depths")
parser.add_argument("--layers", type=int, default=2, help="blocks of the first model")
parser.add_argument("--compare-layers", type=int, default=4, help="blocks of the second model")
parser.add_argument("--hidden", type=int, default=32, help=f"numbers that stand for one character; a multiple of {HEADS}")
parser.add_argument("--epochs", type=int, default=4, help="passes over the text")
parser.add_argument("--lr", type=float, default=0.006, help="learning rate: how far a step goes")
parser.add_argument("--batch-size", type=int, default=16, help=f"pieces of {CONTEXT} characters a step")
args = parser.parse_args()
if min(args.layers, args.compare_layers, args.hidden, args.epochs, args.batch_size) < 1 or not 0 < args.lr < math.inf:
    parser.error("every value must be above zero")
if args.hidden % HEADS:
    parser.error(f"--hidden {args.hidden} is not a multiple of {HEADS}, the number of attention heads")
if args.layers == args.compare_layers:
    parser.error(f"--layers and --compare-layers are both {args.layers}: there is nothing to compare")

# --- the data: characters as numbers; the last tenth is never trained on ----------------------------------------------
on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
device = torch.device("cuda" if on_gpu else "cpu")
torch.set_num_threads(1)  # matrices this small gain nothing from a second core, and lose where the machine is busy
text = (Path(__file__).resolve().parent / "stories.txt").read_text(encoding="utf-8")
letters = sorted(set(text))
vocabulary, kept = len(letters), len(text) * 9 // 10
numbers = torch.tensor([letters.index(letter) for letter in text])
training, held_out = numbers[:kept], numbers[kept:]
if vocabulary < 2 or len(training) < (args.batch_size + 2) * CONTEXT or len(held_out) < 2 * CONTEXT:
    sys.exit(
        f"stories.txt has {len(text):,} characters: too few for a step of {args.batch_size} pieces of {CONTEXT} (--batch-size)"
    )


def pieces(source: torch.Tensor, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """The text cut at every CONTEXT characters, and the same one character later: what is seen, and what is to be guessed."""
    usable = (len(source) - first - 1) // CONTEXT * CONTEXT
    seen, wanted = source[first : first + usable], source[first + 1 : first + 1 + usable]
    return seen.view(-1, CONTEXT).to(device), wanted.view(-1, CONTEXT).to(device)


def loss_of(model: nn.Module, seen: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The mean surprise by the next character, in nats: minus the logarithm of the chance that the model gave it."""
    return nn.functional.cross_entropy(model(seen).flatten(0, 1), wanted.flatten())


# --- the loop: nothing is hidden in a trainer -------------------------------------------------------------------------
def train(model: nn.Module, layers: int) -> list[dict]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    order = torch.Generator().manual_seed(SEED)  # every model sees the same pieces in the same order
    steps: list[dict] = []
    busy_s, line = 0.0, f"{layers} layers"
    for epoch in range(args.epochs):
        seen, wanted = pieces(training, first=int(torch.randint(CONTEXT, (1,), generator=order)))
        shuffled = torch.randperm(len(seen), generator=order).to(device)
        for chosen in shuffled[: len(seen) // args.batch_size * args.batch_size].split(args.batch_size):
            begin = time.perf_counter()
            loss = loss_of(model, seen[chosen], wanted[chosen])  # forward: guess, and see how wrong the guess was
            optimizer.zero_grad()
            loss.backward()  # backward: how would each parameter have made it less wrong?
            optimizer.step()  # step: go a little that way
            value = loss.item()  # reading a value waits for the GPU, so the clock below is right
            busy_s += (took_s := time.perf_counter() - begin)
            place = {"layers": layers, "line": line, "step": len(steps) + 1, "at_s": busy_s}
            steps.append({**place, "took_s": took_s, "loss": value})
        say(f"{layers} layers  epoch {epoch + 1}/{args.epochs}  step {len(steps):>4}  loss {value:.3f}  {busy_s:5.1f} s")
    return steps


# --- what it has learned: text that it never saw, proof that it does not cheat, text of its own -----------------------
@torch.no_grad()
def surprise(model: nn.Module) -> float:
    """The loss on the held-out tenth: learned by heart does not count."""
    return loss_of(model, *pieces(held_out)).item()


@torch.no_grad()
def change_by_the_future(model: nn.Module) -> float:
    """How much the guesses for the first half of a piece change when its second half does. Anything but nothing is cheating."""
    seen = pieces(held_out)[0][:1]
    other = seen.clone()
    other[:, CONTEXT // 2 :] = (other[:, CONTEXT // 2 :] + 1) % vocabulary
    return (model(seen) - model(other))[:, : CONTEXT // 2].abs().max().item()


@torch.no_grad()
def make_up(model: nn.Module, length: int = 240) -> str:
    """Throw dice that are loaded with the model's guess, append what they show, go on from there."""
    dice, written = torch.Generator().manual_seed(SEED), [int(numbers[0])]  # the first character of the text
    for _ in range(length):
        chances = model(torch.tensor([written[-CONTEXT:]], device=device))[0, -1].softmax(dim=-1).cpu()
        if not chances.isfinite().all():
            return "nothing: its guesses are no numbers"
        written.append(int(torch.multinomial(chances, 1, generator=dice)))
    return "".join(letters[number] for number in written)


# --- the experiment: the same data, steps and seed for both depths ----------------------------------------------------
guessing = math.log(vocabulary)  # the loss of someone to whom every character is equally likely
shares = [count / len(text) for count in Counter(text).values()]
counting = -sum(share * math.log(share) for share in shares)  # of someone who knows how frequent each is, and nothing else
say(f"{len(text):,} characters, {vocabulary} different ones: guessing costs ln {vocabulary} = {guessing:.3f} nats a character")
models, curve, samples = [], [], []
for layers in (args.layers, args.compare_layers):
    torch.manual_seed(SEED)
    model = TinyTransformer(vocabulary, CONTEXT, layers, args.hidden, HEADS).to(device)
    before, steps = surprise(model), train(model, layers)
    warm = bench.spread_ms(
        [step["took_s"] for step in steps[len(steps) // 10 :]]
    )  # the first tenth pays for memory and handles
    row = {
        "layers": layers, "parameters": sum(weight.numel() for weight in model.parameters()), "steps": len(steps),
        "loss_before": before, "loss_after": surprise(model),
        "loss_last_steps": bench.percentile([step["loss"] for step in steps[-10:]], 50),
        "training_s": steps[-1]["at_s"], "tokens_per_s": args.batch_size * CONTEXT / warm["median_ms"] * 1e3, **warm,
        "change_by_the_future": change_by_the_future(model),
    }  # fmt: skip
    row["chance_percent"] = 100 * math.exp(-row["loss_after"])  # that it gives the right character, the geometric mean
    models.append(row)
    curve += steps
    samples.append(f"{layers} layers wrote:\n{make_up(model).strip()}\n")
    say(f"{layers} layers: held-out loss {before:.3f} before, {row['loss_after']:.3f} after; {samples[-1]}")

# --- what the losses are compared with: lines of the plot -------------------------------------------------------------
lines = {f"guessing, {guessing:.2f}": guessing, f"counting, {counting:.2f}": counting}
if text == (written := stories.write())[0]:  # of another text nobody knows how much of it is chance
    lines[f"no model is better, {written[1]:.2f}"] = written[1]
ends = [{"step": 1, "at_s": 0.0}, {key: max(row[key] for row in curve) for key in ("step", "at_s")}]
curve += [{"layers": None, "line": line, **end, "took_s": None, "loss": loss} for line, loss in lines.items() for end in ends]

# --- the record -------------------------------------------------------------------------------------------------------
titles = {"layers": "layers", "parameters": "parameters", "loss_before": "loss before", "loss_after": "loss after"}
bench.say_table(models, titles | {"median_ms": "step ms", "p80_ms": "p80 ms", "tokens_per_s": "tokens/s", "training_s": "s"})
metrics = {**vars(args), "context": CONTEXT, "characters": len(text), "vocabulary": vocabulary, "loss_of_guessing": guessing}
metrics |= {"loss_of_counting": counting, "models": models, "curve": curve}
metrics |= {"loss_before": models[0]["loss_before"], "best_chance_percent": max(row["chance_percent"] for row in models)}
metrics["step_time_ratio"] = models[1]["median_ms"] / models[0]["median_ms"]
path = bench.write_metrics("tiny_transformer/1", device, world_size=1, seed=SEED, metrics=metrics)
path.with_name("samples.txt").write_text("\n".join(samples), encoding="utf-8")
bench.say_end(path, device)
