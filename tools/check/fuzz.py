"""Loads and runs damaged programs: an answer or one of vkrt's exceptions has to come, and soon.

    python tools/check/fuzz.py                       10,000 files, of the programs in tests/models
    python tools/check/fuzz.py --count 500 --seed 7 --jobs 2 MODEL.pte FOLDER
    python tools/check/fuzz.py --seed 7 --index 312  one file again, in this process

Each file is a good program changed at a few places (see mutations.py); seed and index say
which and how. It is loaded with options that chance picks and, if that works, each method runs on
random inputs, twice, which has to give the same. What would take more than a gigabyte, or more work
than a second or so, is not run: the plan says so before anything is allocated.

Outcomes: ran; refused with a documented exception (those of vkrt, OSError); not run, because of its
size. Everything else is a finding and makes the exit code 1: another exception, an InternalError
(lowering has met an exception that is none of vkrt's), results that differ, the end of the process
by a signal, a file that takes too long. Findings are written to --out: the file, and what was done
to it and came of it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any

import numpy as np
from mutations import Model, mutate

from vkrt.compiler.description import Description
from vkrt.device.policy import overridden, policy_of
from vkrt.errors import InternalError, VkrtError
from vkrt.method.arguments import metadata_of
from vkrt.plan.options import LoadOptions
from vkrt.program.program import Program
from vkrt.runtime.open_device import OpenDevice
from vkrt.vk.device import Device

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_BYTES = 1 << 30
# Of all invocations, loops counted: about a second of a slow driver.
MAX_WORK = 100_000_000
MAX_MODEL_BYTES = 200_000
# One file may take so long, and the start of a process with it.
SECONDS = 300


def models_in(paths: list[str]) -> list[Model]:
    """The small programs among files and folders."""
    files: list[Path] = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.pte")) if path.is_dir() else [path]
    return [Model.of(str(file), file.read_bytes()) for file in files
            if file.stat().st_size <= MAX_MODEL_BYTES]


def damaged(models: list[Model], seed: int, index: int) -> tuple[str, bytes, list[str], Random]:
    """File number `index`: the program it comes from, its bytes, what was done, and the chance that
    goes on from there."""
    rng = Random(f"{seed} {index}")
    model = rng.choice(models)
    data, done = mutate(model, models, rng)
    return model.name, data, done, rng


def options_by_chance(rng: Random) -> LoadOptions:
    """Some options of loading."""
    return LoadOptions(
        storage=rng.choice(["auto", "texel", "buffer", "texture3d"]),
        weights=rng.choice(["auto", "auto", "direct", "copy", "stream"]),
        order=rng.choice(["lazy", "lazy", "eager"]),
        memory_budget=rng.choice([None, None, None, "smallest", "20KB"]),
        cache=rng.choice(["float", "int8"]))


def attempt(data: bytes, rng: Random, device: Device, folder: Path) -> str:
    """Loads and runs a program; returns the outcome, and lets what is no refusal through."""
    options = options_by_chance(rng)
    source: Any = data
    if rng.random() < 0.5:
        source = folder / "damaged.pte"
        source.write_bytes(data)
    seed = rng.randrange(1 << 30)
    try:
        with closing(Description(source)) as description:
            names = description.method_names
            sizes = [_needs(description, name, device, options) for name in names]
        if any(nbytes > MAX_BYTES or work > MAX_WORK for nbytes, work in sizes):
            return "not run: too large"
        with Program(source, device, options) as program:
            for name in names:
                random = np.random.default_rng(seed)
                inputs = [_array(info, random) for info in program.metadata(name).inputs]
                first = program.run(*inputs, method=name)
                program.reset_state(name)
                # What differs from run to run was read where nobody had written.
                for index, (a, b) in enumerate(zip(
                        first, program.run(*inputs, method=name), strict=True)):
                    if np.asarray(a).tobytes() != np.asarray(b).tobytes():
                        raise AssertionError(f"output {index} is another one in the second run")
        return "ran"
    except InternalError:
        raise
    except (VkrtError, OSError) as error:
        return type(error).__name__


def _needs(description: Description, name: str, device: Device, options: LoadOptions
           ) -> tuple[int, int]:
    """Bytes and invocations of a method."""
    planned = description.compile(name, OpenDevice(device), options)
    metadata = metadata_of(description.graph(name))
    border = sum(int(np.prod(info.sizes, dtype=object)) * np.dtype(info.dtype).itemsize
                 for info in (*metadata.inputs, *metadata.outputs) if info.dtype != "none")
    invocations = sum(step.invocations * (1 + step.loops) for step in planned.work.steps
                      if hasattr(step, "invocations"))
    return planned.memory.peak_bytes + planned.memory.spill_bytes + 2 * border, invocations


def _array(info: Any, random: np.random.Generator) -> Any:
    if info.fixed:
        return info.fixed[0]
    if (kind := np.dtype(info.dtype).kind) in "iu":
        return random.integers(-3 if kind == "i" else 0, 40, info.sizes).astype(info.dtype)
    return random.standard_normal(info.sizes).astype(info.dtype)


@contextmanager
def _opened() -> Iterator[Device]:
    """A device. Sizes are pushed, so that programs share compiled shaders."""
    with (Device.open(None) as device,
          overridden(replace(policy_of(device.info), specialize={}))):
        yield device


def _work(pipe: Any, paths: list[str], seed: int) -> None:
    """A worker: takes numbers of files, gives outcomes."""
    models = models_in(paths)
    with _opened() as device, tempfile.TemporaryDirectory() as folder:
        while (index := pipe.recv()) is not None:
            _, data, _, rng = damaged(models, seed, index)
            try:
                outcome, finding = attempt(data, rng, device, Path(folder)), ""
            except BaseException as error:  # whatever it is, it is what we look for
                outcome, finding = f"FINDING {type(error).__name__}", traceback.format_exc()
            pipe.send((outcome, finding))


class Worker:
    """A process that tries files one after another, and ends with this one."""

    def __init__(self, options: argparse.Namespace):
        self.pipe, end = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(end, options.models, options.seed), daemon=True)
        self.process.start()
        end.close()

    def attempt(self, index: int) -> tuple[str, str]:
        """The outcome of a file, and what is to be said about it."""
        try:
            self.pipe.send(index)
            if self.pipe.poll(SECONDS):
                return self.pipe.recv()
            self.process.kill()
            outcome = "FINDING took too long"
        except (EOFError, ConnectionError):
            self.process.join()
            outcome = f"FINDING ended with code {self.process.exitcode}"
        self.pipe.close()
        return outcome, ""

    def end(self) -> None:
        self.pipe.send(None)
        self.process.join()


def outcomes_of(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The outcomes of all files, in their order, by some workers."""
    idle: SimpleQueue[Worker | None] = SimpleQueue()
    for _ in range(options.jobs):
        idle.put(None)  # started with its first file, and anew where the former one ended

    def outcome_of(index: int) -> tuple[str, str]:
        worker = idle.get() or Worker(options)
        found = worker.attempt(index)
        idle.put(None if worker.pipe.closed else worker)
        return found

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            yield from pool.map(outcome_of, range(options.count))
        finally:
            pool.shutdown(cancel_futures=True)
            while not idle.empty():
                if (worker := idle.get()) is not None:
                    worker.end()


def keep(options: argparse.Namespace, models: list[Model], index: int, outcome: str,
         finding: str) -> None:
    """Writes a finding to its folder, and a line about it."""
    name, data, done, _ = damaged(models, options.seed, index)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{Path(name).stem}-{options.seed}-{index}"
    path.with_suffix(".pte").write_bytes(data)
    path.with_suffix(".json").write_text(json.dumps(
        {"model": name, "seed": options.seed, "index": index, "done": done,
         "outcome": outcome, "finding": finding}, indent=2) + "\n", encoding="utf-8")
    last = finding.strip().splitlines()[-1:] or [""]
    print(f"{index} {Path(name).name}: {outcome} {last[0]}\n    {'; '.join(done)}", flush=True)


def again(options: argparse.Namespace) -> int:
    """One file in this process, with everything said about it."""
    name, data, done, rng = damaged(models_in(options.models), options.seed, options.index)
    print(f"{name}: {'; '.join(done)}", flush=True)
    with _opened() as device, tempfile.TemporaryDirectory() as folder:
        print(attempt(data, rng, device, Path(folder)))
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=[str(ROOT / "tests" / "models")],
                        help="programs and folders of them (default: tests/models)")
    parser.add_argument("--count", type=int, default=10_000, help="files (default: 10000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--index", type=int, help="only this file, in this process")
    parser.add_argument("--out", type=Path, default="fuzz-findings", help="where findings go")
    options = parser.parse_args(arguments)
    if options.index is not None:
        return again(options)
    models = models_in(options.models)
    outcomes: Counter[str] = Counter()
    findings = 0
    for index, (outcome, finding) in enumerate(outcomes_of(options)):
        outcomes[outcome] += 1
        if outcome.startswith("FINDING"):
            findings += 1
            keep(options, models, index, outcome, finding)
        if index % 500 == 499:
            print(f"{index + 1} files, {findings} findings", file=sys.stderr, flush=True)
    for outcome, count in outcomes.most_common():
        print(f"{count:>8}  {outcome}")
    print(f"{options.count:>8}  files, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
