#!/usr/bin/env python3
"""Make the small test programs of tests/models/.

    python tools/export/models.py [NAME...] [--out tests/models] [--list]

Each program NAME.pte gets a NAME.npz beside it with the inputs in0, in1, ... and the outputs out0,
out1, ... that eager PyTorch computes in float32.  Weights and inputs are random with a fixed seed.
``vkrt info`` shows what a program is made of.  All but toy, attention and experts are a single
delegate.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1

The vkrt runtime itself is not needed, and neither torch nor executorch is needed to run vkrt.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from experts import Experts
from exporting import export, run_tool


class Toy(nn.Module):
    """Two delegates: the exporter leaves the mean over height and width to a CPU kernel."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.linear = nn.Linear(16, 10)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return torch.softmax(self.linear(x.mean((2, 3))), -1)


class Mlp(nn.Module):
    """Linear layers (one with a width that is no multiple of 4), GELU, ReLU and layer norm."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(30, 64)
        self.second = nn.Linear(64, 96)
        self.norm = nn.LayerNorm(96)
        self.last = nn.Linear(96, 10, bias=False)

    def forward(self, x):
        x = F.relu(self.second(F.gelu(self.first(x))))
        return self.last(self.norm(x))


class Excite(nn.Module):
    """Blocks in which channels are multiplied by factors that are made of their means."""

    class Block(nn.Module):
        def __init__(self, inputs, hidden, outputs, stride):
            super().__init__()
            self.expand = nn.Conv2d(inputs, hidden, 1)
            self.depthwise = nn.Conv2d(hidden, hidden, 3, stride, padding=1, groups=hidden)
            self.squeeze = nn.Conv2d(hidden, hidden // 4, 1)
            self.excite = nn.Conv2d(hidden // 4, hidden, 1)
            self.project = nn.Conv2d(hidden, outputs, 1)

        def forward(self, x):
            y = F.silu(self.depthwise(F.silu(self.expand(x))))
            factors = self.excite(F.silu(self.squeeze(y.mean((2, 3), keepdim=True))))
            y = self.project(torch.sigmoid(factors) * y)
            return x + y if x.shape == y.shape else y

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(self.Block(8, 32, 8, 1), self.Block(8, 32, 12, 2))
        self.last = nn.Linear(12, 10)

    def forward(self, x):
        return self.last(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


class ConvMix(nn.Module):
    """Convolutions of every kind, with channel counts that do not fill texels of 4."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 10, 3, stride=2, padding=1)
        self.point = nn.Conv2d(10, 14, 1, bias=False)
        self.depth3 = nn.Conv2d(14, 14, 3, padding=1, groups=14)
        self.project = nn.Conv2d(14, 10, 1)
        self.depth5 = nn.Conv2d(10, 10, 5, stride=2, padding=2, groups=10)
        self.depth3_dilated = nn.Conv2d(10, 10, 3, padding=2, dilation=2, groups=10, bias=False)
        self.narrow = nn.Conv2d(10, 6, (1, 3), padding=(0, 1))
        self.grouped = nn.Conv2d(6, 8, 3, padding=1, groups=2)
        self.dilated = nn.Conv2d(8, 7, 3, padding=(2, 3), dilation=(2, 3))

    def forward(self, x):
        x = F.relu(self.stem(x))
        y = F.relu6(self.depth3(F.hardswish(self.point(x))))
        x = F.relu6(x + self.project(y))
        y = F.hardswish(self.depth3_dilated(self.depth5(x)))
        z = F.relu(self.grouped(self.narrow(y)))
        return y, self.dilated(z)


class Conv1d(nn.Module):
    """One-dimensional convolutions: strided, dilated, grouped, depthwise and pointwise."""

    def __init__(self):
        super().__init__()
        self.strided = nn.Conv1d(3, 10, 7, stride=3, padding=3)
        self.dilated = nn.Conv1d(10, 12, 3, padding=2, dilation=2)
        self.grouped = nn.Conv1d(12, 6, 3, stride=2, padding=1, groups=3)
        self.depth = nn.Conv1d(6, 6, 5, padding=2, groups=6)
        self.point = nn.Conv1d(6, 5, 1)

    def forward(self, x):
        x = F.relu(self.dilated(torch.sigmoid(self.strided(x))))
        x = torch.tanh(self.grouped(x))
        return torch.sigmoid(self.point(self.depth(x)))


class Pools(nn.Module):
    """Pooling on a picture with odd sizes and 5 channels."""

    def forward(self, x):
        return (
            F.max_pool2d(x, 2),
            F.max_pool2d(x, 3, stride=2, padding=1),
            F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
            F.avg_pool2d(x, (2, 3), stride=(1, 2), padding=(1, 1)),
            F.avg_pool2d(x, 2, stride=2, ceil_mode=True, count_include_pad=False),
            F.adaptive_avg_pool2d(x, 1),
        )


class SuperresSmall(nn.Module):
    """Super-resolution by 2 for 3 colours: the network's part added to the enlarged input."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 12, 5, padding=2)
        self.second = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, x):
        y = F.pixel_shuffle(self.second(torch.tanh(self.first(x))), 2)
        return torch.clamp(y + F.interpolate(x, scale_factor=2, mode="nearest"), 0.0, 1.0)


class Elementwise(nn.Module):
    """Arithmetic with broadcasting, comparisons, unary functions and type conversions."""

    def __init__(self):
        super().__init__()
        self.prelu = nn.PReLU(6)
        self.row = nn.Parameter(torch.randn(7))
        with torch.no_grad():
            self.prelu.weight.copy_(torch.linspace(-0.5, 1.5, 6))

    def forward(self, a, b, channel, scalar, count):
        total = a + b  # same shapes
        total = total - channel  # (6, 1, 1): one value per channel
        total = total * self.row  # (7,): one value per column
        total = total / (b[:, :1].abs() + 1.0)  # (2, 1, 5, 7): one plane for all channels
        total = total + scalar  # (1,)
        chosen = torch.where(a > b, total, a * 0.5)
        chosen = torch.where(channel <= a, chosen, b)
        curves = torch.exp(-a.abs()) + torch.sqrt(b.abs()) + torch.sigmoid(a) * torch.tanh(b)
        slopes = self.prelu(a) - torch.rsqrt(b.abs() + 0.5)
        whole = (a * 3.0).to(torch.int32)  # float to int, towards zero
        positive = a >= 0.0
        both = torch.logical_and(positive, b < scalar)
        mixed = both.to(torch.float32) * a + count.to(torch.float32)
        counted = positive.to(torch.int32) + whole * count
        return total, chosen, curves, slopes, both, mixed, counted


class Shapes(nn.Module):
    """Operators that only move numbers."""

    def forward(self, a, b):
        # a: (1, 3, 6, 10), b: (1, 5, 6, 10)
        channels = torch.cat([a, b], 1)  # 3 + 5 channels
        rows = torch.cat([b[:, :3], a, a], 2)
        columns = torch.cat([a, a.neg()], 3)
        steps = channels[:, 1::2, ::3, 2:9:2]
        first, second, third = channels.split([1, 5, 2], 1)
        permuted = b.permute(0, 2, 3, 1)  # (1, 6, 10, 5)
        swapped = a.permute(3, 0, 2, 1)  # (10, 1, 6, 3)
        merged = permuted.reshape(60, 5)
        split = channels.view(1, 2, 4, 60)
        flat = columns.reshape(1, -1)
        small = b.select(1, 2).squeeze(0)  # (6, 10)
        tall = small.unsqueeze(1)  # (6, 1, 10)
        wide = tall.expand(6, 4, 10)
        padded = F.pad(second, (1, 2, 3, 0), value=0.5)
        picked = third.select(2, 4).select(-1, 3)  # (1, 2)
        return (
            channels, rows, columns, steps, first, swapped, merged, split, flat, tall, wide, padded,
            picked,
        )  # fmt: skip


class Batch2(nn.Module):
    """A batch of two: the exporter takes convolutions over time with it, and pooling."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 3, padding=1)
        self.depth = nn.Conv1d(8, 8, 3, padding=1, groups=8)
        self.linear = nn.Linear(12, 5)

    def forward(self, x, picture):
        x = self.depth(F.relu(self.conv(x)))  # (2, 8, 12)
        pooled = F.max_pool2d(picture, 2)  # (2, 3, 4, 6)
        shuffled = F.pixel_shuffle(torch.cat([pooled, pooled[:, :1]], 1), 2)  # (2, 1, 8, 12)
        y = x * shuffled.squeeze(1)
        return torch.softmax(self.linear(y), -1), torch.bmm(x, y.permute(0, 2, 1)), pooled


class LstmCell(nn.Module):
    """One step of an LSTM; the state goes in and comes out."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(20, 32)
        self.head = nn.Linear(32, 3)

    def forward(self, x, h, c):
        h, c = self.cell(x, (h, c))
        return torch.sigmoid(self.head(h)), h, c


class Timestep(nn.Module):
    """What a diffusion model makes of its timestep: sines and cosines of large angles."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 24), nn.SiLU(), nn.Linear(24, 24))

    def forward(self, timestep):
        # log(10000), as a half has it: fp16 programs hold the number so.
        frequencies = torch.exp(-9.2109375 * torch.arange(16, dtype=torch.float32) / 16)
        angles = timestep[:, None] * frequencies[None]
        return self.layers(torch.cat((angles.cos(), angles.sin()), -1))


class UNet(nn.Module):
    """A U-Net with 3 levels: what the way down makes waits long for the way up."""

    def __init__(self):
        super().__init__()
        widths = (8, 12, 16)
        self.first = nn.Conv2d(3, widths[0], 3, padding=1)
        self.down = nn.ModuleList(
            nn.Conv2d(a, b, 3, padding=1) for a, b in zip(widths, widths[1:]))
        self.middle = nn.Conv2d(widths[-1], widths[-1], 3, padding=1)
        self.up = nn.ModuleList(
            nn.Conv2d(a + b, b, 3, padding=1)
            for a, b in zip(reversed(widths), (widths[1], widths[0])))
        self.last = nn.Conv2d(widths[0], 3, 1)

    def forward(self, x):
        x = F.relu(self.first(x))
        waiting = []
        for layer in self.down:
            waiting.append(x)
            x = F.relu(layer(F.max_pool2d(x, 2, 2)))
        x = F.relu(self.middle(x))
        for layer in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = F.relu(layer(torch.cat((x, waiting.pop()), 1)))
        return self.last(x)


class Attention(nn.Module):
    """A small vision transformer: patches, attention by hand and by its module, a mean."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 24, 4, stride=4)
        self.position = nn.Parameter(0.1 * torch.randn(1, 15, 24))
        self.norm = nn.LayerNorm(24)
        self.qkv = nn.Linear(24, 72)
        self.project = nn.Linear(24, 24)
        self.second_norm = nn.LayerNorm(24)
        self.attention = nn.MultiheadAttention(24, 4, batch_first=True)
        self.head = nn.Linear(24, 10)

    def forward(self, picture):
        x = self.patch(picture).flatten(2).transpose(1, 2) + self.position
        batch, count, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(batch, count, 3, 3, width // 3)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, count, width)
        x = x + self.project(y)
        y = self.second_norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(x.mean(1))


def make_toy():
    """Return Toy with batch-norm statistics that are not the initial zeros and ones."""
    module = Toy()
    with torch.no_grad():
        module.norm.running_mean.normal_(0.0, 0.2)
        module.norm.running_var.uniform_(0.5, 1.5)
        module.norm.weight.uniform_(0.5, 1.5)
        module.norm.bias.normal_(0.0, 0.2)
    return module, (torch.randn(1, 3, 16, 16),)


def elementwise_inputs():
    """Return the five inputs of Elementwise."""
    return (
        torch.randn(2, 6, 5, 7),
        torch.randn(2, 6, 5, 7),
        torch.randn(6, 1, 1),
        torch.tensor([0.25]),
        torch.randint(-9, 10, (2, 6, 5, 7), dtype=torch.int32),
    )


# name: function that returns the module and its inputs
PROGRAMS = {
    "toy": make_toy,
    "mlp": lambda: (Mlp(), (torch.randn(3, 30),)),
    "mlp-fp16": lambda: (Mlp(), (torch.randn(3, 30),)),
    "excite": lambda: (Excite(), (torch.randn(1, 3, 63, 63),)),
    "conv_mix": lambda: (ConvMix(), (torch.randn(1, 3, 23, 30),)),
    "conv1d": lambda: (Conv1d(), (torch.randn(1, 3, 100),)),
    "pools": lambda: (Pools(), (torch.randn(1, 5, 13, 18),)),
    "superres_small": lambda: (SuperresSmall(), (torch.rand(1, 3, 18, 22),)),
    "elementwise": lambda: (Elementwise(), elementwise_inputs()),
    "shapes": lambda: (Shapes(), (torch.randn(1, 3, 6, 10), torch.randn(1, 5, 6, 10))),
    "batch2": lambda: (Batch2(), (torch.randn(2, 3, 12), torch.randn(2, 3, 8, 12))),
    "timestep-fp16": lambda: (Timestep(), (torch.tensor([999.0, 250.0]),)),
    "experts": lambda: (Experts(), (torch.tensor([77]),)),
    "unet_small": lambda: (UNet(), (torch.rand(1, 3, 48, 48),)),
    "attention": lambda: (Attention(), (torch.randn(1, 3, 12, 20),)),
    "lstm_cell": lambda: (
        LstmCell(), (torch.randn(1, 20), torch.randn(1, 32), torch.randn(1, 32))),
}


def make(name):
    return export(*PROGRAMS[name](), force_fp16=name.endswith("-fp16"))


if __name__ == "__main__":
    run_tool("Make the small test programs.", PROGRAMS, make, "tests/models")
