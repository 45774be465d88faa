#!/usr/bin/env python3
"""Make the test programs of tests/models/ that are not one method without a memory.

    python tools/export/special.py [NAME...] [--out tests/models]

buffers, buffers_dynamic: change buffers in place (Vulkan option ``alias_buffer_mutations``), the
second with a dynamic number of rows. The NAME.npz has the inputs step0_in0, ... and the outputs
step0_out0, ... of runs one after another.
coder: two methods, ``encode`` and ``decode``, with two layers in common. Its
NAME.npz has the arrays encode_in0, encode_out0, decode_in0, ...

Needs the same as tools/export/models.py.
"""

import torch
import torch.nn as nn
from exporting import arrays_of, lower, lower_methods, run_eager, run_tool, save
from models import MAX_BYTES


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
        return self.first(torch.relu(nn.functional.linear(hidden, self.words)))

    def decode(self, x):
        return nn.functional.linear(torch.relu(self.middle(self.last(x))), self.words)


class Method(nn.Module):
    """One method of a module as a module's forward."""

    def __init__(self, module, name):
        super().__init__()
        self.module = module
        self.method = name

    def forward(self, x):
        return getattr(self.module, self.method)(x)


def run_in_turn(module, runs):
    """The arrays of runs one after another."""
    arrays = {}
    for step, inputs in enumerate(runs):
        outputs = [output.copy() for output in run_eager(module, inputs)]
        arrays |= arrays_of(inputs, outputs, f"step{step}_")
    return arrays


def make_buffers():
    """The program's bytes and its arrays."""
    module = Buffers().eval()
    runs = [(torch.randn(1, 6),) for _ in range(4)]
    return lower(module, runs[0], alias_buffer_mutations=True), run_in_turn(module, runs)


def make_buffers_dynamic():
    """The program's bytes and its arrays."""
    module = Average().eval()
    runs = [(torch.randn(rows, 6),) for rows in (8, 3, 1, 8, 5)]
    rows = torch.export.Dim("rows", min=1, max=8)
    pte = lower(module, runs[0], dynamic_shapes=({0: rows},), alias_buffer_mutations=True)
    return pte, run_in_turn(module, runs)


def make_coder():
    """The program's bytes and its arrays."""
    module = Coder().eval()
    inputs = {"encode": (torch.randn(2, 24),), "decode": (torch.randn(2, 16),)}
    methods = {name: (Method(module, name), values) for name, values in inputs.items()}
    pte, arrays = lower_methods(methods), {}
    for name, (method, values) in methods.items():
        arrays |= arrays_of(values, run_eager(method, values), f"{name}_")
    return pte, arrays


PROGRAMS = {"buffers": make_buffers, "buffers_dynamic": make_buffers_dynamic,
            "coder": make_coder}

if __name__ == "__main__":
    run_tool("Make the special test programs.", PROGRAMS,
             lambda path: save(path, *PROGRAMS[path.stem](), MAX_BYTES), "tests/models")
