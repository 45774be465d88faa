#!/usr/bin/env python3
"""Make the test programs of tests/models/ whose kernels outside of delegates change buffers.

    python tools/export/kept.py [NAME...] [--out tests/models]

The NAME.npz has the inputs and outputs step0_in0, .. step0_out0, .. of runs one after another.

kept: rows of a cache replaced at places that an input names, as `transformers` exports its static
caches, between delegates.
kept_attention: ExecuTorch's kernels for caches and attention, and nothing in delegates: the views
between them are left out of the file.

Needs the same as tools/export/models.py.
"""

import torch
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
    else:
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (declares the operators)

        runs = [(torch.randn(1, 3, 16), torch.tensor([start])) for start in (0, 3, 6)]
        module, export = Attention().eval(), lower_portable
    with torch.no_grad():
        return export(module, runs[0]), run_in_turn(module, runs, "step")


if __name__ == "__main__":
    run_tool(__doc__.splitlines()[0], ("kept", "kept_attention"), make, "tests/models")
