"""The inner loop of text-to-image under a memory budget, and what it takes.

    python tools/diffusion.py unet-32.pte                   the program of tools/export/diffusion.py
    python tools/diffusion.py unet-32.pte --share 0.2 --steps 4

Latents of noise become latents of a picture in some steps, in each of which the network says which
noise is in them (DDIM's steps, without guidance: one call of the network each). With random weights
that is no picture, and takes what one takes.

The loop runs twice: with every weight on the device, and under a budget of a share of the weights'
bytes (15 %). The budget bounds all of the device's memory: the streamed weights' pool, activations,
inputs, outputs and staging. Beside the program lies its .npz with the output of eager PyTorch,
which the first one is compared with. Exits 1 if a measured peak is not the planned one or is
beyond the budget, if a bit of the latents differs between the loops, or if the output is off by
more than 1 % of PyTorch's.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import vkrt

# Noise is added to pictures in so many steps in training, from BETAS[0] on to BETAS[1] of it.
TRAINED, BETAS = 1000, (0.00085, 0.012)
MAX_ERROR = 1e-2


def waves(number: int, width: int) -> np.ndarray:
    """The number of a noise step as float32 [1, width]: cosines, then sines."""
    rates = np.exp(np.arange(width // 2) * (-np.log(1e4) / (width // 2)))
    return np.concatenate((np.cos(number * rates), np.sin(number * rates)))[None].astype(np.float32)


def kept_share(steps: int) -> tuple[list[int], list[float]]:
    """Numbers of the noise steps from the most noise on, and the share of the picture in each."""
    betas = np.linspace(BETAS[0] ** 0.5, BETAS[1] ** 0.5, TRAINED) ** 2
    shares = np.cumprod(1 - betas)
    numbers = [TRAINED * (steps - n) // steps - 1 for n in range(steps)]
    return numbers, [float(shares[number]) for number in numbers]


@dataclass
class Loop:
    """What a loop made and took."""

    latents: np.ndarray  # at its end
    error: float  # of the call whose output is known, relative L2
    seconds: list[float]  # of each step
    load: float  # seconds to load, and of the first call, which makes what later ones use again
    read: int  # bytes of the file in each step, as planned
    memory: vkrt.MemoryReport


def denoise(path: Path, known: dict[str, np.ndarray], steps: int, **options: Any) -> Loop:
    """Loads the program and runs the loop; the text is in2 of the arrays in0.. and out0."""
    start = time.perf_counter()
    with vkrt.load(path, **options) as program:
        output, = program.run(*(known[f"in{i}"] for i in range(3)))
        load = time.perf_counter() - start
        error = np.linalg.norm(output - known["out0"]) / np.linalg.norm(known["out0"])
        latents = np.random.default_rng(1).standard_normal(known["in0"].shape, np.float32)
        width, text = known["in1"].shape[1], known["in2"]
        numbers, shares = kept_share(steps)
        seconds = []
        for number, share, after in zip(numbers, shares, [*shares[1:], 1.0]):
            start = time.perf_counter()
            noise, = program.run(latents, waves(number, width), text)
            clean = (latents - (1 - share) ** 0.5 * noise) / share ** 0.5
            latents = (after ** 0.5 * clean + (1 - after) ** 0.5 * noise).astype(np.float32)
            seconds.append(time.perf_counter() - start)
        stream = program.load_method("forward").plan.stream
        return Loop(latents, float(error), seconds, load,
                    stream.bytes_per_run if stream else 0, program.memory)


def show(name: str, loop: Loop) -> None:
    memory = loop.memory
    print(f"{name}\n  load and first call {loop.load:.1f} s; steps "
          f"{', '.join(f'{s:.1f}' for s in loop.seconds)} s; {loop.read / 1e6:.1f} MB read in each")
    for what in ("weights", "pool", "staging", "activations", "planned_peak", "measured_peak"):
        print(f"  {what.replace('_', ' '):14}{getattr(memory, what):>16,} B")
    print(f"  off by {loop.error:.1e} from eager PyTorch in float32")
    for note in memory.notes:
        print(f"  {note}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="a program of tools/export/diffusion.py")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.15, help="of the weights' bytes; 0.15")
    options = parser.parse_args()
    with np.load(options.model.with_suffix(".npz")) as arrays:
        known = dict(arrays)
    whole = denoise(options.model, known, options.steps, weights="direct")
    show("every weight on the device", whole)
    budget = int(options.share * whole.memory.weights)
    part = denoise(options.model, known, options.steps, weights="stream", memory_budget=budget)
    show(f"a budget of {budget:,} B, {options.share:.0%} of the weights", part)
    ratio = sum(part.seconds) / sum(whole.seconds)
    print(f"a step takes {ratio:.2f} of the time; the device holds "
          f"{part.memory.measured_peak / whole.memory.measured_peak:.1%}")
    wrong = [what for what, is_wrong in (
        ("the measured peak is not the planned one", any(
            loop.memory.measured_peak != loop.memory.planned_peak for loop in (whole, part))),
        ("the peak is beyond the budget", part.memory.measured_peak > budget),
        ("the latents differ", whole.latents.tobytes() != part.latents.tobytes()),
        ("the output is wrong", not whole.error <= MAX_ERROR)) if is_wrong]
    print("; ".join(wrong) or "the same bits")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
