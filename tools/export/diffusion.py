#!/usr/bin/env python3
"""Export a network that removes noise, of the widths of Stable Diffusion 1.5, with random weights.

    python tools/export/diffusion.py [NAME...] [--out FOLDER] [--list]

The inputs are latents [1, 4, S, S], cosines and sines [1, 320] of the number of the noise step
(which fp16 has not the digits for) and the 77 vectors of 768 numbers that a text encoder makes of a
text; the output is the noise in the latents. unet-32 and unet-64 are for latents of 32x32 and
64x64, pictures of 256x256 and 512x512: 859.5 million weights, 1.72 GB in fp16. unet-small has the
same parts in small. NAME.npz has inputs of one call and the output of eager PyTorch, computed in
float32 from the same weights.

`tools/diffusion.py` runs what this makes. Needs the same as tools/export/models.py, about 16 GB of
memory, and some minutes for each of the large ones.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import arrays_of, lower, run_eager, run_tool

GROUPS, WORDS = 32, 77


class Residual(nn.Module):
    """Two convolutions, the vector of the noise step between them, and a way around both."""

    def __init__(self, inputs, outputs, step):
        super().__init__()
        self.first_norm = nn.GroupNorm(GROUPS, inputs, 1e-5)
        self.first = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.step = nn.Linear(step, outputs)
        self.second_norm = nn.GroupNorm(GROUPS, outputs, 1e-5)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.around = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, step):
        y = self.first(F.silu(self.first_norm(x))) + self.step(F.silu(step))[:, :, None, None]
        return self.around(x) + self.second(F.silu(self.second_norm(y)))


class Attention(nn.Module):
    """Attention of places to each other, or to the words of a text."""

    def __init__(self, width, heads, context=None):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(context or width, width, bias=False)
        self.value = nn.Linear(context or width, width, bias=False)
        self.last = nn.Linear(width, width)

    def forward(self, x, context=None):
        context = x if context is None else context
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (
            self.query(x), self.key(context), self.value(context)))
        y = F.scaled_dot_product_attention(query, key, value)
        return self.last(y.transpose(1, 2).flatten(2))


class Transformer(nn.Module):
    """Attention within a picture and to a text, and a gated layer of four times the width."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width, 1e-6)
        self.enter = nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own = Attention(width, heads)
        self.text = Attention(width, heads, context)
        self.wide = nn.Linear(width, 8 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.leave = nn.Conv2d(width, width, 1)

    def forward(self, x, text):
        height, width = x.shape[2:]
        y = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        y = y + self.own(self.norms[0](y))
        y = y + self.text(self.norms[1](y), text)
        value, gate = self.wide(self.norms[2](y)).chunk(2, -1)
        y = y + self.narrow(value * F.gelu(gate))
        return x + self.leave(y.transpose(1, 2).unflatten(2, (height, width)))


class Unet(nn.Module):
    """The noise in latents.

    Args:
        widths: channels at each size of the picture, the largest first; the last has no attention.
        layers: residual blocks at each size on the way down; one more on the way up.
        context: elements of the vectors of a text.
    """

    def __init__(self, widths=(320, 640, 1280, 1280), layers=2, heads=8, context=768):
        super().__init__()
        first, step = widths[0], 4 * widths[0]
        self.step = nn.Sequential(nn.Linear(first, step), nn.SiLU(), nn.Linear(step, step))
        self.enter = nn.Conv2d(4, first, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        kept, now = [first], first
        for level, width in enumerate(widths):
            attends = level + 1 < len(widths)
            blocks = nn.ModuleList()
            for _ in range(layers):
                blocks.append(self._block(now, width, step, attends, heads, context))
                now = width
                kept.append(now)
            if attends:
                blocks.append(nn.Conv2d(now, now, 3, stride=2, padding=1))
                kept.append(now)
            self.down.append(blocks)
        self.middle = self._block(now, now, step, True, heads, context)
        self.middle_last = Residual(now, now, step)
        for level, width in reversed(list(enumerate(widths))):
            blocks = nn.ModuleList()
            for _ in range(layers + 1):
                blocks.append(self._block(now + kept.pop(), width, step, level + 1 < len(widths),
                                          heads, context))
                now = width
            if level:
                blocks.append(nn.Conv2d(now, now, 3, padding=1))
            self.up.append(blocks)
        self.norm = nn.GroupNorm(GROUPS, now, 1e-5)
        self.leave = nn.Conv2d(now, 4, 3, padding=1)

    @staticmethod
    def _block(inputs, outputs, step, attends, heads, context):
        block = nn.ModuleList([Residual(inputs, outputs, step)])
        if attends:
            block.append(Transformer(outputs, heads, context))
        return block

    @staticmethod
    def _run(block, x, step, text):
        x = block[0](x, step)
        return block[1](x, text) if len(block) > 1 else x

    def forward(self, latents, waves, text):
        step = self.step(waves)
        x = self.enter(latents)
        kept = [x]
        for blocks in self.down:
            for block in blocks:
                x = block(x) if isinstance(block, nn.Conv2d) else self._run(block, x, step, text)
                kept.append(x)
        x = self.middle_last(self._run(self.middle, x, step, text), step)
        for blocks in self.up:
            for block in blocks:
                if isinstance(block, nn.Conv2d):
                    x = block(F.interpolate(x, scale_factor=2.0, mode="nearest"))
                else:
                    x = self._run(block, torch.cat((x, kept.pop()), 1), step, text)
        return self.leave(F.silu(self.norm(x)))


# The side of the latents, and what `Unet` is told
NETWORKS = {
    "unet-small": (16, {"widths": (32, 64, 128), "layers": 1, "heads": 4, "context": 48}),
    "unet-32": (32, {}),
    "unet-64": (64, {}),
}


def make(name):
    """The program of a name, in fp16, and the arrays of eager PyTorch's run."""
    side, options = NETWORKS[name]
    module = Unet(**options).eval()
    for parameter in module.parameters():
        parameter.data = parameter.data.half().float()
    width = options.get("widths", (320,))[0]
    inputs = (torch.randn(1, 4, side, side), torch.rand(1, width) * 2 - 1,
              torch.randn(1, WORDS, options.get("context", 768)))
    arrays = arrays_of(inputs, run_eager(module, inputs))
    with torch.no_grad():
        return lower(module, inputs, force_fp16=True), arrays


if __name__ == "__main__":
    run_tool(__doc__.splitlines()[0], tuple(NETWORKS), make)
