"""Do language models give the same logits however texts are cut up, kept, copied and interleaved?

    python tools/check/texts.py tests/models/llama.pte     schedules 0 to 99, of each program
    python tools/check/texts.py --first 7 --count 1 FILE.. this one

Runs on the driver that VK_DRIVER_FILES says. The programs are language models with caches in
floats. What is right are the logits behind each token of a few texts, read token by token by the
program as it is loaded by default; with a FILE.npz beside the program that has `tokens` and `ref`,
those of eager PyTorch, too (tools/export/random_texts.py). A schedule is a load in some way and 40
steps with a few states: a text goes on by any number of tokens, goes back, is left for another one,
is copied from another state, or saved and loaded. In a third of the schedules three threads do that
side by side, each with its own states. A line is printed for each schedule with a wrong result,
more memory than planned, or a failure; the last line says the largest errors. Exits 1 if one was
wrong.
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
from vkrt.work.records import Dispatch

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support import relative_l2  # noqa: E402

STEPS, TEXTS, STATES, THREADS = 40, 3, 3, 3
# The relative L2 error that logits may have. Other last bits change a few of the numbers that are
# rounded to 8 bits, in caches or in rows that are quantized as they come (8da4w).
BOUNDS = {"exact": 5e-5, "rounded": 8e-2}
# Options of a load, in equal shares
OPTIONS: dict[str, tuple[str, ...]] = {
    "storage": ("texel", "buffer", "texture3d"), "prefer": ("speed", "balanced", "memory"),
    "fusions": ("on", "on", "off"), "cache": ("float", "float", "int8"),
    "specialize": ("few", "few", "all", "none")}


class Texts:
    """A program's texts, and the logits behind each of their tokens.

    Attributes:
        rounds: whether the program quantizes rows as they come.
        takes_places: whether a run takes the place of each token, not only of the first.
        smallest, largest: bytes on the device with the smallest budget, and by default.
    """

    def __init__(self, path: Path, device: Any):
        self.path = path
        with vkrt.load(path, device, memory_budget="smallest", plan_cache="off") as program:
            self.smallest = program.memory.planned_peak
        with vkrt.load(path, device, plan_cache="off") as program:
            model = LanguageModel(program)
            self.largest = program.memory.planned_peak
            self.rounds = any("quantize_row" in step.shader
                              for step in program.load_method("forward").work.steps
                              if isinstance(step, Dispatch))
            self.longest, self.context = model.longest, model.context
            self.takes_places = program.metadata().inputs[1].sizes[0] > 1
            chance = np.random.default_rng(1)
            self.texts = [chance.integers(0, model.vocabulary, self.context) for _ in range(TEXTS)]
            self.logits = []
            for text in self.texts:
                program.reset_state()
                self.logits.append([model.run([int(token)], place)
                                    for place, token in enumerate(text)])
        archive = path.with_suffix(".npz")
        known = np.load(archive) if archive.exists() else {}
        if "ref" in known:
            self.texts.append(known["tokens"])
            self.logits.append(list(known["ref"]))

    def options(self, chance: random.Random) -> dict[str, Any]:
        """A way to load the program."""
        return {name: chance.choice(values) for name, values in OPTIONS.items()} | chance.choice((
            {}, {}, {"memory_budget": "smallest"},
            {"memory_budget": chance.randrange(self.smallest, self.largest + 1000)},
            {"weights": "stream", "stream_lookahead": chance.randrange(3)},
            {"weights": chance.choice(("copy", "direct"))}))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    wrong, worst = 0, dict.fromkeys(BOUNDS, 0.0)
    with vkrt.Device.open() as device, tempfile.TemporaryDirectory() as folder:
        for path in options.programs:
            texts = Texts(path, device)
            for number in range(options.first, options.first + options.count):
                chance = random.Random(f"{path.stem} {number}")
                how = texts.options(chance)
                kind = "rounded" if texts.rounds or how["cache"] == "int8" else "exact"
                try:
                    error = run_schedule(texts, device, chance, how, BOUNDS[kind], Path(folder))
                    worst[kind] = max(worst[kind], error)
                except Exception as failure:
                    wrong += 1
                    print(f"{path.name} {number}: {how}: {type(failure).__name__}: {failure}",
                          flush=True)
    print(f"{options.count * len(options.programs)} schedules, {wrong} wrong; largest errors "
          f"{worst['exact']:.1e}, where numbers are rounded {worst['rounded']:.1e}")
    return int(wrong > 0)


def run_schedule(texts: Texts, device: Any, chance: random.Random, how: dict[str, Any],
                 bound: float, folder: Path) -> float:
    """The largest error of a schedule; `how` gets what was chosen."""
    counts = []
    if texts.longest > 1 and chance.random() < 0.25:
        counts = [1, *chance.sample(range(2, texts.longest + 1), min(3, texts.longest - 1))]
    cached = not counts and chance.random() < 0.3
    threads = THREADS if chance.random() < 1 / 3 else 1
    how |= {"compiled": counts, "cached": cached, "threads": threads}
    with load(texts, device, how, folder) as program, ThreadPoolExecutor(threads) as pool:
        planned, budget = program.memory.planned_peak, how.get("memory_budget")
        assert not isinstance(budget, int) or planned <= budget, f"{planned} bytes planned"
        players = [Player(texts, LanguageModel(program), random.Random(chance.random()), bound,
                          shares=threads > 1) for _ in range(threads)]
        errors = list(pool.map(lambda player: player.play(STEPS // threads), players))
        memory = program.memory
        assert memory.measured_peak <= memory.planned_peak, (
            f"{memory.measured_peak} bytes, {memory.planned_peak} planned")
    return max(errors)


def load(texts: Texts, device: Any, how: dict[str, Any], folder: Path) -> Any:
    """The program, compiled if `how` has numbers of tokens for that. A budget that is too small
    becomes the one that the error asks for."""
    options = {name: how[name] for name in how if name not in ("compiled", "cached", "threads")}
    try:
        if how["compiled"]:
            vkrt.compile(texts.path, folder / "compiled.vkx", device=device, shapes=[
                [(1, count), (count if texts.takes_places else 1,)] for count in how["compiled"]
            ], **options)
            return vkrt.load(folder / "compiled.vkx", device)
        if how["cached"]:  # the next load has the plan that this one keeps
            vkrt.load(texts.path, device, plan_cache=folder, **options).close()
        return vkrt.load(texts.path, device, plan_cache=folder if how["cached"] else "off",
                         **options)
    except BudgetTooSmall as error:
        assert how["memory_budget"] < error.needed, str(error)
        how["memory_budget"] = error.needed
        return load(texts, device, how, folder)


class Player:
    """Somebody who reads texts over a few states, in any order.

    Args:
        shares: whether others use the method's own state, which is left to them then.
    """

    def __init__(self, texts: Texts, model: LanguageModel, chance: random.Random, bound: float,
                 shares: bool):
        self.texts, self.model, self.chance, self.bound = texts, model, chance, bound
        self.opened = [model.program.new_state() for _ in range(STATES - (not shares))]
        self.states = [*self.opened]
        if not shares:
            self.states.append(model.program.load_method("forward").state)
        # Which text each state has, and how many of its tokens
        self.held = [self.new_text() for _ in self.states]
        self.saved: list[tuple[Any, tuple[int, int]]] = []
        self.worst, self.log = 0.0, []

    def new_text(self) -> tuple[int, int]:
        return self.chance.randrange(len(self.texts.texts)), 0

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
        which = chance.randrange(len(self.states))
        state, (text, place) = self.states[which], self.held[which]
        action = chance.choice(("reset", "back", "copy", "save", "load", "anew", *["read"] * 6))
        self.log.append(f"{action} {which} at {place}")
        if action == "reset":
            state.reset()
        if action in ("reset", "anew"):
            self.held[which] = self.new_text()
        elif action == "back" and self.model.can_rewind:
            self.held[which] = text, chance.randrange(place + 1)
        elif action == "copy":
            other = chance.randrange(len(self.states))
            state.load(self.states[other].save())
            self.held[which] = self.held[other]
        elif action == "save":
            self.saved.append((state.save(), (text, place)))
        elif action == "load" and self.saved:
            values, self.held[which] = chance.choice(self.saved)
            state.load(values)
        else:
            self.read(which)

    def read(self, which: int) -> None:
        """Reads some tokens more, and compares the logits."""
        text, place = self.held[which]
        left = min(self.texts.context - place, self.model.longest)
        counts = [n for n in self.model.counts or range(1, left + 1) if n <= left]
        if not counts:
            self.held[which] = text, 0
            return
        count = self.chance.choice([counts[0], self.chance.choice(counts)])
        self.log.append(f"{count} tokens")
        tokens = self.texts.texts[text][place:place + count].tolist()
        logits = self.model.run(tokens, place, self.states[which])
        self.held[which] = text, place + count
        error = relative_l2(logits, self.texts.logits[text][place + count - 1])
        self.worst = max(self.worst, error)
        assert error <= self.bound, f"differs by {error:.1e}"


if __name__ == "__main__":
    sys.exit(main())
