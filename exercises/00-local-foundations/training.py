"""The training of exercise 0.1: the text in pieces, the loop, and what a model has learned.

You will learn    what forward, loss, backward and step do; how to tell learning from guessing and from looking ahead
You will produce  nothing directly: tiny_transformer.py trains with it
Run it            python tiny_transformer.py
Your part         find the four lines of a step in `train`
Reading           modules/00-local-foundations/lesson.md, "The loop"
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import bench
import torch
from bench import say
from torch import nn
from transformer import Attend, Attention, TinyTransformer

SEED, CONTEXT, HEADS = 0, 64, 4  # the model sees at most CONTEXT characters back
EDGE = 8  # characters at each end of a piece whose losses are compared

Row = dict[str, Any]


class Text:
    """stories.txt as numbers, one for each different character. The last tenth is never trained on."""

    def __init__(self, batch_size: int) -> None:
        """Read the text. Exit with a message if it is too short for a step of `batch_size` pieces."""
        on_gpu = torch.cuda.is_available() and os.environ.get("GPUCOURSE_BACKEND") != "gloo"
        self.device = torch.device("cuda" if on_gpu else "cpu")
        self.text = (Path(__file__).resolve().parent / "stories.txt").read_text(encoding="utf-8")
        self.letters = sorted(set(self.text))
        numbers = torch.tensor([self.letters.index(letter) for letter in self.text], device=self.device)
        self.training, self.held_out = numbers.split([len(numbers) * 9 // 10, len(numbers) - len(numbers) * 9 // 10])
        if len(self.letters) < 2 or len(self.training) < (batch_size + 2) * CONTEXT or len(self.held_out) < 2 * CONTEXT:
            need = f"a step of {batch_size} pieces of {CONTEXT} (--batch-size)"
            sys.exit(f"stories.txt has {len(self.text):,} characters: too few for {need}")

    def build(self, layers: int, width: int, attend: Attend | None) -> TinyTransformer:
        """Return an untrained model for this text, with the same first weights each time."""
        torch.manual_seed(SEED)
        line_end = self.letters.index("\n") if "\n" in self.letters else None
        return TinyTransformer(len(self.letters), CONTEXT, layers, width, HEADS, attend, line_end).to(self.device)


def pieces(source: torch.Tensor, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the text in pieces of CONTEXT characters, and the same pieces shifted by one character: the inputs and the
    targets."""
    usable = (len(source) - first - 1) // CONTEXT * CONTEXT
    inputs, targets = source[first : first + usable], source[first + 1 : first + 1 + usable]
    return inputs.view(-1, CONTEXT), targets.view(-1, CONTEXT)


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean surprise at the next character in nats: minus the logarithm of the probability that the model gave to
    it."""
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


# --- the loop: nothing is hidden in a trainer -------------------------------------------------------------------------
def train(model: nn.Module, training: torch.Tensor, line: str, *, epochs: int, batch_size: int, lr: float) -> list[Row]:
    """Train, and return one row for each step. `line` names the model in the plots."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    order = torch.Generator().manual_seed(SEED)  # every model sees the same pieces in the same order
    steps: list[Row] = []
    busy_s = 0.0
    for epoch in range(epochs):
        inputs, targets = pieces(training, first=int(torch.randint(CONTEXT, (1,), generator=order)))
        shuffled = torch.randperm(len(inputs), generator=order).to(training.device)
        for places in shuffled[: len(inputs) // batch_size * batch_size].split(batch_size):
            begin = time.perf_counter()
            loss = loss_of(model, inputs[places], targets[places])  # forward: guess, and see how wrong the guess was
            optimizer.zero_grad()
            loss.backward()  # backward: for each parameter, which way would have been less wrong?
            optimizer.step()  # step: go a little that way
            value = loss.item()  # reading a value waits for the GPU, so the clock below is right
            busy_s += (took_s := time.perf_counter() - begin)
            steps.append({"line": line, "step": len(steps) + 1, "at_s": busy_s, "took_s": took_s, "loss": value})
        say(f"{line}  epoch {epoch + 1}/{epochs}  step {len(steps):>4}  loss {value:.3f}  {busy_s:5.1f} s")
    return steps


# --- what it has learned: the loss on unseen text, proof that it does not look ahead, text that it writes ----------------
@torch.no_grad()
def surprise(model: nn.Module, text: Text) -> list[float]:
    """Return the mean loss at each position in a piece, on the held-out tenth of the text: memorised text does not help
    there."""
    inputs, targets = pieces(text.held_out)
    return nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets, reduction="none").mean(dim=0).tolist()


@torch.no_grad()
def change_by_the_future(model: nn.Module, held_out: torch.Tensor, vocabulary: int) -> float:
    """Return the largest change of a score in the first half of a piece when its second half changes. If it is not 0, the model
    sees the future."""
    original = pieces(held_out)[0][:1]
    altered = original.clone()
    altered[:, CONTEXT // 2 :] = (altered[:, CONTEXT // 2 :] + 1) % vocabulary
    return (model(original) - model(altered))[:, : CONTEXT // 2].abs().max().item()


@torch.no_grad()
def make_up(model: nn.Module, text: Text, length: int = 240) -> str:
    """Return a text that the model makes up: repeatedly draw the next character from its probabilities and append it."""
    dice, numbers_so_far = torch.Generator().manual_seed(SEED), [int(text.training[0])]  # the first character of the text
    for _ in range(length):
        chances = model(torch.tensor([numbers_so_far[-CONTEXT:]], device=text.device))[0, -1].softmax(dim=-1).cpu()
        if not chances.isfinite().all():
            return "nothing: its guesses are not finite numbers"
        numbers_so_far.append(int(torch.multinomial(chances, 1, generator=dice)))
    return "".join(text.letters[number] for number in numbers_so_far).strip()


def experiment(
    text: Text, line: str, layers: int, attend: Attend | None, *, hidden: int, epochs: int, batch_size: int, lr: float
) -> tuple[Row, list[Row], str]:
    """Train one model. Return a row of its figures, the rows of its steps, and a text that it wrote."""
    torch.set_num_threads(1)  # for matrices this small a second core does not help, and on a busy machine it costs time
    model = text.build(layers, hidden, attend)
    before = surprise(model, text)
    steps = train(model, text.training, line, epochs=epochs, batch_size=batch_size, lr=lr)
    losses = surprise(model, text)
    # The first tenth includes allocating memory and handles.
    warm = bench.spread_ms([step["took_s"] for step in steps[len(steps) // 10 :]])
    row = {
        "line": line, "layers": layers, "parameters": sum(weight.numel() for weight in model.parameters()),
        "steps": len(steps), "loss_before": sum(before) / len(before), "loss_after": sum(losses) / len(losses),
        "loss_last_steps": bench.percentile([step["loss"] for step in steps[-10:]], 50),
        "training_s": steps[-1]["at_s"], "tokens_per_s": batch_size * CONTEXT / warm["median_ms"] * 1e3, **warm,
        "change_by_the_future": change_by_the_future(model, text.held_out, len(text.letters)),
        "first_over_last": sum(losses[:EDGE]) / sum(losses[-EDGE:]), "losses_by_place": losses,
    }  # fmt: skip
    say(f"{line}: held-out loss {row['loss_before']:.3f} before, {row['loss_after']:.3f} after")
    return row, steps, make_up(model, text)


# --- your part: the same model and the same steps, with the attention of my_attention.py ------------------------------
def train_yours(_world: None, layers: int, batch_size: int, **settings: Any) -> dict[str, Any]:
    """Return the figures, steps and text of a model with the learner's attention, and a verdict: its fault, or `right`."""
    import my_attention  # the learner's file, which may raise or hang: `own_part` limits its time

    text = Text(batch_size)
    fault = find_fault(my_attention.attend, settings["hidden"], text.device)
    row, steps, sample = experiment(
        text, f"{layers} layers, yours", layers, my_attention.attend, batch_size=batch_size, **settings
    )
    return {"row": row, "steps": steps, "sample": sample, "verdict": fault or "right"}


def attend_as_torch(attention: nn.MultiheadAttention, x: torch.Tensor) -> torch.Tensor:
    """Return PyTorch's attention with its mask, even if you remove the mask from transformer.py."""
    future = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
    return attention(x, x, x, attn_mask=future, need_weights=False)[0]


@torch.no_grad()
def find_fault(attend: Attend, width: int, device: torch.device) -> str:
    """Return a sentence with the largest difference between a learner's attention and PyTorch's on single lines, or an empty
    string if they agree."""
    attention = Attention(width, HEADS, attend).to(device)
    x = 3 * torch.randn(2, CONTEXT, width, device=device)
    for lengths in ([CONTEXT], [20, 1, CONTEXT - 21]):
        lines = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)).expand(2, -1).to(device)
        reference = torch.cat([attend_as_torch(attention.torchs, part) for part in x.split(lengths, dim=1)], dim=1)
        difference = (attention(x, lines) - reference).abs().max().item()
        if not difference < 1e-3:
            return f"with {len(lengths)} line{'s' * (len(lengths) > 1)} in a piece, the result is off by up to {difference:.2g}"
    return ""
