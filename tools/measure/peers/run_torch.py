"""Runs a network with eager PyTorch; see timing.py. The weights' folder is named as the network."""

from pathlib import Path

import networks
import timing
import torch


def load(path, threads):
    torch.set_num_threads(threads)
    module = networks.empty(Path(path).parent.name)
    module.load_state_dict(torch.load(path), assign=True)

    def run(x):
        with torch.inference_mode():
            return module(torch.from_numpy(x)).numpy()

    return run


timing.measure(load, {"version": torch.__version__})
