"""Runs a program of XNNPACK delegates with ExecuTorch's runtime in its wheel; see timing.py."""

from importlib.metadata import version

import timing
import torch
from executorch.extension.pybindings import portable_lib


def load(path, threads):
    portable_lib._unsafe_reset_threadpool(threads)
    program = portable_lib._load_for_executorch(path)
    return lambda x: program.forward([torch.from_numpy(x)])[0].numpy()


timing.measure(load, {"version": version("executorch")})
