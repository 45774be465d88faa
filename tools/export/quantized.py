#!/usr/bin/env python3
"""Make the quantized test programs of tests/models/.

    python tools/export/quantized.py [NAME...] [--out tests/models] [--list]

Each program NAME.pte gets a NAME.npz beside it with the inputs in0, in1, ... and the outputs out0,
out1, ... of the quantized module in eager PyTorch, which dequantizes, computes in float32 and
quantizes again at every step. Weights and inputs are random with a fixed seed.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import export, run_tool


class Pictures(nn.Module):
    """Convolutions of every kind that is quantized, relu and relu6, a sum and shuffled pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.depth = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.point = nn.Conv2d(12, 16, 1)
        self.grouped = nn.Conv2d(16, 16, 3, padding=1, groups=2, bias=False)
        self.up = nn.ConvTranspose2d(16, 12, 4, stride=2, padding=1)
        self.last = nn.Conv2d(12, 12, 3, padding=1)

    def forward(self, x):
        x = F.relu6(self.depth(F.relu(self.stem(x))))
        y = self.point(x)
        y = self.grouped(y) + y
        return F.pixel_shuffle(self.last(F.relu(self.up(y))), 2)


class Classifier(nn.Module):
    """Linear layers of one row and of several."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(36, 50)
        self.second = nn.Linear(50, 64, bias=False)
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


PROGRAMS = {
    "quantized_pictures": lambda: (Pictures(), torch.randn(1, 3, 22, 18)),
    "quantized_mlp": lambda: (Classifier(), torch.randn(3, 36)),
    "quantized_mlp_row": lambda: (Classifier(), torch.randn(1, 36)),
}


def quantize(module, x):
    """The module with 8-bit activations and weights, one scale for each channel of a weight."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    settings = get_symmetric_quantization_config(is_per_channel=True)
    prepared = prepare_pt2e(torch.export.export(module.eval(), (x,), strict=True).module(),
                            XNNPACKQuantizer().set_global(settings))
    with torch.no_grad():
        for scale in (1.0, 0.5):
            prepared(x * scale)
    quantized = convert_pt2e(prepared)
    quantized.eval = lambda: quantized  # it is for inference already, and refuses to be told so
    return quantized


def make(name):
    module, x = PROGRAMS[name]()
    return export(quantize(module, x), (x,))


if __name__ == "__main__":
    run_tool("Make the quantized test programs.", PROGRAMS, make, "tests/models")
