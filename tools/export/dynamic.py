#!/usr/bin/env python3
"""Make the test programs of tests/models/ with dynamic shapes.

    python tools/export/dynamic.py [NAME...] [--out tests/models]

The NAME.npz has the calls 0, 1, ... of other sizes: the inputs call0_in0, call0_in1, ... and the
outputs call0_out0, ... that eager PyTorch computes in float32. numbers-dyn has no delegates.

Needs the same as tools/export/models.py.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import lower, lower_portable, run_in_turn, run_tool
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


class BoundsDyn(nn.Module):
    """Rows taken in pairs and one by one again. The exporter knows that they are as many, and the
    file says as much of the delegates' tensors; of the program's it says up to six times the rows.
    """

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x):
        rows = F.relu(x).unflatten(0, (-1, 2)).flatten(0, 1)
        return torch.expm1(self.layer(rows)) * 2.0, rows + x


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
PROGRAMS = {
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
    "bounds-dyn": (BoundsDyn, lambda rows: (torch.randn(rows, 6),), (12,),
                   ({0: Dim.AUTO(min=2, max=12)},), [(rows,) for rows in (12, 2, 8, 6)]),
}


def make(name):
    """The program's bytes and its arrays."""
    make_module, inputs_of, example, dynamic_shapes, calls = PROGRAMS[name]
    module = make_module().eval()
    make_program = lower_portable if name == "numbers-dyn" else lower
    pte = make_program(module, inputs_of(*example), dynamic_shapes)
    return pte, run_in_turn(module, (inputs_of(*sizes) for sizes in calls), "call")


if __name__ == "__main__":
    run_tool("Make the test programs with dynamic shapes.", PROGRAMS, make, "tests/models")
