"""The language models of the course: the sizes that a ceiling needs, and a tiny model that is created here.

The tiny model has random weights, so its text is noise, but its times are real. Its tokenizer is trained within a second on the
source files of Python's own library, which every computer here has. Nothing is downloaded.
"""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LanguageModel:
    """Sizes of a model, from its published configuration.

    `hub` is its name if it can be downloaded, and empty if it is created here.
    """

    hub: str
    parameters: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    longest: int

    def weight_bytes(self, bytes_per_number: int) -> int:
        """Return the least number of bytes that a decode step reads, whatever the batch."""
        return self.parameters * bytes_per_number

    def kv_bytes(self, tokens: int, bytes_per_number: int) -> int:
        """Return the bytes that a sequence of that many tokens keeps: a key and a value for each layer, head and token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * bytes_per_number * tokens


MODELS = {
    "tiny": LanguageModel("", 3_426_560, 4, 4, 4, 64, 1024, 1024),
    "gpt2": LanguageModel("openai-community/gpt2", 124_439_808, 12, 12, 12, 64, 50_257, 1024),
    "opt-1.3b": LanguageModel("facebook/opt-1.3b", 1_315_758_080, 24, 32, 32, 64, 50_272, 2048),
}


def place(name: str, folder: Path) -> str:
    """Return the name or path that an engine loads: the model's name on the hub, or for the tiny model the folder of
    `make_tiny`."""
    return MODELS[name].hub or str(folder / name)


def make_tiny(folder: Path) -> None:
    """Write the tiny model and its tokenizer in the usual files: config.json, model.safetensors, tokenizer.json."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    size = MODELS["tiny"]
    words = ["<s>", "</s>", "<pad>"]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size.vocabulary,
        special_tokens=words,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:30]
    tokenizer.train([str(text) for text in texts], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=words[0],
        eos_token=words[1],
        pad_token=words[2],
        clean_up_tokenization_spaces=False,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.heads * size.head_dim,
        intermediate_size=688,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        max_position_embeddings=size.longest,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(shape).save_pretrained(folder)
