"""What programs do while calls of the driver fail, for test_calls_that_fail.py: in a process of its
own, with a profile, whose layer fails the calls (failures.c).

A trial fails one function from its n-th call on, once or for good, in the course of one body. It
ends with the right answer or with the error that the failure stands for, within `SECONDS`, and
leaves nothing behind but what a device that was given up may still use.
"""

from __future__ import annotations

import faulthandler
import gc
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from hostile.bodies import BODIES, anew, outputs_of
from hostile.layer import (
    DEVICE_LOST,
    FOR_GOOD,
    MAP_FAILED,
    ONCE,
    OUT_OF_HOST_MEMORY,
    RESULTS,
    Layer,
)
from support import MODELS, in_threads, sorting_on_host

import vkrt
from vkrt.vk import live_objects
from vkrt.vk.device import Device

SECONDS = 10


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error that it raises, without what the error holds."""
    try:
        return call()
    except Exception as error:
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return error


def trial(layer: Layer, name: str, call: str, at: int, times: int, expected: Any,
          ) -> tuple[int, list[str]]:
    """How many calls have failed, and what was wrong then.

    Args:
        expected: what the body and what is done again give where nothing fails.
    """
    body, result = BODIES[name], RESULTS.get(call, OUT_OF_HOST_MEMORY)
    faults = []
    before = live_objects()
    again = None
    with ExitStack() as stack:
        thing = body.begin(stack)
        layer.fail(call, at, times, result)
        with ExitStack() as inner:
            found = outcome(lambda: body.act(thing, inner))
            if times == FOR_GOOD:
                # What is closed is closed while calls fail.
                inner.push(stack.pop_all())
            closed = [outcome(inner.close)]
        injected = layer.stop()
        if times != FOR_GOOD:
            again = outcome(lambda: body.again(thing))
            if injected and isinstance(again, vkrt.VulkanError) and again.result == result:
                # A weight that was to come for this run: the failure is told by it.
                again = outcome(lambda: body.again(thing))
            closed.append(outcome(stack.close))
        thing = None
    gc.collect()
    after = live_objects()
    given_up = after["abandoned"] - before["abandoned"]
    if isinstance(found, Exception):
        allowed = ((vkrt.VulkanError,) if result == MAP_FAILED
                   else (vkrt.DeviceMemoryError, vkrt.DeviceLostError))
        if not injected or not isinstance(found, allowed):
            faults.append(f"raises {type(found).__name__}: {found}")
    elif found != expected[0]:
        faults.append("other results")
    if isinstance(again, vkrt.DeviceLostError):
        if not given_up:
            faults.append(f"is lost afterwards: {again}")
    elif times != FOR_GOOD and again != expected[1]:
        faults.append(f"afterwards: {again if isinstance(again, Exception) else 'other results'}")
    faults += [f"close: {type(error).__name__}: {error}" for error in closed if error is not None]
    kept = {"abandoned"} | ({"instance"} if given_up else set())
    faults += [f"{after[kind] - count} {kind} left" for kind, count in before.items()
               if kind not in kept and after[kind] != count]
    if times == FOR_GOOD and outcome(lambda: anew("toy")(None)) != ALONE["toy"]:
        faults.append("a new device gives other results")
    return injected, faults


ALONE: dict[str, Any] = {}


def counts(every: bool) -> Iterator[int]:
    """Which calls fail: all, or 1, 2, 4, ..; up to the first that does not come."""
    return itertools.count(1) if every else (1 << power for power in itertools.count())


@sorting_on_host()
def run_trials(name: str, every: str) -> None:
    """Prints how often which function has failed in a body, and what was wrong then.

    Args:
        every: "1" for all calls of all functions that are called, else the calls 1, 2, 4, .. of
            those that the body is there for.
    """
    # What is there already is not looked through behind every trial.
    gc.collect()
    gc.freeze()
    body = BODIES[name]
    ALONE["toy"] = anew("toy")(None)
    layer = Layer()
    with ExitStack() as stack:
        thing = body.begin(stack)
        layer.stop()
        with ExitStack() as inner:
            expected = [body.act(thing, inner)]
        called = layer.called()
        expected.append(body.again(thing))
    del thing
    failed: dict[str, int] = {}
    faults: list[str] = []
    here_for = [f"vk{word}" for word in body.fails.split()]
    for call in called if every == "1" else here_for:
        for times in (ONCE, FOR_GOOD):
            for at in counts(every == "1"):
                what = f"{name}: {call} {at} {'once' if times == ONCE else 'for good'}"
                print(what, file=sys.stderr, flush=True)
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                injected, found = trial(layer, name, call, at, times, expected)
                faulthandler.cancel_dump_traceback_later()
                faults += [f"{what}: {fault}" for fault in found]
                failed[call] = failed.get(call, 0) + injected
                if not injected:
                    break
    print(json.dumps({"failed": failed, "faults": faults}))


def give_up_a_shared_device() -> None:
    """Prints what two programs on one device say, of which one streams weights and can signal no
    arrival any more while the other one runs and waits for what is stuck behind."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    before = live_objects()
    said = []

    def until_lost(what: str, program: Any, words: str = "") -> None:
        for _ in range(100_000):
            found = outcome(lambda: outputs_of(program))
            if isinstance(found, Exception) and words in str(found):
                said.append((what, type(found).__name__))
                return

    with Device.open() as device, vkrt.load(MODELS / "mlp.pte", device, weights="stream") as one, \
            vkrt.load(MODELS / "toy.pte", device) as other:
        outputs_of(one)
        Layer().fail("vkSignalSemaphore", 1, FOR_GOOD, DEVICE_LOST)
        # A signal that fails before the run is submitted leaves nothing stuck: then the next run's.
        in_threads(partial(until_lost, "one", one, "given up"),
                   partial(until_lost, "other", other))
        said.append(("load", str(outcome(lambda: vkrt.load(MODELS / "toy.pte", device)))))
    one = other = device = None
    gc.collect()
    left = {kind: count - before[kind] for kind, count in live_objects().items()
            if count != before[kind]}
    print(json.dumps({"said": sorted(said), "left": left}))
