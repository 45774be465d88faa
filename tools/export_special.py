#!/usr/bin/env python3
"""Make the test programs of tests/models/ that are not one method without a memory.

    python tools/export_special.py [NAME...] [--out tests/models]

buffers, buffers_dynamic: change buffers in place (Vulkan option ``alias_buffer_mutations``), the
second with a dynamic number of rows. The NAME.npz has the inputs step0_in0, ... and the outputs
step0_out0, ... of runs one after another.
coder: two methods, ``encode`` and ``decode``, with two layers in common. Its
NAME.npz has the arrays encode_in0, encode_out0, decode_in0, ...

Needs the same as export_models.py.
"""

import argparse
import logging
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from export_models import MAX_BYTES
from exporting import SEED, lower, run_eager


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
        return self.first(torch.relu(nn.functional.linear(hidden, self.words)))

    def decode(self, x):
        return nn.functional.linear(torch.relu(self.middle(self.last(x))), self.words)


class Method(nn.Module):
    """One method of a module as a module's forward."""

    def __init__(self, module, name):
        super().__init__()
        self.module = module
        self.method = name

    def forward(self, x):
        return getattr(self.module, self.method)(x)


def make_buffers():
    """The program's bytes and its arrays."""
    module = Buffers().eval()
    runs = [(torch.randn(1, 6),) for _ in range(4)]
    pte = lower(module, runs[0], alias_buffer_mutations=True)
    arrays = {}
    for step, inputs in enumerate(runs):
        arrays[f"step{step}_in0"] = inputs[0].numpy()
        for index, output in enumerate(run_eager(module, inputs)):
            arrays[f"step{step}_out{index}"] = output.copy()
    return pte, arrays


def make_buffers_dynamic():
    """The program's bytes and its arrays."""
    module = Average().eval()
    runs = [(torch.randn(rows, 6),) for rows in (8, 3, 1, 8, 5)]
    rows = torch.export.Dim("rows", min=1, max=8)
    pte = lower(module, runs[0], dynamic_shapes=({0: rows},), alias_buffer_mutations=True)
    arrays = {}
    for step, inputs in enumerate(runs):
        arrays[f"step{step}_in0"] = inputs[0].numpy()
        arrays[f"step{step}_out0"] = run_eager(module, inputs)[0]
    return pte, arrays


def make_coder():
    """The program's bytes and its arrays."""
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    logging.getLogger().setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", category=FutureWarning)
    module = Coder().eval()
    inputs = {"encode": (torch.randn(2, 24),), "decode": (torch.randn(2, 16),)}
    programs = {name: torch.export.export(Method(module, name), values, strict=False)
                for name, values in inputs.items()}
    edge = to_edge_transform_and_lower(
        programs, partitioner={name: [VulkanPartitioner({})] for name in programs},
        compile_config=EdgeCompileConfig(_check_ir_validity=False))
    arrays = {}
    for name, values in inputs.items():
        arrays[f"{name}_in0"] = values[0].numpy()
        arrays[f"{name}_out0"] = run_eager(Method(module, name), values)[0]
    return edge.to_executorch().buffer, arrays


PROGRAMS = {"buffers": make_buffers, "buffers_dynamic": make_buffers_dynamic,
            "coder": make_coder}


def main(argv=None):
    """Read the command line and export the programs."""
    parser = argparse.ArgumentParser(description="Make the special test programs.")
    parser.add_argument("name", nargs="*", help="programs to make (default: all)")
    parser.add_argument("--out", type=Path,
                        default=Path(__file__).resolve().parent.parent / "tests" / "models",
                        help="folder for the files (default: tests/models of this repository)")
    options = parser.parse_args(argv)
    for name in options.name or PROGRAMS:
        torch.manual_seed(SEED)
        pte, arrays = PROGRAMS[name]()
        program = options.out / f"{name}.pte"
        program.write_bytes(pte)
        np.savez_compressed(program.with_suffix(".npz"), **arrays)
        print(f"{name}: program {len(pte)} bytes")
        if len(pte) > MAX_BYTES:
            raise SystemExit(f"{name}: larger than {MAX_BYTES} bytes")


if __name__ == "__main__":
    main()
