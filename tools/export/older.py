#!/usr/bin/env python3
"""Make small programs with the executorch that is installed, to try vkrt on what others wrote.

    python tools/export/older.py [NAME...] [--out FOLDER]

Run it in an environment for each release: `pip install executorch==1.2.0 torch==2.11.0`, say. Each
NAME.pte gets a NAME.npz with the inputs in0.. and the outputs out0.. of eager PyTorch (of the
quantized module, where it is one).
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import export, run_tool
from quantized import quantize


class Inverted(nn.Module):
    """A block of mobilenet_v2: wide in the middle, depthwise there, with a residual connection."""

    def __init__(self, inputs, outputs, stride, factor):
        super().__init__()
        width = inputs * factor
        self.is_residual = stride == 1 and inputs == outputs
        grow = [nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6()]
        self.layers = nn.Sequential(
            *(grow if factor > 1 else ()),
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.BatchNorm2d(width), nn.ReLU6(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return x + self.layers(x) if self.is_residual else self.layers(x)


class Mobilenet(nn.Module):
    """mobilenet_v2 with few channels and blocks."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(),
            Inverted(8, 8, 1, 1), Inverted(8, 12, 2, 4), Inverted(12, 12, 1, 4),
            Inverted(12, 16, 2, 4), nn.Conv2d(16, 32, 1, bias=False), nn.BatchNorm2d(32),
            nn.ReLU6())
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1))


class Attention(nn.Module):
    """An embedding and a layer of a transformer."""

    def __init__(self, width=24, heads=3):
        super().__init__()
        self.heads = heads
        self.words = nn.Embedding(50, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(),
                                 nn.Linear(2 * width, width))

    def forward(self, words):
        x = self.words(words)
        batch, count, width = x.shape
        q, k, v = (part.view(batch, count, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        scores = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        x = x + self.out((scores @ v).transpose(1, 2).reshape(batch, count, width))
        return x + self.mlp(self.norms[1](x))


class Residual(nn.Module):
    """Convolutions of several kinds, a sum of two activations, and a linear layer.

    Without "deep" and "head" among its parts it has no depthwise convolution, or no linear layer:
    some releases fail to export those with 8 bits.
    """

    def __init__(self, *parts):
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, padding=1)
        self.dense = nn.Conv2d(16, 16, 3, padding=1)
        self.deep = (nn.Conv2d(16, 16, 3, padding=1, groups=16) if "deep" in parts
                     else nn.Identity())
        self.point = nn.Conv2d(16, 8, 1)
        self.head = nn.Linear(8, 12) if "head" in parts else None

    def forward(self, x):
        x = F.relu(self.first(x))
        x = self.point(F.relu(self.deep(x + self.dense(x))))
        return x if self.head is None else self.head(x.mean((2, 3)))


class Limited(nn.Module):
    """Arithmetic of two tensors whose results are limited."""

    def forward(self, x, y):
        x, y = F.relu(x + y), F.hardtanh(x - y, -0.5, 0.75)
        return torch.clamp(x * y, max=0.5), F.relu6(x / (y * y + 1))


def mobilenet():
    module, x = Mobilenet(), torch.randn(1, 3, 32, 32)
    with torch.no_grad():
        module(torch.randn(8, 3, 32, 32))  # its norms see a batch
    return module, (x,)


def quantized(*parts):
    """Residual with weights and activations of 8 bits."""
    x = torch.randn(1, 3, 12, 12)
    return quantize(Residual(*parts), x), (x,)


def quantized_linear():
    """Linear layers with weights of 4 bits in groups of 32."""
    from torchao.quantization import IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    from torchao.utils import unwrap_tensor_subclass

    module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    quantize_(module, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
    return unwrap_tensor_subclass(module), (torch.randn(3, 64),)


PROGRAMS = {
    "mobilenet": mobilenet,
    "attention": lambda: (Attention(), (torch.randint(0, 50, (1, 9)),)),
    "quantized": lambda: quantized("deep", "head"),
    "quantized_convolutions": lambda: quantized("deep"),
    "quantized_dense": quantized,
    "limited": lambda: (Limited(), (torch.randn(3, 1, 7), torch.randn(5, 7))),
    "quantized_linear": quantized_linear,
}


def make(name):
    """The program's bytes and its arrays."""
    return export(*PROGRAMS[name]())


if __name__ == "__main__":
    run_tool("Make small programs with the executorch that is installed.", PROGRAMS, make)
