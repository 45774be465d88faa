#!/usr/bin/env python3
"""Make tests/executorch/mixed.pte, a program that only ExecuTorch's own runtime can run whole: a
delegate for Vulkan, two kernels of the runtime, and a delegate for XNNPACK.

    python tools/export/mixed.py [--out tests/executorch]

The mixed.npz has the input in0, and the output out0 that eager PyTorch computes in float32.

Needs the same as tools/export/models.py.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.dialects._ops import ops


class Mixed(torch.nn.Module):
    """A convolution for Vulkan, a sum and a mean for the runtime, linear layers for XNNPACK."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 5)

    def forward(self, x):
        y = torch.cumsum(torch.relu(self.conv(x)), 2).mean((2, 3))
        return self.second(torch.tanh(self.first(y)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("tests/executorch"))
    folder = parser.parse_args().out
    torch.manual_seed(0)
    module, x = Mixed().eval(), torch.randn(1, 3, 12, 12)
    vulkan = VulkanPartitioner({}, operator_allowlist=[ops.edge.aten.convolution.default,
                                                       ops.edge.aten.relu.default])
    lowered = to_edge_transform_and_lower(torch.export.export(module, (x,)),
                                          partitioner=[vulkan, XnnpackPartitioner()])
    (folder / "mixed.pte").write_bytes(lowered.to_executorch().buffer)
    with torch.no_grad():
        np.savez(folder / "mixed.npz", in0=x.numpy(), out0=module(x).numpy())


if __name__ == "__main__":
    main()
