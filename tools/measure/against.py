"""How long does a program take beside the PyTorch module that it was exported from?

    python tools/measure/against.py MODEL.pte nets.py:resnet

The function of the file returns the module. Both get the same inputs in this process; printed are
the medians in milliseconds, and the relative L2 distance of all outputs.
"""

from __future__ import annotations

import argparse
import runpy

import numpy as np
import torch

import vkrt
from vkrt.cli.bench import repeated, sample_inputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("function", help="FILE.py:NAME")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    file, _, name = options.function.rpartition(":")
    module = runpy.run_path(file)[name]().eval()
    with vkrt.load(options.model) as program, torch.no_grad():
        inputs = sample_inputs(program.metadata())
        tensors = [torch.from_numpy(array) for array in inputs]
        found, wanted = program.run(*inputs), module(*tensors)
        wanted = [array.numpy() for array in (
            wanted if isinstance(wanted, (list, tuple)) else [wanted])]
        results, expected = (np.concatenate([array.astype(np.float64).ravel() for array in arrays])
                        for arrays in (found, wanted))
        for what, times in (("vkrt", repeated(lambda: program.run(*inputs), options.runs)),
                            ("PyTorch", repeated(lambda: module(*tensors), options.runs))):
            print(f"{what:<8}{1e3 * times.median:>9.2f} ms, of CPUs {1e3 * times.cpu:.2f} ms")
    error = np.linalg.norm(results - expected) / np.linalg.norm(expected)
    print(f"relative L2 distance {error:.2g}")


if __name__ == "__main__":
    main()
