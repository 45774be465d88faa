#!/usr/bin/env python3
"""Make the test programs of tests/models/ that are not one method, without a memory, of one size.

    python tools/export/special.py [NAME...] [--out tests/models]

NAME-dyn: dynamic shapes, without delegates in numbers-dyn. The NAME.npz has the calls 0, 1, ... of
other sizes: the inputs call0_in0, call0_in1, ... and the outputs call0_out0, ... that eager PyTorch
computes in float32.
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
    lower_portable,
    run_eager,
    run_in_turn,
    run_tool,
)
from torch.export import Dim


class ConvDyn(nn.Module):
    """Convolutions with stride, pooling and shuffling on pictures of any even sizes.

    What is halved has odd sizes too. The exporter leaves the mean to a CPU kernel; the second
    output, and what makes it from the mean, has fixed sizes.
    """

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 12, 3, stride=2, padding=1)
        self.depth = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.again = nn.Conv2d(12, 12, 3, stride=2, padding=1)
        self.back = nn.Conv2d(12, 32, 1)
        self.last = nn.Conv2d(16, 4, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        y = F.relu(self.first(x))
        z = F.relu(self.down(y))
        z = F.hardswish(self.depth(z))
        up = self.shuffle(self.back(z))
        picture = self.shuffle(self.last(torch.cat([y, up], 1)))
        return picture, self.head(F.max_pool2d(self.again(z), 2).mean((2, 3)))


class AttentionDyn(nn.Module):
    """A layer of a transformer over sequences of any length, with a table of positions.

    Symbolic sizes stand in views, in the slice of the table, and in that of the token in front.
    """

    def __init__(self, width=24, heads=3, most=40):
        super().__init__()
        self.heads = heads
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, most, width))
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        x = torch.cat([self.token, x], 1)
        length, width = x.shape[1:]
        x = x + self.positions[:, :length]
        q, k, v = (self.qkv(self.norm(x)).view(length, 3, self.heads, width // self.heads)
                   .permute(1, 2, 0, 3).unbind(0))
        weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)) * 0.35, -1)
        mixed = torch.bmm(weights, v).permute(1, 0, 2).reshape(1, length, width)
        x = x + self.out(mixed)
        x = x + self.down(F.gelu(self.up(x)))
        return x[:, 1:]


class PairDyn(nn.Module):
    """Two inputs of one dynamic size that is a multiple of 2; rows are joined two by two."""

    def __init__(self):
        super().__init__()
        self.left = nn.Linear(6, 8)
        self.both = nn.Linear(28, 7)
        self.scale = nn.Linear(4, 8)

    def forward(self, x, y, z):
        a = torch.cat([F.relu(self.left(x)), y], 1)
        a = a.view(a.shape[0] // 2, 28)
        # Of fixed sizes: nothing of this depends on those of the others.
        gate = torch.sigmoid(self.scale(z))
        return self.both(a) * 2.0, F.relu(self.left(x)) * gate


class ShrinkingDyn(nn.Module):
    """Sizes that become smaller as the input grows.

    A range that begins at the input's size, the rest of a table, its part by a division, pooling of
    the rest, a padding that fills up, and the input with the rest behind it, which is always as
    long. A CPU kernel between two delegates sums up the rest.
    """

    def __init__(self, rows=32, width=6):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))
        self.linear = nn.Linear(width, 5)

    def forward(self, x):
        size = x.shape[0]
        rest = self.table[size:]
        numbers = torch.arange(size, 32, 2, dtype=torch.float32)
        pooled = F.max_pool2d(rest[None, None], 2)
        filled = F.pad(x, (0, 0, 0, 28 - size)) + torch.cat([x, self.table[size:28]])
        return (numbers * 0.5, F.gelu(self.linear(rest)), self.table[:32 // size] * 2.0,
                pooled, filled, torch.cumsum(rest * 3.0, 0) * 0.5)


class BetweenDyn(nn.Module):
    """Two inputs of sizes that have nothing to do with each other; one takes away from a table."""

    def __init__(self, rows=24, width=6):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))

    def forward(self, x, y):
        rest = self.table[y.shape[0]:]
        return (torch.sigmoid(x @ rest.t()), torch.cat([x, rest]) * 2.0,
                self.table[x.shape[0]:] @ y.t())


class MaskedDyn(nn.Module):
    """Attention of several heads over keys and values of one, with a mask of rows by rows: one size
    is in three places of the inputs."""

    def __init__(self, width=24, heads=3):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width // heads)
        self.value = nn.Linear(width, width // heads)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        sizes = (batch, self.heads, length, width // self.heads)
        q = self.query(x).view(batch, length, self.heads, sizes[3]).transpose(1, 2)
        k, v = (layer(x).view(batch, length, 1, sizes[3]).transpose(1, 2).expand(sizes)
                for layer in (self.key, self.value))
        weights = torch.softmax(q @ k.transpose(2, 3) * 0.35 + mask, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class NumbersDyn(nn.Module):
    """Sizes that decide more than sizes, in kernels outside of delegates: rows are padded to a
    multiple of 4, and numbers that are no integers scale results."""

    def __init__(self, width=6):
        super().__init__()
        self.layer = nn.Linear(width, 5)

    def forward(self, x):
        length, width = x.shape[1:]
        padded = self.layer(F.pad(x, (0, 0, 0, -length % 4)))
        scaled = x.sum(1) / length + x.numel() * 0.01
        return padded, scaled * (length * 0.25), x.view(length * width).tanh()


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


def conv_inputs(height, width):
    return (torch.randn(1, 3, height, width),)


def pair_inputs(rows):
    return torch.randn(rows, 6), torch.randn(rows, 6), torch.randn(1, 4)


def masked_inputs(length):
    return torch.randn(1, length, 24), torch.randn(1, 1, length, length)


def between_inputs(rows, columns):
    return torch.randn(rows, 6), torch.randn(columns, 6)


EVEN = 2 * Dim("pairs", min=2, max=16)
LENGTH = Dim("length", min=2, max=30)
# name: (module, inputs for sizes, sizes to export with, dynamic shapes, sizes of the calls)
DYNAMIC = {
    "conv-dyn": (ConvDyn, conv_inputs, (30, 40),
                 ({2: 2 * Dim("rows", min=8, max=15), 3: 2 * Dim("columns", min=8, max=20)},),
                 [(30, 40), (16, 16), (18, 22), (28, 38), (26, 18), (16, 40)]),
    "attention-dyn": (AttentionDyn, lambda length: (torch.randn(1, length, 24),), (32,),
                      ({1: Dim("length", min=2, max=32)},), [(32,), (3,), (17,), (31,), (2,)]),
    "masked-dyn": (MaskedDyn, masked_inputs, (30,), ({1: LENGTH}, {2: LENGTH, 3: LENGTH}),
                   [(30,), (2,), (13,), (29,), (5,)]),
    "numbers-dyn": (NumbersDyn, lambda length: (torch.randn(1, length, 6),), (20,),
                    ({1: Dim("length", min=2, max=20)},), [(20,), (3,), (16,), (2,), (19,)]),
    "pair-dyn": (PairDyn, pair_inputs, (32,), ({0: EVEN}, {0: EVEN}, None),
                 [(32,), (4,), (18,), (30,), (6,)]),
    "shrinking-dyn": (ShrinkingDyn, lambda size: (torch.randn(size, 6),), (12,),
                      ({0: Dim("size", min=2, max=16)},),
                      [(size,) for size in (16, *range(2, 16, 2), 9)]),
    "between-dyn": (BetweenDyn, between_inputs, (9, 11),
                    ({0: Dim("rows", min=2, max=9)}, {0: Dim("columns", min=2, max=11)}),
                    [(9, 11), (2, 2), (2, 11), (9, 2), (5, 6), (8, 3), (7, 10)]),
}


def make_dynamic(name):
    """The program's bytes and its arrays."""
    make_module, inputs_of, example, dynamic_shapes, calls = DYNAMIC[name]
    module = make_module().eval()
    make_program = lower_portable if name == "numbers-dyn" else lower
    pte = make_program(module, inputs_of(*example), dynamic_shapes)
    return pte, run_in_turn(module, (inputs_of(*sizes) for sizes in calls), "call")


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


PROGRAMS = {**{name: partial(make_dynamic, name) for name in DYNAMIC},
            **{name: partial(make_changing, name) for name in CHANGING},
            "coder": make_coder, "named": make_named}

if __name__ == "__main__":
    run_tool("Make the special test programs.", PROGRAMS, lambda name: PROGRAMS[name](),
             "tests/models")
