"""Runs a program over many files, on several processes or machines by Ray.

    pip install 'vkrt[ray]'
    python batch.py MODEL.pte FOLDER --out RESULTS [--actors 2]
    python batch.py MODEL.pte LIST.txt --out RESULTS --mean 127 --scale 128

FOLDER, or the lines of LIST.txt, are pictures, or `.npy` files with the program's first input. A
picture is resized to the input, [1,3,height,width], as (value - mean) / scale. For each file the
outputs go to RESULTS/NAME.npz; what failed, and why, to RESULTS/failures.jsonl. Files that have a
result are left out, so that a batch that was interrupted goes on where it was. Ray keeps the rest:
it starts the actors, hands out files, and replaces an actor that dies. Each actor loads the program
once.

On more machines: start Ray on each (`ray start`), give `--address`, and put model, files and
results on a file system that all of them see. A GPU wants one actor: `--actors` as many
as there are GPUs, and `ray.remote(num_gpus=1)` for machines with several, each of whose actors then
opens the device of its number (`--device`). Actors that share a device share its memory, so each
gets a `--memory-budget`. On processors every actor computes on all cores: one for each machine.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import vkrt

PICTURES = (".png", ".jpg", ".jpeg", ".ppm", ".bmp", ".webp")


class Worker:
    """A program, loaded once with options of `vkrt.load`, that writes the results of files to a
    folder; `mean` and `scale` are of pictures' values, 0 to 255."""

    def __init__(self, model: str, out: str, mean: float, scale: float, options: dict[str, Any]):
        self.program = vkrt.load(model, **options)
        self.input = self.program.metadata().inputs[0]
        self.out = Path(out)
        self.mean, self.scale = mean, scale

    def process(self, path: str) -> tuple[str, str]:
        """Writes the outputs of a file. Returns (path, what went wrong or "")."""
        try:
            outputs = self.program.run(self._read(Path(path)))
        except (OSError, ValueError, vkrt.VkrtError) as error:
            if isinstance(error, vkrt.VulkanError):
                raise  # of the device and not of the file: this actor can do no more
            return path, f"{type(error).__name__}: {error}"
        target = result_of(self.out, path)
        # Complete under its name, or not there.
        partial = target.with_suffix(f".{os.getpid()}.partial")
        with partial.open("wb") as file:
            np.savez(file, **{f"out{i}": output for i, output in enumerate(outputs)})
        partial.replace(target)
        return path, ""

    def _read(self, path: Path) -> np.ndarray:
        if path.suffix == ".npy":
            return np.load(path)
        from PIL import Image

        height, width = self.input.sizes[-2:]
        picture = Image.open(path).convert("RGB").resize((width, height))
        values = (np.asarray(picture, np.float32) - self.mean) / self.scale
        return np.ascontiguousarray(values.transpose(2, 0, 1)[None]).astype(self.input.dtype)


def files_of(given: Path) -> list[str]:
    """The files of a folder, or those that a list names, one a line."""
    if given.is_dir():
        return sorted(str(path) for path in given.iterdir()
                      if path.suffix.lower() in (*PICTURES, ".npy"))
    return [line for line in given.read_text().splitlines() if line.strip()]


def result_of(out: Path, path: str) -> Path:
    """Where the outputs of a file go."""
    return out / f"{Path(path).name}.npz"


def on_actors(worker: tuple[Any, ...], files: Iterable[str], actors: int,
              address: str | None) -> Iterator[tuple[str, str]]:
    """Processes files on so many actors of Ray, in the order in which they are done."""
    import ray
    from ray.util import ActorPool

    ray.init(address=address, log_to_driver=False, include_dashboard=False)
    try:
        kind = ray.remote(max_restarts=3, max_task_retries=3)(Worker)
        pool = ActorPool([kind.remote(*worker) for _ in range(actors)])
        yield from pool.map_unordered(lambda actor, path: actor.process.remote(path), files)
    finally:
        ray.shutdown()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("files", type=Path, help="a folder, or a list of files")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--actors", type=int, default=1, help="0: in this process, without Ray")
    parser.add_argument("--address", help="of a Ray cluster; one on this machine by default")
    parser.add_argument("--mean", type=float, default=0)
    parser.add_argument("--scale", type=float, default=255)
    parser.add_argument("--device", type=int, help="the number of the device on each machine")
    parser.add_argument("--memory-budget", help="of each actor, such as 300MB")
    options = parser.parse_args(words)
    options.out.mkdir(parents=True, exist_ok=True)
    files = files_of(options.files)
    left = [path for path in files if not result_of(options.out, path).exists()]
    print(f"{len(files)} files, {len(files) - len(left)} done before")
    worker = (str(options.model.resolve()), str(options.out.resolve()), options.mean, options.scale,
              {"device": options.device, "memory_budget": options.memory_budget})
    if options.actors:
        results = on_actors(worker, left, options.actors, options.address)
    else:
        results = map(Worker(*worker).process, left)
    failed = 0
    with (options.out / "failures.jsonl").open("w") as failures:
        for number, (path, error) in enumerate(results, 1):
            if error:
                failed += 1
                failures.write(json.dumps({"file": path, "error": error}) + "\n")
            if sys.stdout.isatty() or number == len(left):
                print(f"\r{number} of {len(left)}, {failed} failed", end="", flush=True)
    print()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
