#!/usr/bin/env python3
"""Make the programs of tests/models/cases/: what other runtimes of such programs get wrong.

    python tools/export/cases.py [NAME...] [--out tests/models/cases] [--list]

Each program NAME.pte gets a NAME.npz beside it with the inputs in0, in1, ... and the outputs out0,
out1, ... of eager PyTorch in float32.  Weights and inputs are random with a fixed seed.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import Module, arrays_of, export, lower, run_eager, run_tool


class Attention(nn.Module):
    """Multi-head attention as torch's own layer does it."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class GptBlock(nn.Module):
    """One block of a GPT: causal attention, layer norms and an MLP with GELU."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LayerNorm(24), nn.LayerNorm(24)
        self.qkv, self.project = nn.Linear(24, 72), nn.Linear(24, 24)
        self.mlp = nn.Sequential(nn.Linear(24, 50), nn.GELU(), nn.Linear(50, 24))

    def forward(self, x):
        q, k, v = (t.view(1, -1, 3, 8).transpose(1, 2) for t in
                   self.qkv(self.first(x)).split(24, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(1, -1, 24))
        return x + self.mlp(self.second(x))


def roll(x, shift):
    """The picture [N, H, W, C] moved up and left by ``shift``, what goes out coming in again."""
    x = torch.cat((x[:, shift:], x[:, :shift]), 1)
    return torch.cat((x[:, :, shift:], x[:, :, :shift]), 2)


class SwinBlock(nn.Module):
    """Attention in shifted windows: rolled pictures, a bias by relative position, a mask."""

    def __init__(self, side=8, window=4, channels=12, heads=3):
        super().__init__()
        self.side, self.window, self.heads = side, window, heads
        self.norm = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.project = nn.Linear(channels, channels)
        self.bias = nn.Parameter(torch.randn(heads, window**2, window**2))
        area = torch.zeros(side, side)
        parts = (slice(0, -window), slice(-window, -window // 2), slice(-window // 2, None))
        for number, (rows, columns) in enumerate((a, b) for a in parts for b in parts):
            area[rows, columns] = number
        area = self.windows(area[None, :, :, None]).squeeze(-1)
        mask = (area[:, None] != area[:, :, None]).float() * -100.0
        self.register_buffer("mask", mask[:, None])

    def windows(self, x):
        batch, _, _, channels = x.shape
        count, w = self.side // self.window, self.window
        return (x.view(batch, count, w, count, w, channels).permute(0, 1, 3, 2, 4, 5)
                .reshape(-1, w * w, channels))

    def forward(self, x):
        side, w, channels = self.side, self.window, x.shape[-1]
        y = roll(self.norm(x), w // 2)
        q, k, v = self.qkv(self.windows(y)).view(-1, w * w, 3, self.heads,
                                                 channels // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (channels // self.heads) ** -0.5
        y = torch.softmax(scores + self.bias + self.mask, -1) @ v
        y = self.project(y.transpose(1, 2).reshape(-1, w * w, channels))
        y = y.view(-1, side // w, side // w, w, w, channels).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(-1, side, side, channels)
        return x + roll(y, side - w // 2)


class Constants(nn.Module):
    """Constants leave the delegate as outputs, as they are and in another shape."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(3, 5))

    def forward(self, x):
        return x + self.table, self.table.clone(), self.table.reshape(5, 3)


class Accumulator(nn.Module):
    """A buffer that every call changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 6))

    def forward(self, x):
        self.total.add_(x)
        return self.total * 2.0


def masked(module, q, k, v, mask):
    """Attention whose mask is the least finite number: added, put in the place of scores, as bounds
    of scores that are infinite, and torch's own with a mask of bools."""
    limits = torch.finfo(q.dtype)
    scores, seen = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, mask > 0
    infinite = scores.masked_fill(~seen, -torch.inf)
    return (torch.softmax(scores + (1.0 - mask) * limits.min, -1) @ v,
            torch.softmax(scores.masked_fill(~seen, limits.min), -1) @ v,
            torch.softmax(infinite.clamp(limits.min, limits.max), -1) @ v,
            F.scaled_dot_product_attention(q, k, v, attn_mask=seen))


def with_statistics(norm):
    """The batch norm with moments that are not the initial zeros and ones."""
    with torch.no_grad():
        norm.running_mean.normal_(0.0, 0.5)
        norm.running_var.uniform_(0.5, 1.5)
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_(0.0, 0.5)
    return norm


def convolutions():
    """Depthwise 7x7, groups whose channels do not fill texels, and transposed ones of these."""
    return Module(
        lambda m, x: (m.depthwise(x), m.grouped(x), m.point(x), m.transposed(x), m.spread(x)),
        depthwise=nn.Conv2d(6, 6, 7, padding=3, groups=6),
        grouped=nn.Conv2d(6, 8, 3, groups=2),
        point=nn.Conv2d(6, 9, 1, groups=3),
        transposed=nn.ConvTranspose2d(6, 4, 4, stride=2, padding=1, groups=2),
        spread=nn.ConvTranspose2d(6, 6, 3, stride=2, groups=6, output_padding=1))


def promoted(m, x, y, z):
    """Operators on tensors of several dtypes, which the exporter leaves to the runtime."""
    joined = torch.cat([x, y, z], 1)
    return joined, torch.cat([y, z.int()], 1), torch.cat([z, x]), joined[:, 4:11] * y.float()


def spectrum(m, x):
    """An operator, a rank and complex numbers that others lack."""
    return m.conv(x), torch.fft.rfft(x).abs(), F.max_pool3d(x, 2)


def shared_outputs(m, x, y):
    """Copies of outputs, which the exporter makes one: in all places, of several dtypes."""
    a = torch.relu(x)
    mask = a > 0.5
    rows = a.sum(1)
    return a, mask, rows, a.clone(), F.dropout(a, 0.5, False), mask.clone(), rows.clone(), y.clone()


def assigned(m, x):
    """A tensor of numbers that the program makes between delegates, of which a delegate makes a
    part anew: of its argument it reads nothing. Tensors of five dimensions are put together
    outside of delegates."""
    y = torch.relu(x)
    result = torch.full_like(y, 3.0)
    result[:, :, 1] = torch.sigmoid(y[:, :, 0] + x[:, :, 2])
    return result * y


def unread_input(m, x, y):
    """All of a copy of x is overwritten before anything reads it."""
    z = x.clone()
    z.copy_(torch.relu(y).t())
    return z * 2.0, torch.sigmoid(y)


def floats(*sizes):
    return torch.randn(*sizes)


def some(rows, columns):
    """A mask of 0 and 1: nothing of row 0, all of row 1, parts of the others."""
    mask = (torch.rand(rows, columns) < 0.6).float()
    mask[0], mask[1] = 0, 1
    return mask


def whole(*sizes):
    return torch.randint(-2, 3, sizes, dtype=torch.int32)


# name: function that returns the module and its inputs
PROGRAMS = {
    "attention": lambda: (
        Module(lambda m, q, k, v: F.scaled_dot_product_attention(q, k, v)),
        (floats(1, 3, 7, 8), floats(1, 3, 7, 8), floats(1, 3, 7, 8))),
    "masked": lambda: (
        Module(masked), (floats(1, 3, 7, 8), floats(1, 3, 6, 8), floats(1, 3, 6, 8), some(7, 6))),
    "multihead": lambda: (Attention(), (floats(1, 9, 24),)),
    "gpt_block": lambda: (GptBlock(), (floats(1, 9, 24),)),
    "swin_block": lambda: (SwinBlock(), (floats(1, 8, 8, 12),)),
    "default_stride": lambda: (
        Module(lambda m, x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.avg_pool2d(x, (1, 3)))),
        (floats(1, 5, 9, 11),)),
    "reflect": lambda: (
        Module(lambda m, x: F.pad(x, (2, 1, 1, 3), mode="reflect")), (floats(1, 3, 6, 7),)),
    "replicate": lambda: (
        Module(lambda m, x: F.pad(x, (2, 1, 1, 3), mode="replicate")), (floats(1, 3, 6, 7),)),
    "batch_norm": lambda: (
        Module(lambda m, x: m.norm(x), norm=with_statistics(nn.BatchNorm1d(6))),
        (floats(2, 6, 9),)),
    "int_equal": lambda: (
        Module(lambda m, a, b: (a == b, a == 1, (a == b).to(torch.float32) * 2.0)),
        (whole(3, 7), whole(3, 7))),
    "scalars": lambda: (
        Module(lambda m, x, a, b: (x * a + b, a * b)),
        (floats(2, 5), torch.tensor(1.5), torch.tensor(-0.25))),
    "scalar_between": lambda: (
        Module(lambda m, x: torch.sigmoid(x) * torch.linalg.vector_norm(x)), (floats(4, 6),)),
    "convolutions": lambda: (convolutions(), (floats(1, 6, 9, 14),)),
    # What the exporter leaves outside of the delegates: batches, and transposed ones over time.
    "left_out": lambda: (
        Module(lambda m, x, y: (torch.relu(m.batch(x)), torch.sigmoid(m.time(y))),
               batch=nn.Conv2d(3, 6, 3, stride=2, padding=1),
               time=nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1)),
        (floats(2, 3, 9, 8), floats(1, 6, 10))),
    "nearest": lambda: (
        Module(lambda m, x: (F.interpolate(x, scale_factor=1.7, mode="nearest"),
                             F.interpolate(x, size=(9, 4), mode="nearest"))),
        (floats(1, 3, 6, 7),)),
    "constant_outputs": lambda: (Constants(), (floats(3, 5),)),
    "gelu": lambda: (
        Module(lambda m, x: (F.gelu(x), F.gelu(x, approximate="tanh"))),
        (torch.linspace(-6, 6, 400).reshape(4, 100),)),
    "softmax": lambda: (
        Module(lambda m, x: (torch.softmax(x, -1), torch.softmax(x, 1), F.log_softmax(x, 0))),
        (floats(3, 6, 37),)),
    "bools": lambda: (
        Module(lambda m, x, b: (torch.logical_not(b), torch.logical_and(x > 0, b),
                                torch.where(b, x, -x), b.to(torch.float32) * x)),
        (floats(3, 7), floats(3, 7) > 0)),
    "group_norm": lambda: (
        Module(lambda m, x: torch.relu(m.norm(m.conv(x))), conv=nn.Conv2d(3, 12, 3, padding=1),
               norm=nn.GroupNorm(4, 12)), (floats(1, 3, 9, 10),)),
    "promoted": lambda: (Module(promoted), (
        floats(3, 4), torch.randint(-9, 9, (3, 7), dtype=torch.int32), floats(3, 4).half())),
    "spectrum": lambda: (Module(spectrum, conv=nn.Conv3d(2, 3, 3)), (floats(1, 2, 4, 5, 6),)),
    "shared_outputs": lambda: (Module(shared_outputs), (floats(3, 5), floats(2, 4))),
    # Which of three values of equal sizes are one is not in the file.
    "shared_undecided": lambda: (
        Module(lambda m, x: (lambda y: (y, y.clone(), y * 2.0))(torch.relu(x))), (floats(3, 5),)),
    # What that program's message tells one to write
    "shared_decided": lambda: (
        Module(lambda m, x: (lambda y: (y, y + 0, y * 2.0))(torch.relu(x))), (floats(3, 5),)),
    "assigned": lambda: (Module(assigned), (floats(1, 2, 3, 4, 5),)),
    "unread_input": lambda: (Module(unread_input), (floats(3, 5), floats(5, 3))),
    "accumulator": lambda: (Accumulator(), (floats(1, 6),)),
    "int16": lambda: (
        Module(lambda m, x: (x + x, x.to(torch.float32) * 0.5, (x * 0.25).to(torch.int16))),
        (torch.randint(-999, 999, (3, 7), dtype=torch.int16),)),
}


# Made in bfloat16, which vkrt computes in float32; so do their references.
IN_BFLOAT16 = {
    "bfloat16": lambda: (
        Module(lambda m, i, x: (m.head(m.norm(F.silu(m.first(m.table(i))))), m.conv(x) * 2.0),
               table=nn.Embedding(20, 16), first=nn.Linear(16, 13), norm=nn.LayerNorm(13),
               head=nn.Linear(13, 20, bias=False), conv=nn.Conv2d(3, 5, 3, padding=1)),
        (torch.randint(0, 20, (2, 7)), floats(1, 3, 6, 7))),
}


def export_in_bfloat16(module, inputs):
    """The program of a module in bfloat16, with inputs and results of the same numbers."""
    def all_in(dtype):
        return tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)

    module, inputs = module.to(torch.bfloat16).eval(), all_in(torch.bfloat16)
    program, inputs = lower(module, inputs), all_in(torch.float32)
    return program, arrays_of(inputs, run_eager(module.float(), inputs))


def make(name):
    if name in IN_BFLOAT16:
        return export_in_bfloat16(*IN_BFLOAT16[name]())
    return export(*PROGRAMS[name]())


if __name__ == "__main__":
    run_tool("Make the programs of tests/models/cases.", {**PROGRAMS, **IN_BFLOAT16}, make,
             "tests/models/cases")
