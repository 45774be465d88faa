#!/usr/bin/env python3
"""Make a program of stacked linear layers with ReLU, to measure loading and matrix speed.

    python tools/export_linears.py [--layers 12] [--width 2048] [--rows 1] [--dtype fp32]
                                   [--out linears-12x2048.pte]

The program takes one input (rows, width) and passes it through ``layers`` times linear + ReLU; the
default one is 201 MB large.  A .npz with in0 and out0 (eager PyTorch, float32) is put beside it.
The weights are random with a fixed seed and scaled so that the numbers keep their size.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 executorch==1.5.1

and, for the default size, about 2 GB of memory.
"""

import argparse
from pathlib import Path

import torch
import torch.nn as nn
from exporting import SEED, describe, lower, print_steps, run_eager, save_arrays


def stack(layers, width):
    """Return ``layers`` times linear + ReLU, with weights that keep the size of the numbers."""
    modules = []
    for _ in range(layers):
        linear = nn.Linear(width, width)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        modules += [linear, nn.ReLU()]
    return nn.Sequential(*modules).eval()


def main(argv=None):
    """Read the command line and export the program."""
    parser = argparse.ArgumentParser(description="Make a program of stacked linear layers.")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--rows", type=int, default=1, help="rows of the input")
    parser.add_argument("--dtype", choices=("fp32", "fp16"), default="fp32")
    parser.add_argument("--out", type=Path, help="the .pte file to write")
    options = parser.parse_args(argv)
    name = f"linears-{options.layers}x{options.width}"
    if options.dtype == "fp16":
        name += "-fp16"
    out = options.out or Path(f"{name}.pte")

    torch.manual_seed(SEED)
    module = stack(options.layers, options.width)
    inputs = (torch.randn(options.rows, options.width),)
    outputs = run_eager(module, inputs)
    pte = lower(module, inputs, force_fp16=options.dtype == "fp16")
    out.write_bytes(pte)
    save_arrays(out.with_suffix(".npz"), inputs, outputs)
    print(f"{out}: {len(pte)} bytes")
    print_steps(describe(pte))


if __name__ == "__main__":
    main()
