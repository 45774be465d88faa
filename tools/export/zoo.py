#!/usr/bin/env python3
"""Make programs of well-known networks, to try vkrt on what people export.

    python tools/export/zoo.py [NAME...] [--out FOLDER] [--list]

Each program NETWORK-base.pte, or NETWORK-fp16.pte, gets a .npz with the inputs in0.. and the
outputs out0.. of eager PyTorch in float32.  NETWORK-q8.pte has weights and activations of 8 bits,
and the outputs are those of the quantized module (exact_out0.. with exact sums).  Weights are
random with a fixed seed; batch norms get the statistics of random input, so that the numbers keep
their size.
``tools/check/results.py`` runs the programs and compares.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 torchvision==0.28.0 executorch==1.5.1

and about 4 GB of memory for the largest networks.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import export, run_tool
from quantized import export_quantized


class Unet(nn.Module):
    """A U-Net with batch norm whose way up is transposed convolutions; all skips are joined."""

    def __init__(self, widths=(16, 32, 64, 128)):
        super().__init__()
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip((3, *widths), widths))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2)
                                  for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(self.block(2 * a, a) for a in widths[:-1])
        self.last = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def block(inputs, outputs):
        layers = []
        for width in (inputs, outputs):
            layers += [nn.Conv2d(width, outputs, 3, padding=1, bias=False),
                       nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, x):
        waiting = []
        for layer in self.down[:-1]:
            x = layer(x)
            waiting.append(x)
            x = F.max_pool2d(x, 2, 2)
        x = self.down[-1](x)
        for grow, layer in zip(reversed(self.grow), reversed(self.up)):
            x = layer(torch.cat((waiting.pop(), grow(x)), 1))
        return self.last(x)


class Edsr(nn.Module):
    """Super-resolution by 2: residual blocks without norms, scaled by 0.1, pixel shuffle."""

    def __init__(self, width=32, blocks=6):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(width, width, 3, padding=1)) for _ in range(blocks))
        self.tail = nn.Conv2d(width, width, 3, padding=1)
        self.grow = nn.Conv2d(width, 4 * width, 3, padding=1)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        first = x = self.head(x)
        for block in self.body:
            x = x + 0.1 * block(x)
        return self.last(F.pixel_shuffle(self.grow(self.tail(x) + first), 2))


class Generator(nn.Module):
    """DCGAN's generator: a vector becomes a picture of 64x64 by transposed convolutions."""

    def __init__(self, latent=64, width=16):
        super().__init__()
        sizes = (latent, 8 * width, 4 * width, 2 * width, width)
        layers = []
        for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
            stride, padding = (2, 1) if i else (1, 0)
            layers += [nn.ConvTranspose2d(a, b, 4, stride, padding, bias=False),
                       nn.BatchNorm2d(b), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())

    def forward(self, x):
        return self.layers(x)


class Wavenet(nn.Module):
    """Dilated causal convolutions over time, gated by tanh * sigmoid, with skip outputs."""

    def __init__(self, width=24, skip=32, layers=8):
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=1 << i)
                                   for i in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(width, skip, 1) for _ in range(layers))
        self.rests = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(),
                                  nn.Conv1d(skip, 64, 1))

    def forward(self, x):
        x = self.first(x)
        total = None
        for gate, skip, rest in zip(self.gates, self.skips, self.rests):
            value, open_ = gate(F.pad(x, (gate.dilation[0], 0))).chunk(2, 1)
            y = torch.tanh(value) * torch.sigmoid(open_)
            total = skip(y) if total is None else total + skip(y)
            x = x + rest(y)
        return self.last(total)


class Attention(nn.Module):
    """Self-attention of several heads with scaled_dot_product_attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class Vit(nn.Module):
    """A small vision transformer: patches of 16x16, a class token, positions, encoder blocks."""

    def __init__(self, width=96, heads=3, blocks=4, side=112):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, stride=16)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, 1 + (side // 16) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "attention": Attention(width, heads),
            "norm2": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width)),
        }) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = x + block["attention"](block["norm1"](x))
            x = x + block["mlp"](block["norm2"](x))
        return self.head(self.norm(x)[:, 0])


def randomize(module):
    """Give norms and layer scales parameters that are not the initial zeros, ones or 1e-6."""
    for child in module.modules():
        if isinstance(child, (nn.BatchNorm2d, nn.LayerNorm, nn.GroupNorm)):
            nn.init.uniform_(child.weight, 0.7, 1.3)
            if child.bias is not None:
                nn.init.normal_(child.bias, 0.0, 0.1)
        if isinstance(getattr(child, "layer_scale", None), nn.Parameter):
            nn.init.uniform_(child.layer_scale, 0.1, 0.3)


def calibrate(module, inputs):
    """Let batch norms see random batches."""
    kinds = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
    norms = [child for child in module.modules() if isinstance(child, kinds)]
    for child in norms:
        child.momentum = None  # the mean over all batches
    module.train()
    with torch.no_grad():
        for _ in range(2 if norms else 0):
            module(*(torch.cat((x, torch.randn_like(x))) for x in inputs))


def calm(module):
    """Let residual blocks change little, as in trained networks: with their initial size an element
    that is rounded the other way changes everything behind it."""
    for child in module.modules():
        if hasattr(child, "downsample"):
            nn.init.uniform_(getattr(child, "bn3", child.bn2).weight, 0.1, 0.3)


def import_torchvision():
    """torchvision, also where its compiled operators do not fit the installed PyTorch: nothing here
    uses them, and its import only asks whether they have a name."""
    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
        import_torchvision.library = library  # the names go with it
    return torchvision


def vision(name, side=224, **arguments):
    """One of torchvision's classifiers, and a picture."""
    import_torchvision()
    from torchvision import models

    return getattr(models, name)(**arguments), (torch.randn(1, 3, side, side),)


def swin():
    """torchvision's Swin transformer, small: it makes its masks while it runs."""
    import_torchvision()
    from torchvision.models.swin_transformer import SwinTransformer

    network = SwinTransformer(patch_size=[4, 4], embed_dim=32, depths=[2, 2], num_heads=[2, 4],
                              window_size=[4, 4], num_classes=100)
    return network, (torch.randn(1, 3, 64, 64),)


def linears(layers=12, width=2048):
    """Layers of linear + ReLU (201 MB of weights), to measure loading and streaming."""
    modules = []
    for _ in range(layers):
        linear = nn.Linear(width, width)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")  # the numbers keep their size
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules), (torch.randn(1, width),)


# name: function that returns the module and its inputs
NETWORKS = {
    "mobilenet_v2": lambda: vision("mobilenet_v2"),
    "resnet18": lambda: vision("resnet18"),
    "resnet50": lambda: vision("resnet50"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "shufflenet_v2": lambda: vision("shufflenet_v2_x1_0"),
    "squeezenet": lambda: vision("squeezenet1_1"),
    "densenet121": lambda: vision("densenet121", 128),
    "mnasnet": lambda: vision("mnasnet0_5"),
    "regnet_y": lambda: vision("regnet_y_400mf"),
    "convnext_tiny": lambda: vision("convnext_tiny", 128),
    "swin": swin,
    "vit_sdpa": lambda: (Vit(), (torch.randn(1, 3, 112, 112),)),
    "unet": lambda: (Unet(), (torch.rand(1, 3, 96, 96),)),
    "edsr": lambda: (Edsr(), (torch.rand(1, 3, 48, 48),)),
    "dcgan": lambda: (Generator(), (torch.randn(1, 64, 1, 1),)),
    "wavenet": lambda: (Wavenet(), (torch.randn(1, 1, 2048),)),
    "linears-12x2048": linears,
}


QUANTIZED = "mobilenet_v2", "resnet18", "resnet50", "edsr"
PROGRAMS = [*(f"{name}-{dtype}" for dtype in ("base", "fp16") for name in NETWORKS),
            *(f"{name}-q8" for name in QUANTIZED)]


def make(name):
    """Export one network; `vkrt info` shows what the program is made of."""
    network, _, dtype = name.rpartition("-")
    module, inputs = NETWORKS[network]()
    randomize(module)
    if dtype == "q8":
        calm(module)
    calibrate(module, inputs)
    if dtype == "q8":
        return export_quantized(module, *inputs)
    return export(module, inputs, force_fp16=dtype == "fp16")


if __name__ == "__main__":
    run_tool("Make programs of well-known networks.", PROGRAMS, make)
