#!/usr/bin/env python3
"""Export networks of torchvision, timm and transformers, to try vkrt on what people have.

    python tools/export/architectures.py NAME... [--out FOLDER]     NAME.pte and NAME.npz of each
    python tools/export/architectures.py - --out FOLDER             names from standard input
    python tools/export/architectures.py --list

Large networks are made with fewer or narrower layers, and most pictures are small. Weights are
random with a fixed seed; batch norms get the statistics of random input, so that the numbers keep
their size. Beside the inputs in0.. and the outputs out0.. of eager PyTorch in float32 the .npz has
`own`: the relative L2 distance of those outputs from eager PyTorch's in float64, which says how
much the network enlarges roundings (NaN where it cannot be computed in float64).

Each network is exported in a process of its own, and a line of JSON is printed for each:
{"name": .., "bytes": ..} or {"name": .., "error": ..}. `tools/measure/architectures.py` calls this
program, runs what it makes and prints a table.

Needs Python 3.10 to 3.12 with

    pip install torch==2.13.0 torchvision==0.28.0 executorch==1.5.1 timm transformers==5.24.0

(the networks from "gemma3" to "deepseek_v3" and from "dinov3" to "moonshine"; the others were
exported with "transformers<5".)
"""

import argparse
import json
import multiprocessing
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from exporting import SEED, arrays_of, lower, run_eager
from libraries import NETWORKS
from zoo import calibrate, randomize

LIMIT = 900  # seconds of one export


def enliven(module):
    """Give what is initialized so that it does nothing, heads of zeros and layer scales near zero,
    other numbers."""
    for name, parameter in module.named_parameters():
        last = name.rpartition(".")[2]
        if parameter.ndim > 1 and not parameter.any():
            nn.init.normal_(parameter, std=0.1)
        elif parameter.ndim == 1 and ("gamma" in last or "layer_scale" in last):
            nn.init.uniform_(parameter, 0.1, 0.3)


def own_error(module, inputs, outputs):
    """The relative L2 distance of float32's outputs from those of float64; NaN without these."""
    try:
        wide = run_eager(module.double(), [x.double() if x.is_floating_point() else x
                                           for x in inputs])
    except RuntimeError:
        return float("nan")
    finally:
        module.float()
    return max(float(np.linalg.norm(a - b) / (np.linalg.norm(b) or 1.0))
               for a, b in zip(outputs, wide))


def make(name, folder):
    """Exports one network; returns the size of its program."""
    torch.manual_seed(SEED)
    warnings.simplefilter("ignore")
    module, inputs = NETWORKS[name]()
    randomize(module)
    enliven(module)
    calibrate(module, inputs)
    module.eval()
    outputs = run_eager(module, inputs)
    if not all(np.isfinite(a).all() for a in outputs):
        raise ValueError("an output of eager PyTorch is not finite")
    if not all(a.any() for a in outputs):
        raise ValueError("an output of eager PyTorch is zero")
    own = own_error(module, inputs, outputs)
    with torch.no_grad():
        data = lower(module, inputs)
    (folder / f"{name}.pte").write_bytes(data)
    np.savez_compressed(folder / f"{name}.npz", own=own, **arrays_of(inputs, outputs))
    return len(data)


def attempt(pipe, name, folder):
    """What is printed of a network."""
    try:
        pipe.send({"name": name, "bytes": make(name, folder)})
    except Exception as error:  # whatever an exporter raises
        lines = str(error).strip().splitlines() or [""]
        pipe.send({"name": name, "error": f"{type(error).__name__}: {lines[0]}"[:300]})


def export_apart(name, folder):
    """Exports a network in a process of its own, which shares what this one has imported."""
    answers, end = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=attempt,
                                                          args=(end, name, folder))
    process.start()
    end.close()
    try:
        return answers.recv() if answers.poll(LIMIT) else {
            "name": name, "error": f"no end after {LIMIT} s"}
    except EOFError:
        process.join()
        return {"name": name, "error": f"the exporter ended with code {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="networks (default: all; -: from standard input)")
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for the files")
    parser.add_argument("--list", action="store_true", help="print the networks' names and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(NETWORKS))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    from executorch.backends.vulkan.partitioner import vulkan_partitioner  # noqa: F401 (for all)

    names = map(str.strip, sys.stdin) if options.name == ["-"] else options.name or NETWORKS
    for name in names:
        if name not in NETWORKS:
            parser.error(f"no such network: {name}")
        print(json.dumps(export_apart(name, options.out)), flush=True)


if __name__ == "__main__":
    main()
