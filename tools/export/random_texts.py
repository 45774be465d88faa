#!/usr/bin/env python3
"""Make random small language models, for tools/check/texts.py.

    python tools/export/random_texts.py FOLDER [--first 0] [--count 10]

Each number is a transformer of one to three layers with random weights and sizes: two of three are
ExecuTorch's own, with weights of floats or of 4 bits, with its operators for caches and attention;
one is written in plain PyTorch, with caches that are changed at the places of the tokens. FOLDER
gets a NAME.pte for each, and a NAME.npz with a text (`tokens`) and what eager PyTorch's logits are
behind each of its tokens (`ref`). A model that ExecuTorch does not export is a line on the output.

Needs the same as tools/export/models.py.
"""

import argparse
import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from checkpoint import quantized
from exporting import lower, run_eager
from language import lower_language, transformer, with_operators
from torch import nn


class Block(nn.Module):
    """Attention over caches of the keys and values of all places, and an MLP."""

    def __init__(self, chance, width, heads, shared, size, places, norm):
        super().__init__()
        self.size, self.heads, self.shared = size, heads, shared
        self.queries = nn.Linear(width, heads * size, bias=chance.random() < 0.3)
        self.keys, self.values = (nn.Linear(width, shared * size, bias=False) for _ in range(2))
        self.out = nn.Linear(heads * size, width, bias=False)
        self.norms = nn.ModuleList(norm(width) for _ in range(2))
        hidden = chance.choice((32, 64, 96))
        self.gate, self.up = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down, self.is_gated = nn.Linear(hidden, width), chance.random() < 0.6
        # Whether heads come before places in the caches, how these are changed, how attention is
        # written
        self.heads_first = chance.random() < 0.6
        self.copies, self.is_whole = chance.random() < 0.5, chance.random() < 0.5
        sizes = (1, shared, places, size) if self.heads_first else (1, places, shared, size)
        for name in ("old_keys", "old_values"):
            self.register_buffer(name, torch.zeros(sizes))

    def turned(self, x, places):
        half = self.size // 2
        angles = places[:, None].float() * (100.0 ** (-torch.arange(half) / half))
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * angles.cos() - second * angles.sin(),
                          second * angles.cos() + first * angles.sin()], -1)

    def kept(self, cache, new, places):
        dim = 2 if self.heads_first else 1
        new = new if self.heads_first else new.transpose(1, 2)
        if self.copies:
            cache.index_copy_(dim, places, new)
        elif self.heads_first:
            cache[:, :, places] = new
        else:
            cache[:, places] = new
        found = cache if self.heads_first else cache.transpose(1, 2)
        return found.repeat_interleave(self.heads // self.shared, 1)

    def forward(self, x, places, mask):
        y, count = self.norms[0](x), x.shape[1]
        q, k, v = (layer(y).view(1, count, -1, self.size).transpose(1, 2)
                   for layer in (self.queries, self.keys, self.values))
        q = self.turned(q, places)
        k = self.kept(self.old_keys, self.turned(k, places), places)
        v = self.kept(self.old_values, v, places)
        if self.is_whole:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            mixed = torch.softmax(q @ k.transpose(-1, -2) / self.size**0.5 + mask, -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(1, count, -1))
        y = self.norms[1](x)
        hidden = F.silu(self.gate(y)) * self.up(y) if self.is_gated else F.gelu(self.gate(y))
        return x + self.down(hidden)


class Plain(nn.Module):
    """Logits of tokens at places, of the last token or of all of them."""

    def __init__(self, chance, places):
        super().__init__()
        heads, size = chance.choice((1, 2, 4)), chance.choice((4, 6, 8, 16))
        shared = chance.choice([n for n in (1, 2, 4) if heads % n == 0])
        width, norm = chance.choice((32, 64)), chance.choice((nn.LayerNorm, nn.RMSNorm))
        self.places, self.words = places, chance.choice((21, 40, 64, 97))
        self.embedding = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList(Block(chance, width, heads, shared, size, places, norm)
                                    for _ in range(chance.randrange(1, 4)))
        self.norm, self.head = norm(width), nn.Linear(width, self.words, bias=False)
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


def plain(number, chance):
    """A function that makes the model, one that exports it, its words, and places of a text."""
    places, is_dynamic = chance.randrange(10, 40), chance.random() < 0.8
    seed = chance.random()

    def make():
        torch.manual_seed(number)
        return Plain(random.Random(seed), places).eval()

    def export(model):
        count = 4 if is_dynamic else 1
        dim = torch.export.Dim("count", min=1, max=places - 1)
        with torch.no_grad():
            return lower(model, (torch.zeros(1, count, dtype=torch.long), torch.arange(count)),
                         ({1: dim}, {0: dim}) if is_dynamic else None)

    return make, export, make().words, places


def llama(number, chance):
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
              "attention_qkv_bias": chance.random() < 0.3, "use_hf_rope": chance.random() < 0.3}
    if chance.random() < 0.25:
        config |= {"use_qk_norm": True, "qk_norm_before_rope": chance.random() < 0.7}
    places, is_dynamic = chance.randrange(9, 45), chance.random() < 0.8
    options = SimpleNamespace(quantize=weights, group=32,
                              embedding=weights != "none" and chance.random() < 0.5)

    def make():
        torch.manual_seed(number)
        return with_operators(quantized(transformer(config, places, is_dynamic), options))

    constants = {"get_max_seq_len": places, "get_max_context_len": places, "use_kv_cache": True}
    return make, lambda model: lower_language(model, places, is_dynamic, constants), words, places


def make(number):
    """The program of a number, a text, and the logits behind each of its tokens."""
    chance = random.Random(number)
    build, export, words, places = (plain if number % 3 == 2 else llama)(number, chance)
    tokens = np.array([chance.randrange(words) for _ in range(places)])
    model = build()
    logits = [run_eager(model, (torch.tensor([[token]]), torch.tensor([place])))[0]
              for place, token in enumerate(tokens)]
    # Runs change the caches, which are to be zero in the program.
    return export(build()), tokens, np.array([found.reshape(-1) for found in logits])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(options.first, options.first + options.count):
        try:
            pte, tokens, logits = make(number)
        except Exception as error:
            print(f"{number}: {type(error).__name__}: {error}".splitlines()[0], flush=True)
            continue
        path = options.folder / f"text{number}.pte"
        path.write_bytes(pte)
        np.savez_compressed(path.with_suffix(".npz"), tokens=tokens, ref=logits)
        print(f"{path.name}: {len(pte)} bytes", flush=True)


if __name__ == "__main__":
    main()
