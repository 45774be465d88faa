#!/usr/bin/env python3
"""Export random small language models, for tools/check/texts.py.

    python tools/export/random_texts.py FOLDER [--first 0] [--count 10]

Each number is a transformer of one to three layers with random weights and sizes: two of three are
ExecuTorch's own, with weights of floats or of 4 bits, with its operators for caches and attention;
one is written in plain PyTorch, with caches that are changed at the places of the tokens. FOLDER
gets a textNUMBER.pte for each, and a textNUMBER.npz with a text (`tokens`) and what eager PyTorch's
logits are behind each of its tokens (`ref`). A model that ExecuTorch does not export is a line on
the output.

Needs the same as tools/export/models.py.
"""

import copy
import random
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from exporting import lower, run_eager
from language import lower_language, transformer, with_operators
from quantizing import quantized
from random_programs import export_numbers
from torch import nn


class Block(nn.Module):
    """Attention over caches of the keys and values of all places, and an MLP.

    Args:
        kept: heads of keys and values.
        size: elements of a head.
        norm: the class of the norms.
    """

    def __init__(self, chance, width, heads, kept, size, places, norm):
        super().__init__()
        hidden = chance.choice((32, 64, 96))
        self.heads, self.size = heads, size
        self.q, self.out = (nn.Linear(width, heads * size, bias=chance.random() < 0.3),
                            nn.Linear(heads * size, width, bias=False))
        self.k, self.v = (nn.Linear(width, kept * size, bias=False) for _ in range(2))
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        self.gate, self.up = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down, self.is_gated = nn.Linear(hidden, width), chance.random() < 0.6
        # Whether heads come before places in the caches; index_copy_ or an assignment changes them
        self.heads_first, self.copies = chance.random() < 0.6, chance.random() < 0.5
        self.is_one_operator = chance.random() < 0.5  # attention
        sizes = (1, kept, places, size) if self.heads_first else (1, places, kept, size)
        self.register_buffer("keys", torch.zeros(sizes))
        self.register_buffer("values", torch.zeros(sizes))

    def rotated(self, x, places):
        half = self.size // 2
        angles = places[:, None].float() * (100.0 ** (-torch.arange(half) / half))
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * angles.cos() - second * angles.sin(),
                          second * angles.cos() + first * angles.sin()], -1)

    def cached(self, cache, new, places):
        """All places of a cache with the new ones, for each head of the queries."""
        new = new if self.heads_first else new.transpose(1, 2)
        if self.copies:
            cache.index_copy_(2 if self.heads_first else 1, places, new)
        elif self.heads_first:
            cache[:, :, places] = new
        else:
            cache[:, places] = new
        cache = cache if self.heads_first else cache.transpose(1, 2)
        return cache.repeat_interleave(self.heads // cache.shape[1], 1)

    def forward(self, x, places, mask):
        y = self.norms[0](x)
        q, k, v = (layer(y).unflatten(-1, (-1, self.size)).transpose(1, 2)
                   for layer in (self.q, self.k, self.v))
        q = self.rotated(q, places)
        k = self.cached(self.keys, self.rotated(k, places), places)
        v = self.cached(self.values, v, places)
        if self.is_one_operator:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            mixed = torch.softmax(q @ k.transpose(-1, -2) / self.size**0.5 + mask, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        y = self.norms[1](x)
        hidden = F.silu(self.gate(y)) * self.up(y) if self.is_gated else F.gelu(self.gate(y))
        return x + self.down(hidden)


class Plain(nn.Module):
    """Logits of tokens at places, of the last token or of all of them."""

    def __init__(self, chance, words, places):
        super().__init__()
        heads, size = chance.choice((1, 2, 4)), chance.choice((4, 6, 8, 16))
        kept = chance.choice([n for n in (1, 2, 4) if heads % n == 0])
        width, norm = chance.choice((32, 64)), chance.choice((nn.LayerNorm, nn.RMSNorm))
        self.places, self.embedding = places, nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(chance, width, heads, kept, size, places, norm)
                                    for _ in range(chance.randrange(1, 4)))
        self.norm, self.head = norm(width), nn.Linear(width, words, bias=False)
        self.of_last = chance.random() < 0.5
        self.unseen = chance.choice((-1e9, -torch.inf, -30000.0))

    def forward(self, tokens, places):
        x = self.embedding(tokens)
        seen = torch.arange(self.places)[None] <= places[:, None]
        mask = torch.where(seen, 0.0, self.unseen)
        for block in self.blocks:
            x = block(x, places, mask)
        x = self.norm(x)
        return self.head(x[:, -1] if self.of_last else x)


def plain(chance, places, is_dynamic):
    """A model, a function that exports it, and the number of its words."""
    words, count = chance.choice((21, 40, 64, 97)), 4 if is_dynamic else 1
    dim = torch.export.Dim("count", min=1, max=places - 1)
    inputs = (torch.zeros(1, count, dtype=torch.long), torch.arange(count))
    shapes = ({1: dim}, {0: dim}) if is_dynamic else None
    return Plain(chance, words, places).eval(), lambda m: lower(m, inputs, shapes), words


def llama(chance, places, is_dynamic):
    """The same of ExecuTorch's transformer."""
    weights = chance.choice(("none", "none", "4w", "8da4w"))
    sizes = (2, 16), (4, 8), (4, 16), (8, 12), (8, 8), (2, 48)
    if weights == "none":
        sizes = (2, 4), (2, 20), (3, 6), (3, 8), (4, 10), (6, 4), (6, 12)
    heads, size = chance.choice(sizes)
    # ExecuTorch exports layers of 4 bits whose columns are whole texels.
    words = chance.randrange(17, 140) // 4 * 4 + (weights == "none")
    config = {"dim": heads * size, "n_layers": chance.randrange(1, 4), "n_heads": heads,
              "n_kv_heads": chance.choice([n for n in range(1, heads + 1) if heads % n == 0]),
              "vocab_size": words, "hidden_dim": chance.choice((64, 96, 160)),
              "attention_qkv_bias": chance.random() < 0.3, "use_hf_rope": chance.random() < 0.3,
              "use_qk_norm": chance.random() < 0.25, "qk_norm_before_rope": chance.random() < 0.7}
    options = SimpleNamespace(quantize=weights, group=32,
                              embedding=weights != "none" and chance.random() < 0.5)
    constants = {"get_max_seq_len": places, "get_max_context_len": places, "use_kv_cache": True}
    model = with_operators(quantized(transformer(config, places, is_dynamic), options))
    return model, lambda m: lower_language(m, places, is_dynamic, constants), words


def make(number, folder):
    """Writes the program of a number, a text, and the logits behind each of its tokens."""
    chance = random.Random(number)
    torch.manual_seed(number)
    places, is_dynamic = chance.randrange(10, 45), chance.random() < 0.8
    model, export, words = (plain if number % 3 == 2 else llama)(chance, places, is_dynamic)
    # Runs change the caches, which are to be zero in the program.
    eager = copy.deepcopy(model)
    with torch.no_grad():
        (folder / f"text{number}.pte").write_bytes(export(model))
    tokens = np.array([chance.randrange(words) for _ in range(places)])
    logits = [run_eager(eager, (torch.tensor([[token]]), torch.tensor([place])))[0].reshape(-1)
              for place, token in enumerate(tokens)]
    np.savez_compressed(folder / f"text{number}.npz", tokens=tokens, ref=np.array(logits))


if __name__ == "__main__":
    export_numbers(__doc__.splitlines()[0], make, 10)
