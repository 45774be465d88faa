#!/usr/bin/env python3
"""Make the test programs of tests/models/ whose kernels outside of delegates change buffers.

    python tools/export/kept.py [NAME...] [--out tests/models]

The NAME.npz has the inputs and outputs step0_in0, .. step0_out0, .. of runs one after another.

kept: rows of a cache replaced at places that an input names, as `transformers` exports its static
caches, between delegates.
kept_attention: ExecuTorch's kernels for caches and attention, and nothing in delegates: the views
between them are left out of the file.
kept_batch: two sequences, each with positions of its own and padding on the left, in caches and
attention as the exporter takes them apart.
kept_ring: the same with ExecuTorch's kernels, in caches that are rings; a mask says what is seen.

Needs the same as tools/export/models.py.
"""

import torch
import torch.nn.functional as F
from exporting import lower, run_in_turn, run_tool
from torch import nn

ROWS, HEADS, SIZE = 12, 2, 4


class Kept(nn.Module):
    """Keys of tokens at places of a cache."""

    def __init__(self):
        super().__init__()
        self.keys = nn.Linear(16, HEADS * SIZE)
        self.register_buffer("cache", torch.zeros(1, HEADS, ROWS, SIZE))

    def forward(self, x, places):
        keys = self.keys(x).view(1, -1, HEADS, SIZE).transpose(1, 2)
        self.cache.index_copy_(2, places, keys)
        return (self.cache * 2).sum(-1)


class Attention(nn.Module):
    """Attention over a cache from a position on: by one kernel, or by its halves."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(16, n * SIZE) for n in (2 * HEADS, HEADS, HEADS))
        for name in ("keys", "values", "more_keys", "more_values"):
            self.register_buffer(name, torch.zeros(1, ROWS, HEADS, SIZE))

    def forward(self, x, position):
        start = position[0].item()
        torch._check(start >= 0)
        torch._check(start < ROWS)
        query, key, value = (part(x).view(1, x.shape[1], -1, SIZE) for part in self.parts)
        torch.ops.llama.update_cache(key, self.keys, start)
        torch.ops.llama.update_cache(value, self.values, start)
        halves = torch.ops.llama.custom_sdpa(query, self.keys, self.values, start, None, 0, True)
        whole = torch.ops.llama.sdpa_with_kv_cache(
            query * 2, key, value, self.more_keys, self.more_values, start, x.shape[1], None, 0,
            True)
        return halves.flatten(2), whole.flatten(2)


class Batch(nn.Module):
    """Attention of two sequences over caches, from places that differ between them."""

    def __init__(self, ring):
        super().__init__()
        self.ring = ring
        self.parts = nn.ModuleList(nn.Linear(16, n * SIZE) for n in (2 * HEADS, HEADS, HEADS))
        sizes = (2, ROWS, HEADS, SIZE) if ring else (2, HEADS, ROWS, SIZE)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(sizes))

    def forward(self, x, places, mask):
        query, key, value = (part(x).view(2, x.shape[1], -1, SIZE) for part in self.parts)
        if self.ring:
            torch.ops.llama.update_cache_with_indices(key, self.keys, 0, places)
            torch.ops.llama.update_cache_with_indices(value, self.values, 0, places)
            result = torch.ops.llama.custom_sdpa(query, self.keys, self.values, 0, mask)
            return result.flatten(2)
        sequence = torch.arange(2)[:, None]
        self.keys[sequence, :, places] = key
        self.values[sequence, :, places] = value
        result = F.scaled_dot_product_attention(query.transpose(1, 2), self.keys, self.values,
                                                attn_mask=mask, enable_gqa=True)
        return result.transpose(1, 2).flatten(2)


def batch_runs(ring):
    """Inputs of three runs of three tokens a sequence. The rings go round in the third run."""
    padding, runs = torch.tensor([0, 2]), []
    for start in (0, 3, 6):
        token = torch.arange(start, start + 3)
        # Of kept_batch a sequence begins at its own row, and its padding is seen by nobody.
        places = (token + 4) % ROWS + torch.zeros(2, 1, dtype=torch.int64)
        if not ring:
            places = token + torch.tensor([[0], [1]])
        row, newest = torch.arange(ROWS), places[:, :, None]
        if ring:
            age = (newest - row) % ROWS
            seen = (age <= token[None, :, None]) & (age < 5)
            mask = torch.where(seen[0], 0.0, -torch.inf)
        else:
            seen = (row <= newest) & (row >= padding[:, None, None])
            mask = torch.where(seen[:, None], 0.0, torch.finfo(torch.float32).min)
        runs.append((torch.randn(2, 3, 16), places, mask))
    return runs


def lower_portable(module, inputs):
    """Export a module for portable kernels alone and return the bytes of the .pte file."""
    from executorch.exir import EdgeCompileConfig, to_edge

    program = torch.export.export(module, inputs, strict=True)
    edge = to_edge(program, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    return edge.to_executorch().buffer


def make(name):
    """The program's bytes and its arrays."""
    if name == "kept":
        runs = [(torch.randn(1, 3, 16), torch.tensor(places))
                for places in ((0, 1, 2), (3, 4, 5), (11, 0, 7))]
        module, export = Kept().eval(), lower
    elif name == "kept_batch":
        module, export, runs = Batch(ring=False).eval(), lower, batch_runs(ring=False)
    else:
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (declares the operators)

        runs = [(torch.randn(1, 3, 16), torch.tensor([start])) for start in (0, 3, 6)]
        module, export = Attention().eval(), lower_portable
        if name == "kept_ring":
            module, runs = Batch(ring=True).eval(), batch_runs(ring=True)
    with torch.no_grad():
        return export(module, runs[0]), run_in_turn(module, runs, "step")


if __name__ == "__main__":
    run_tool(__doc__.splitlines()[0], ("kept", "kept_attention", "kept_batch", "kept_ring"), make,
             "tests/models")
