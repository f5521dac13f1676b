"""A small language model of Llama's form: rotary positions, grouped heads, RMS norms, SwiGLU. The caller provides the cache.

`SmallModel.forward` computes the new tokens of any number of requests together, as engines do: they are one flat list, and only
attention has to know which request a token belongs to. With equal weights, transformers' LlamaForCausalLM has the same scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Keep the keys and values of a layer's new tokens, and return what the queries read:
(layer, query [T, heads, d], key [T, kv_heads, d], value [T, kv_heads, d]) -> [T, heads, d]."""
Multiply = Callable[[tuple[int, str], torch.Tensor, torch.Tensor], torch.Tensor]
"""Multiplies an input [T, in] by a weight [in, out]; the first argument names the layer and the weight."""


class SmallModel:
    """The weights of a decoder, and its forward pass.

    `layers` has a dictionary for each layer: attention_norm, query, key, value, output, mlp_norm, gate, up, down. A matrix has
    the shape [in, out]. The embedding is also the output matrix.
    """

    def __init__(
        self, *, vocabulary: int = 256, width: int = 64, layers: int = 2, heads: int = 4, kv_heads: int = 2, head_dim: int = 16,
        hidden: int = 160, seed: int = 0, dtype: torch.dtype = torch.float64, spread: float = 0.08,
    ) -> None:  # fmt: skip
        """Draw the weights from a normal distribution with the standard deviation `spread`."""
        source = torch.Generator().manual_seed(seed)

        def draw(*shape: int) -> torch.Tensor:
            return (torch.randn(*shape, generator=source, dtype=torch.float64) * spread).to(dtype)

        self.vocabulary, self.width, self.heads, self.kv_heads = vocabulary, width, heads, kv_heads
        self.head_dim, self.hidden, self.dtype = head_dim, hidden, dtype
        self.embedding, self.norm = draw(vocabulary, width), torch.ones(width, dtype=dtype)
        self.layers: list[dict[str, torch.Tensor]] = [
            {
                "attention_norm": torch.ones(width, dtype=dtype),
                "query": draw(width, heads * head_dim),
                "key": draw(width, kv_heads * head_dim),
                "value": draw(width, kv_heads * head_dim),
                "output": draw(heads * head_dim, width),
                "mlp_norm": torch.ones(width, dtype=dtype),
                "gate": draw(width, hidden),
                "up": draw(width, hidden),
                "down": draw(hidden, width),
            }
            for _ in range(layers)
        ]

    def tensors(self) -> list[torch.Tensor]:
        """Return all weights."""
        return [self.embedding, self.norm, *(tensor for layer in self.layers for tensor in layer.values())]

    def forward(
        self, tokens: torch.Tensor, places: torch.Tensor, attend: Attend, *, rows: Sequence[int] | slice | None = None,
        multiply: Multiply | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """Return the scores [T, vocabulary] of the next token, or only those of `rows`.

        `tokens` and `places` have the shape [T]; a place is the number of a token in its own request, from 0.
        """
        product = multiply or _multiply
        x = self.embedding[tokens]
        for number, layer in enumerate(self.layers):

            def project(name: str, source: torch.Tensor, number: int = number) -> torch.Tensor:
                return product((number, name), source, self.layers[number][name])

            normed = normalise(x, layer["attention_norm"])
            query, key, value = (
                project(name, normed).view(len(tokens), -1, self.head_dim) for name in ("query", "key", "value")
            )
            mixed = attend(number, rotate(query, places), rotate(key, places), value)
            x = x + project("output", mixed.reshape(len(tokens), -1))
            normed = normalise(x, layer["mlp_norm"])
            x = x + project("down", torch.nn.functional.silu(project("gate", normed)) * project("up", normed))
        return normalise(x if rows is None else x[rows], self.norm) @ self.embedding.T


def _multiply(_name: tuple[int, str], source: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return source @ weight


def normalise(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x divided by the root of its mean square, times `weight` (Zhang and Sennrich 2019)."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def rotate(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return x [T, heads, d] with pairs of numbers rotated by angles that grow with the place (Su et al. 2021)."""
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
    angles = (places.double()[:, None] * frequencies)[:, None, :]
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, start: int) -> torch.Tensor:
    """Return plain attention, [T, heads, d]: the query at place start + i reads the keys at places 0 to start + i.

    query: [T, heads, d]; key and value: [N, kv_heads, d], of the places 0 to N - 1. Neighbouring query heads share a key head.
    """
    count, heads, dim = query.shape
    key, value = (tensor.repeat_interleave(heads // tensor.shape[1], 1) for tensor in (key, value))
    scores = torch.einsum("thd,nhd->htn", query, key) / dim**0.5
    places = torch.arange(len(key), device=query.device)
    later = places[None, :] > (start + places[:count])[:, None]
    return torch.einsum("htn,nhd->thd", scores.masked_fill(later, -torch.inf).softmax(-1), value)


class ContiguousCache:
    """The keys and values of one request, one growing tensor for each layer. `attend` is for `SmallModel.forward`."""

    def __init__(self, layers: int) -> None:
        self.keys: list[torch.Tensor | None] = [None] * layers
        self.values: list[torch.Tensor | None] = [None] * layers

    def __len__(self) -> int:
        return 0 if self.keys[0] is None else len(self.keys[0])

    def attend(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """Append a layer's new keys and values, and return attention over all of them."""
        keys, values = self.keys[layer], self.values[layer]
        start = 0 if keys is None else len(keys)
        keys = self.keys[layer] = key if keys is None else torch.cat([keys, key])
        values = self.values[layer] = value if values is None else torch.cat([values, value])
        return attention(query, keys, values, start)


def score_alone(model: SmallModel, tokens: Sequence[int]) -> torch.Tensor:
    """Return the scores [vocabulary] of the token after `tokens`, computed in one pass without any other request."""
    cache = ContiguousCache(len(model.layers))
    return model.forward(torch.tensor(tokens), torch.arange(len(tokens)), cache.attend, rows=[-1])[0]


def answer_alone(model: SmallModel, prompt: Sequence[int], count: int) -> tuple[list[int], float]:
    """Return the `count` most likely tokens after the prompt, computed without any other request, and the smallest gap between
    the best two scores: if it is far above the rounding of the scores, a different order of summation cannot change a token."""
    cache, new, answer, gap = ContiguousCache(len(model.layers)), list(prompt), [], float("inf")
    for _ in range(count):
        start = len(cache)
        scores = model.forward(torch.tensor(new), torch.arange(start, start + len(new)), cache.attend, rows=[-1])[0]
        best, second = scores.topk(2).values.tolist()
        gap = min(gap, best - second)
        answer.append(int(scores.argmax()))
        new = answer[-1:]
    return answer, gap
