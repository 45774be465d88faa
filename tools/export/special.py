#!/usr/bin/env python3
"""Make the test programs of tests/models/ that change buffers, have two methods, or name inputs.

    python tools/export/special.py [NAME...] [--out tests/models]

buffers, buffers_dynamic: change buffers in place (Vulkan option ``alias_buffer_mutations``), the
second with a dynamic number of rows. The NAME.npz has the inputs step0_in0, ... and the outputs
step0_out0, ... of runs one after another.
twins: one delegate reads a buffer that another one changes, in runs as those of buffers.
recurrent: the same of two buffers of equal sizes, one of which is overwritten before it is read.
counted: a cache gets a row, then the data decide sizes, then a buffer changes, in runs as those of
buffers.
coder: two methods, ``encode`` and ``decode``, with two layers in common. Its
NAME.npz has the arrays encode_in0, encode_out0, decode_in0, ...
named: says how its inputs are called, and its outputs are a dictionary.

Needs the same as tools/export/models.py.
"""

from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import (
    arrays_of,
    lower,
    lower_methods,
    run_eager,
    run_in_turn,
    run_tool,
)
from torch.export import Dim


class Buffers(nn.Module):
    """Three buffers, each with a part in the next one's value."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.register_buffer("total", torch.zeros(1, 6))
        self.register_buffer("last", torch.randn(3, 5))
        self.register_buffer("middle", torch.randn(3, 5))

    def forward(self, x):
        self.total.add_(x)
        # Nothing but the line that changes a buffer may read its old value: the exporter makes the
        # operator of that line write in place, also where others that read come behind it.
        self.middle.copy_(self.middle * 0.5 + self.linear(self.total))
        self.last.copy_(self.last * 0.25 + self.middle)
        return torch.tanh(self.total), self.middle - 0.25, self.last + 1.0


class Average(nn.Module):
    """The sum of all rows seen so far, and each row with it; any number of rows up to 8."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.randn(1, 6))

    def forward(self, x):
        self.total.add_(x.sum(0, keepdim=True))
        return x * self.total


class Twins(nn.Module):
    """A table that is read in front of a function that Vulkan does not have, and changed behind."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 6)
        self.register_buffer("table", torch.randn(6, 8))

    def forward(self, x):
        y = torch.expm1(torch.tanh(self.linear(x) @ self.table))
        self.table.mul_(0.75)
        return y * 2, y.sum(1)


class Recurrent(nn.Module):
    """A layer that reads tokens one by one, as hybrid language models have it: the last columns and
    a sum of products are kept, and begin anew at position 0. The columns are overwritten before
    they are read in the last delegate, which the exporter therefore does not give them, although
    they have the sizes of the sum.
    """

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("columns", torch.zeros(1, 4, 4))
        self.register_buffer("sums", torch.zeros(1, 4, 4))

    def forward(self, x, position):
        keep = 1 - (position[0] == 0).to(torch.float32)
        self.columns[:1].mul_(keep)
        self.sums[:1].mul_(keep)
        key = self.linear(x)
        columns = torch.cat([self.columns[:1], key[:, :, None]], -1)
        self.columns[:1].copy_(columns[:, :, -4:])
        value = torch.expm1(columns.sum(-1))
        sums = self.sums[:1].to(torch.float32) * 0.5 + value[:, :, None] * key[:, None]
        self.sums[:1].copy_(sums)
        return (sums * key[:, None]).sum(-1)


class Coder(nn.Module):
    """There and back with two layers in common."""

    def __init__(self):
        super().__init__()
        self.words = nn.Parameter(torch.randn(40, 24))
        self.middle = nn.Linear(24, 24)
        self.first = nn.Linear(40, 16)
        self.last = nn.Linear(16, 24)

    def encode(self, x):
        hidden = torch.tanh(self.middle(x))
        return self.first(torch.relu(F.linear(hidden, self.words)))

    def decode(self, x):
        return F.linear(torch.relu(self.middle(self.last(x))), self.words)


class Method(nn.Module):
    """One method of a module as a module's forward."""

    def __init__(self, module, name):
        super().__init__()
        self.module = module
        self.method = name

    def forward(self, x):
        return getattr(self.module, self.method)(x)


class Counted(nn.Module):
    """A cache gets a row in the middle of a run, before it is known how many of its rows are
    chosen, and these are added to rows of a buffer behind that, outside of delegates."""

    def __init__(self):
        super().__init__()
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (declares the operator)

        self.register_buffer("cache", torch.zeros(1, 8, 2, 4))
        self.register_buffer("total", torch.zeros(8, 2, 4))

    def forward(self, x, position):
        place = position[0].item()
        torch._check_is_size(place)
        torch._check(place < 8)
        torch.ops.llama.update_cache(torch.tanh(x).view(1, 1, 2, 4), self.cache, place)
        rows = (self.cache * 2.0)[0]
        mask = rows.sum((1, 2)) > 0
        chosen = torch.sigmoid(rows[mask])
        self.total[mask] = self.total[mask] + chosen
        return chosen * 3.0, self.total * 2.0


# name: (module, inputs of the runs, dynamic shapes)
CHANGING = {
    "buffers": (Buffers, lambda: [(torch.randn(1, 6),) for _ in range(4)], None),
    "buffers_dynamic": (Average, lambda: [(torch.randn(rows, 6),) for rows in (8, 3, 1, 8, 5)],
                        ({0: Dim("rows", min=1, max=8)},)),
    "twins": (Twins, lambda: [(torch.randn(2, 8),) for _ in range(4)], None),
    "recurrent": (Recurrent, lambda: [(torch.randn(1, 4), torch.tensor([position]))
                                      for position in (1, 2, 3, 0, 1)], None),
    "counted": (Counted, lambda: [(torch.randn(1, 8), torch.tensor([position]))
                                  for position in (0, 1, 2, 3, 1)], None),
}


def make_changing(name):
    """The program's bytes and its arrays."""
    make_module, inputs_of_runs, dynamic_shapes = CHANGING[name]
    module = make_module().eval()
    runs = inputs_of_runs()
    with torch.no_grad():
        pte = lower(module, runs[0], dynamic_shapes, alias_buffer_mutations=name != "counted")
    return pte, run_in_turn(module, runs, "step")


def make_coder():
    """The program's bytes and its arrays."""
    module = Coder().eval()
    inputs = {"encode": (torch.randn(2, 24),), "decode": (torch.randn(2, 16),)}
    methods = {name: (Method(module, name), values) for name, values in inputs.items()}
    pte, arrays = lower_methods(methods), {}
    for name, (method, values) in methods.items():
        arrays |= arrays_of(values, run_eager(method, values), f"{name}_")
    return pte, arrays


class Named(nn.Module):
    """Inputs of equal sizes, which only names tell apart."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, rows, mask, shift):
        scores = self.linear(rows) * mask + shift
        return {"scores": scores, "sums": scores.sum(1, keepdim=True)}


def make_named():
    """The program's bytes and its arrays."""
    module, inputs = Named().eval(), (torch.randn(2, 4), torch.randn(2, 3), torch.randn(2, 3))
    with torch.no_grad():
        outputs = [output.numpy() for output in module(*inputs).values()]
    return lower(module, inputs, names=True), arrays_of(inputs, outputs)


PROGRAMS = {**{name: partial(make_changing, name) for name in CHANGING},
            "coder": make_coder, "named": make_named}

if __name__ == "__main__":
    run_tool("Make the special test programs.", PROGRAMS, lambda name: PROGRAMS[name](),
             "tests/models")
