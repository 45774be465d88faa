#!/usr/bin/env python3
"""Make the quantized test programs of tests/models/.

    python tools/export/quantized.py [NAME...] [--out tests/models] [--list]

Each program NAME.pte gets a NAME.npz beside it with the inputs in0, in1, ... and the outputs out0,
out1, ... of the quantized module in eager PyTorch, which dequantizes, computes in float32 and
quantizes again at every step, and exact_out0, exact_out1, ... for which the sums of its layers were
exact. quantized_kernels has no delegates, a layer whose input is quantized as it comes, and no
exact_out0. Weights and inputs are random with a fixed seed.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1
"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from exporting import arrays_of, export, lower_portable, run_eager, run_tool


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
    "quantized_kernels": lambda: (Classifier(), torch.randn(3, 36)),
}


def quantize(module, x, *as_it_comes):
    """The module with 8-bit activations and weights, one scale for each channel of a weight.

    Args:
        as_it_comes: names of layers whose input gets its scale when it is there.
    """
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    settings = get_symmetric_quantization_config(is_per_channel=True)
    dynamic = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=True)
    quantizer = XNNPACKQuantizer().set_global(settings)
    for name in as_it_comes:
        quantizer.set_module_name(name, dynamic)
    prepared = prepare_pt2e(torch.export.export(module.eval(), (x,), strict=True).module(),
                            quantizer)
    with torch.no_grad():
        for scale in (1.0, 0.5):
            prepared(x * scale)
    quantized = convert_pt2e(prepared)
    quantized.eval = lambda: quantized  # it is for inference already, and refuses to be told so
    return quantized


class Exact(torch.fx.Interpreter):
    """Runs a quantized module with layers that add in float64 and round the sum to float32.

    In float32 a sum depends on its order, which PyTorch chooses by the processor. Where it lies
    near the middle between two steps of the output's scale, the order decides which one it becomes.
    """

    def run_node(self, node):
        aten = torch.ops.aten
        if node.target not in (aten.conv2d.default, aten.conv_transpose2d.input,
                               aten.linear.default):
            return super().run_node(node)
        arguments, _ = self.fetch_args_kwargs_from_env(node)
        return node.target(*(value.double() if isinstance(value, torch.Tensor) else value
                             for value in arguments)).float()


def export_quantized(module, *inputs):
    """The program of the quantized module, and the arrays beside it."""
    quantized = quantize(module, *inputs)
    pte, arrays = export(quantized, inputs)
    exact = run_eager(Exact(quantized).run, inputs)
    return pte, arrays | {f"exact_out{i}": output for i, output in enumerate(exact)}


def export_kernels(module, x):
    """A program without delegates, and the arrays beside it."""
    import executorch.kernels.quantized  # noqa: F401 (registers the kernels)

    quantized = quantize(module, x, "last")
    return lower_portable(quantized, (x,)), arrays_of((x,), run_eager(quantized, (x,)))


def make(name):
    module, x = PROGRAMS[name]()
    return (export_kernels if name == "quantized_kernels" else export_quantized)(module, x)


if __name__ == "__main__":
    run_tool("Make the quantized test programs.", PROGRAMS, make, "tests/models")
