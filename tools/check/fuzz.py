"""Loads and runs damaged programs: an answer or one of vkrt's exceptions has to come, and soon.

    python tools/check/fuzz.py                       10,000 files, of the programs in tests/models
    python tools/check/fuzz.py --count 500 --seed 7 --jobs 2 MODEL.pte FOLDER
    python tools/check/fuzz.py --seed 7 --index 312  one file again, in this process

Each file is a good program changed at a few places (see mutations.py); seed and index say
which and how. It is loaded with options that chance picks and, if that works, each method runs on
random inputs, twice, which has to give the same. What would take more than a gigabyte, or more work
than a second or so, is not run: the plan says so before anything is allocated.

Outcomes: ran; refused with a documented exception (those of vkrt, OSError); not run, because of its
size. Everything else is a finding and makes the exit code 1: another exception, results that
differ, the end of the process by a signal, a file that takes too long. Findings are written to
--out: the file, and what was done to it and came of it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from mutations import Model, mutate

ROOT = Path(__file__).resolve().parent.parent.parent
MAX_BYTES = 1 << 30
# Of all invocations, loops counted: about a second of a slow driver.
MAX_WORK = 100_000_000
MAX_MODEL_BYTES = 200_000
# CPU seconds of one file; and seconds that may pass, since a process can wait for nothing too.
CPU_SECONDS = 60
SECONDS = 600


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


def options_by_chance(rng: Random) -> Any:
    """Some options of loading."""
    from vkrt.plan.options import LoadOptions

    return LoadOptions(
        storage=rng.choice(["auto", "texel", "buffer", "texture3d"]),
        weights=rng.choice(["auto", "auto", "direct", "copy", "stream"]),
        order=rng.choice(["lazy", "lazy", "eager"]), packed="off",
        memory_budget=rng.choice([None, None, None, "smallest", "20KB"]))


def attempt(data: bytes, rng: Random, device: Any, folder: Path) -> str:
    """Loads and runs a program; returns the outcome, and lets what is no refusal through."""
    from vkrt.errors import VkrtError
    from vkrt.program import Description, Program

    options = options_by_chance(rng)
    source: Any = data
    if rng.random() < 0.5:
        source = folder / "damaged.pte"
        source.write_bytes(data)
    seed = rng.randrange(1 << 30)
    try:
        description = Description(source)
        try:
            names = description.method_names
            sizes = [_needs(description, name, device, options) for name in names]
        finally:
            description.close()
        if any(nbytes > MAX_BYTES or work > MAX_WORK for nbytes, work in sizes):
            return "not run: too large"
        with Program(source, device, options) as program:
            for name in names:
                random = np.random.default_rng(seed)
                inputs = [_array(info, random) for info in program.metadata(name).inputs]
                first = program.run(*inputs, method=name)
                program.reset_state(name)
                _compare(first, program.run(*inputs, method=name))
        return "ran"
    except (VkrtError, OSError) as error:
        return type(error).__name__


def _compare(first: list[Any], second: list[Any]) -> None:
    """What differs from run to run was read where nobody had written."""
    for index, (a, b) in enumerate(zip(first, second, strict=True)):
        if np.asarray(a).tobytes() != np.asarray(b).tobytes():
            raise AssertionError(f"output {index} is another one in the second run")


def _needs(description: Any, name: str, device: Any, options: Any) -> tuple[int, int]:
    """Bytes and invocations of a method."""
    from vkrt.method.arguments import metadata_of

    work, plan = description.predict(name, device, options)
    metadata = metadata_of(description.graph(name))
    border = sum(int(np.prod(info.sizes, dtype=object)) * np.dtype(info.dtype).itemsize
                 for info in (*metadata.inputs, *metadata.outputs))
    invocations = sum(step.invocations * (1 + step.loops) for step in work.steps
                      if hasattr(step, "invocations"))
    return plan.peak_bytes + plan.spill_bytes + 2 * border, invocations


def _array(info: Any, random: np.random.Generator) -> np.ndarray:
    if np.dtype(info.dtype).kind in "iu":
        return random.integers(-3 if np.dtype(info.dtype).kind == "i" else 0, 40,
                               info.sizes).astype(info.dtype)
    return random.standard_normal(info.sizes).astype(info.dtype)


@contextmanager
def _opened(specialize: bool) -> Iterator[Any]:
    """A device. Sizes are pushed by default, so that programs share compiled shaders."""
    from dataclasses import replace

    from vkrt.device.policy import overridden, policy_of
    from vkrt.vk.device import Device

    with Device.open(None) as device, overridden(replace(policy_of(device.info),
                                                         specialize=specialize)):
        yield device


def _work(pipe: Any, paths: list[str], seed: int, specialize: bool) -> None:
    """A worker: takes numbers of files, gives outcomes."""
    models = models_in(paths)
    with _opened(specialize) as device, tempfile.TemporaryDirectory() as folder:
        while (index := pipe.recv()) is not None:
            _, data, _, rng = damaged(models, seed, index)
            try:
                outcome, finding = attempt(data, rng, device, Path(folder)), ""
            except BaseException as error:  # whatever it is, it is what we look for
                outcome, finding = f"FINDING {type(error).__name__}", traceback.format_exc()
            pipe.send((index, outcome, finding))


class Worker:
    """A process that tries files one after another, and what it is at."""

    def __init__(self, options: argparse.Namespace):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=_work, args=(theirs, options.models, options.seed, options.specialize))
        self.process.start()
        theirs.close()
        self.index: int | None = None
        self.cpu = self.since = 0.0

    def give(self, index: int) -> None:
        self.index, self.cpu, self.since = index, self._cpu_seconds(), time.monotonic()
        self.pipe.send(index)

    def _cpu_seconds(self) -> float:
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def takes_too_long(self) -> bool:
        return (self._cpu_seconds() - self.cpu > CPU_SECONDS
                or time.monotonic() - self.since > SECONDS)

    def stop(self) -> None:
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.pipe.close()


class Campaign:
    """All files of a run, over some workers."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.outcomes: Counter[str] = Counter()
        self.models = models_in(options.models)
        self.out = Path(options.out)
        self.left = iter(range(options.first, options.first + options.count))
        self.workers: list[Worker] = []

    def run(self) -> int:
        """Tries all files; the number of findings."""
        findings, start = 0, time.monotonic()
        try:
            for _ in range(self.options.jobs):
                self._start()
            while self.workers:
                ready = wait([worker.pipe for worker in self.workers], 1.0)
                for worker in list(self.workers):
                    if worker.pipe in ready:
                        findings += self._take(worker)
                    elif worker.takes_too_long():
                        findings += self._end(worker, "FINDING took too long", "")
                done = sum(self.outcomes.values())
                if ready and done % 500 == 0:
                    print(f"{done} files, {findings} findings, {time.monotonic() - start:.0f} s",
                          file=sys.stderr, flush=True)
        finally:
            for worker in self.workers:
                worker.stop()
        return findings

    def _start(self) -> None:
        index = next(self.left, None)
        if index is not None:
            worker = Worker(self.options)
            worker.give(index)
            self.workers.append(worker)

    def _take(self, worker: Worker) -> int:
        """An answer of a worker, and its next file."""
        try:
            index, outcome, finding = worker.pipe.recv()
        except (EOFError, ConnectionError):
            worker.process.join()
            return self._end(worker, f"FINDING ended with code {worker.process.exitcode}", "")
        self._note(index, outcome, finding)
        following = next(self.left, None)
        if following is not None:
            worker.give(following)
        else:
            worker.pipe.send(None)
            worker.process.join()
            self.workers.remove(worker)
        return outcome.startswith("FINDING")

    def _end(self, worker: Worker, outcome: str, finding: str) -> int:
        """A worker that will not answer makes room for another."""
        worker.stop()
        self.workers.remove(worker)
        assert worker.index is not None
        self._note(worker.index, outcome, finding)
        self._start()
        return 1

    def _note(self, index: int, outcome: str, finding: str) -> None:
        self.outcomes[outcome] += 1
        if not outcome.startswith("FINDING"):
            return
        name, data, done, _ = damaged(self.models, self.options.seed, index)
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{Path(name).stem}-{self.options.seed}-{index}"
        path.with_suffix(".pte").write_bytes(data)
        path.with_suffix(".json").write_text(json.dumps(
            {"model": name, "seed": self.options.seed, "index": index, "done": done,
             "outcome": outcome, "finding": finding}, indent=2) + "\n", encoding="utf-8")
        last = finding.strip().splitlines()[-1:] or [""]
        print(f"{index} {Path(name).name}: {outcome} {last[0]}\n    {'; '.join(done)}", flush=True)


def again(options: argparse.Namespace) -> int:
    """One file in this process, with everything said about it."""
    name, data, done, rng = damaged(models_in(options.models), options.seed, options.index)
    print(f"{name}: {'; '.join(done)}", flush=True)
    with _opened(options.specialize) as device, tempfile.TemporaryDirectory() as folder:
        print(attempt(data, rng, device, Path(folder)))
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=[str(ROOT / "tests" / "models")],
                        help="programs and folders of them (default: tests/models)")
    parser.add_argument("--count", type=int, default=10_000, help="files (default: 10000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first (default: 0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--index", type=int, help="only this file, in this process")
    parser.add_argument("--specialize", action="store_true",
                        help="sizes as specialization constants: slower, each is compiled anew")
    parser.add_argument("--out", default="fuzz-findings", help="where findings go")
    options = parser.parse_args(arguments)
    if options.index is not None:
        return again(options)
    campaign = Campaign(options)
    findings = campaign.run()
    for outcome, count in campaign.outcomes.most_common():
        print(f"{count:>8}  {outcome}")
    print(f"{sum(campaign.outcomes.values()):>8}  files, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
