"""Do language models give the same logits however texts are cut up, kept, copied and interleaved?

    python tools/check/texts.py tests/models/llama.pte     schedules 0 to 99, of each program
    python tools/check/texts.py --first 7 --count 1 FILE.. this one

Runs on the driver that VK_DRIVER_FILES says. The programs are language models with caches in
floats. What is right are the logits behind each token of a few texts, read token by token by the
program as it is loaded by default; with a FILE.npz beside the program that has `tokens` and `ref`,
those of eager PyTorch. A schedule is a load in some way (storages, preferences, fusions, budgets
between the smallest and none, caches in 8 bits, with a cached plan, compiled for some numbers of
tokens) and 40 steps with a few states: a text goes on by any number of tokens, goes back, is left
for another one, is copied from another state, or saved and loaded. In a third of them threads do
that side by side, each with its own states. A line is printed for each schedule with a wrong
result, more memory than planned, or a failure; the last line says the largest errors. Exits 1 if
one was wrong.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import vkrt
from vkrt.compiler.plan_search import BudgetTooSmall
from vkrt.text.model import LanguageModel

STORAGES = "texel", "buffer", "texture3d"
PREFERENCES = "speed", "balanced", "memory"
STEPS, TEXTS, STATES = 40, 3, 3
# The relative L2 error that logits may have: of caches in floats, and of those in 8 bits. Programs
# that quantize rows as they come (8da4w) round a few numbers otherwise for any other last bit.
BOUNDS = {"float": 5e-5, "int8": 8e-2}
ROUNDED_BOUND = 8e-2


class Texts:
    """A program's texts, and the logits behind each of their tokens.

    Attributes:
        has_places: whether a run takes the place of each token, not only of the first.
        smallest, largest: bytes on the device with the smallest budget, and by default.
    """

    def __init__(self, path: Path, device: Any):
        self.path = path
        with vkrt.load(path, device, memory_budget="smallest", plan_cache="off") as program:
            self.smallest = program.memory.planned_peak
        with vkrt.load(path, device, plan_cache="off") as program:
            model = LanguageModel(program)
            self.largest = program.memory.planned_peak
            self.rounds = any("quantize_row" in shader for shader in _shaders(program))
            chance = np.random.default_rng(1)
            self.longest, self.context = model.longest, model.context
            self.has_places = program.metadata().inputs[1].sizes[0] > 1
            self.texts = [chance.integers(0, model.vocabulary, self.context)
                          for _ in range(TEXTS)]
            self.logits = []
            archive = path.with_suffix(".npz")
            known = np.load(archive) if archive.exists() else {}
            for text in self.texts:
                program.reset_state()
                self.logits.append([model.run([int(token)], place)
                                    for place, token in enumerate(text)])
            if "ref" in known:
                self.texts.append(known["tokens"])
                self.logits.append(list(known["ref"]))

    def options(self, chance: random.Random) -> dict[str, Any]:
        """A way to load the program."""
        options = {"storage": chance.choice(STORAGES), "prefer": chance.choice(PREFERENCES),
                   "fusions": chance.choice(("on", "on", "off")),
                   "cache": chance.choice(("float", "float", "int8")),
                   "specialize": chance.choice(("few", "few", "all", "none"))}
        kind = chance.randrange(6)
        if kind == 1:
            options |= {"memory_budget": "smallest"}
        elif kind == 2:
            options |= {"memory_budget": chance.randrange(self.smallest, self.largest + 1000)}
        elif kind == 3:
            options |= {"weights": "stream", "stream_lookahead": chance.randrange(3)}
        elif kind == 4:
            options |= {"weights": chance.choice(("copy", "direct"))}
        return options


def _shaders(program: Any) -> list[str]:
    from vkrt.work.records import Dispatch

    work = program.load_method("forward").work
    return [step.shader for step in work.steps if isinstance(step, Dispatch)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    count, wrong, worst = 0, 0, dict.fromkeys(("exact", "rounded"), 0.0)
    with vkrt.Device.open() as device, tempfile.TemporaryDirectory() as folder:
        for path in options.programs:
            texts = Texts(path, device)
            for number in range(options.first, options.first + options.count):
                chance, how = random.Random(f"{path.stem} {number}"), {}
                count += 1
                try:
                    how = texts.options(chance)
                    error = schedule(texts, device, chance, how, Path(folder))
                    kind = "rounded" if texts.rounds or how["cache"] == "int8" else "exact"
                    worst[kind] = max(worst[kind], error)
                except Exception as failure:
                    wrong += 1
                    print(f"{path.name} {number}: {how}: {type(failure).__name__}: {failure}",
                          flush=True)
    print(f"{count} schedules, {wrong} wrong; largest errors {worst['exact']:.1e}, where numbers "
          f"are rounded {worst['rounded']:.1e}")
    return int(wrong > 0)


def schedule(texts: Texts, device: Any, chance: random.Random, how: dict[str, Any],
             folder: Path) -> float:
    """The largest error of a schedule."""
    counts = []
    if texts.longest > 1 and chance.random() < 0.25:
        counts = [1, *chance.sample(range(2, texts.longest + 1), min(3, texts.longest - 1))]
        how["compiled"] = counts
    elif chance.random() < 0.3:
        how["cached"] = True
    with opened(texts, device, counts, how, folder) as program:
        model, budget = LanguageModel(program), how.get("memory_budget")
        assert not isinstance(budget, int) or program.memory.planned_peak <= budget, (
            f"{program.memory.planned_peak} bytes planned")
        bound = ROUNDED_BOUND if texts.rounds else BOUNDS[how["cache"]]
        if chance.random() < 1 / 3:
            seeds = [chance.random() for _ in range(3)]
            how["threads"] = len(seeds)
            with ThreadPoolExecutor(len(seeds)) as pool:
                errors = list(pool.map(
                    lambda seed: Player(texts, model, random.Random(seed), bound, own=True).play(
                        STEPS // 3), seeds))
        else:
            errors = [Player(texts, model, chance, bound).play(STEPS)]
        memory = program.memory
        assert memory.measured_peak <= memory.planned_peak, (
            f"{memory.measured_peak} bytes, {memory.planned_peak} planned")
    return max(errors)


def opened(texts: Texts, device: Any, counts: list[int], how: dict[str, Any], folder: Path) -> Any:
    """The program, compiled for some numbers of tokens if there are any. A budget that is too small
    becomes the one that the error asks for."""
    options = {name: value for name, value in how.items() if name != "compiled"}
    try:
        if not counts:
            plans = folder if options.pop("cached", False) else "off"
            if plans == folder:  # the next load has the plan that this one keeps
                vkrt.load(texts.path, device, plan_cache=plans, **options).close()
            return vkrt.load(texts.path, device, plan_cache=plans, **options)
        vkrt.compile(texts.path, folder / "compiled.vkx", device=device,
                     shapes=[[(1, count), (count if texts.has_places else 1,)]
                             for count in counts], **options)
        return vkrt.load(folder / "compiled.vkx", device)
    except BudgetTooSmall as error:
        assert how["memory_budget"] < error.needed, f"{how}: {error}"
        how["memory_budget"] = error.needed
        return opened(texts, device, counts, how, folder)


class Player:
    """Somebody who reads texts over a few states, in any order.

    Args:
        own: whether all states are further ones, because others use the method's own.
    """

    def __init__(self, texts: Texts, model: LanguageModel, chance: random.Random, bound: float,
                 own: bool = False):
        self.texts, self.model, self.chance, self.bound = texts, model, chance, bound
        program = model.program
        self.states = [program.load_method("forward").state] * (not own)
        self.states += [program.new_state() for _ in range(STATES - len(self.states))]
        self.opened = self.states[not own:]
        # Which text each state has, and how many of its tokens
        self.held = [(chance.randrange(len(texts.texts)), 0) for _ in self.states]
        self.saved: list[tuple[Any, tuple[int, int]]] = []
        self.worst, self.log = 0.0, []

    def play(self, steps: int) -> float:
        """The largest error; an AssertionError says what was done."""
        try:
            for _ in range(steps):
                self.step()
        except Exception as failure:
            raise AssertionError(
                f"{type(failure).__name__}: {failure}; {self.log[-12:]}") from failure
        finally:
            for state in self.opened:
                state.close()
        return self.worst

    def step(self) -> None:
        chance = self.chance
        which, kind = chance.randrange(len(self.states)), chance.randrange(12)
        state, (text, place) = self.states[which], self.held[which]
        if kind == 0:
            self.log.append(f"reset {which}")
            state.reset()
            self.held[which] = chance.randrange(len(self.texts.texts)), 0
        elif kind == 1 and self.model.can_rewind:
            self.held[which] = text, chance.randrange(place + 1)
            self.log.append(f"{which} back to {self.held[which][1]}")
        elif kind == 2:
            other = chance.randrange(len(self.states))
            self.log.append(f"{other} to {which}")
            state.load(self.states[other].save())
            self.held[which] = self.held[other]
        elif kind == 3:
            self.log.append(f"save {which}")
            self.saved.append((state.save(), (text, place)))
        elif kind == 4 and self.saved:
            values, self.held[which] = chance.choice(self.saved)
            self.log.append(f"load {which}")
            state.load(values)
        elif kind == 5:
            self.log.append(f"{which} anew")
            self.held[which] = chance.randrange(len(self.texts.texts)), 0
        else:
            self.read(which)

    def read(self, which: int) -> None:
        """Reads some tokens more, and compares the logits."""
        text, place = self.held[which]
        left = min(self.texts.context - place, self.model.longest)
        if not left:
            self.held[which] = text, 0
            return
        counts = [n for n in self.model.counts or range(1, left + 1) if n <= left]
        count = self.chance.choice([counts[0], self.chance.choice(counts)])
        self.log.append(f"{which} {count} at {place}")
        tokens = self.texts.texts[text][place:place + count].tolist()
        logits = self.model.run(tokens, place, self.states[which])
        self.held[which] = text, place + count
        expected = self.texts.logits[text][place + count - 1].astype(np.float64)
        error = float(np.linalg.norm(logits - expected) / np.linalg.norm(expected))
        self.worst = max(self.worst, error)
        assert error <= self.bound, f"differs by {error:.1e}"


if __name__ == "__main__":
    sys.exit(main())
