"""Do random networks in parts give the numbers that they give whole, in the planned bytes?

    python tools/check/divisions.py                        networks 0 to 999
    python tools/check/divisions.py --first 1000 --count 9 these

Runs on the driver that VK_DRIVER_FILES says. Each number is a network of those of
tests/ops/any_networks.py: chains of layers of images, blocks of convolutions with many channels in
the middle, with squeeze-and-excite or without, layers of transformers with weights of floats or of
4 bits, or wide layers of rows with sums and means of them. It runs whole and without fusions, and
then as each `prefer` of a load has it, in one of the storages; every third one with dynamic sizes,
at several of them. A line is printed for each network whose results differ by a relative L2 error
of 1e-5 or more, whose memory is not as planned, or more than whole, or that fails. The last line
says how many took less memory, and the largest error. Exits 1 if one was wrong.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.vk.device import Device

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ops")]

from any_networks import any_chain, any_images, any_layers, any_rows, any_squeezed  # noqa: E402
from networks import inputs_of, results_at, run  # noqa: E402
from support import relative_l2  # noqa: E402

MAKERS = any_images, any_chain, any_squeezed, any_layers, any_rows
STORAGES = "texel", "buffer", "texture3d"
PREFERENCES = "speed", "balanced", "memory"
MAX_ERROR = 1e-5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    wrong = divided = 0
    worst = 0.0
    with Device.open() as device:
        for number in range(options.first, options.first + options.count):
            try:
                error, less = check(number, device)
                fault = f"differs by {error:.1e}" if error >= MAX_ERROR else ""
            except Exception as failure:
                error, less, fault = 0.0, False, f"{type(failure).__name__}: {failure}"
            if fault:
                print(f"{number}: {fault}", flush=True)
            wrong, divided, worst = wrong + bool(fault), divided + less, max(worst, error)
    print(f"{options.count} networks, {wrong} wrong, {divided} with less memory in parts; largest "
          f"error {worst:.1e}")
    return int(wrong > 0)


def check(number: int, device: Any) -> tuple[float, bool]:
    """The largest relative L2 error of a network as the preferences have it, and whether one of
    them takes less memory than the whole network. Asserts that its memory is as planned, and not
    more than whole."""
    make, storage = MAKERS[number % 5], STORAGES[number // 5 % 3]
    is_dynamic = number // 15 % 3 == 2
    net = make(number)
    dims = (2, 3) if net.x.rank == 4 else (net.x.rank - 2,)
    inputs = inputs_of(net, dims) if is_dynamic else []

    def results(prefer: str, **more: str) -> tuple[list[np.ndarray], int]:
        if is_dynamic:
            return results_at(make(number), dims, device, inputs, prefer, storage, **more)
        return run(make(number), device, prefer, storage, **more)

    whole, _ = results("speed", fusions="off")
    worst, taken = 0.0, []
    for prefer in PREFERENCES:
        found, nbytes = results(prefer)
        worst = max([worst, *map(relative_l2, found, whole)])
        taken.append(nbytes)
    assert all(more >= less for more, less in itertools.pairwise(taken)), (
        f"{', '.join(PREFERENCES)} take {taken} bytes")
    return worst, taken[-1] < taken[0]


if __name__ == "__main__":
    sys.exit(main())
