"""What the steps of programs wait for: every barrier is needed, and every stage is waited for.

Two witnesses: synchronization validation, which says so when a barrier is left out (what it cannot
see is said in `core/test_core_synchronization.py`), and a log of what was recorded, for what
neither a driver nor a layer minds. Both in processes of their own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support import MODELS, need_command, run_python

import vkrt
import vkrt.method.method
import vkrt.plan.commands
from vkrt.compiler import compiler
from vkrt.device.policy import target_of
from vkrt.graph.graph import Graph
from vkrt.lowering.context import Lowering
from vkrt.memory.source import Source
from vkrt.method.method import Method
from vkrt.ops.strided_copy import copy
from vkrt.plan.options import LoadOptions
from vkrt.vk import clear_validation_messages, validation_messages
from vkrt.vk.device import Device
from vkrt.vk.device_override import override_device
from vkrt.work.host_arguments import ReadArgument
from vkrt.work.records import HostCall, Move
from vkrt.work.tensor import Tensor

pytestmark = pytest.mark.driver

SIZES = (16, 16, 16)
NBYTES = 4 * 16 ** 3

# VkPipelineStageFlags and VkAccessFlags of the commands in the log, and their accesses
COMPUTE, TRANSFER = 0x800, 0x1000
STAGES = {"dispatch": COMPUTE, "copy": TRANSFER}
ACCESSES = {"dispatch": 0x20 | 0x40, "copy": 0x800 | 0x1000}


def images_beside_spills(device):
    """A command list of images, and a buffer that waits in the host's memory over a host call.

    Two of its images are first written where the step before them is a copy: one behind the copy
    away, one in the submission that begins with the copy back.
    """
    x, y, z, rolled = (Tensor(SIZES, "float32") for _ in range(4))
    graph = Graph("images", [x], [y, z]).finish()
    cx = Lowering(graph, target_of(device.info, "texture3d"))
    source, host = cx.raw(x, "input", "float32"), cx.raw(rolled, "input", "float32")
    kept = cx.raw(x, "activation", "float32")
    results = [cx.raw(tensor, "activation", "float32") for tensor in (y, z)]
    a, b, c, d, e = (cx.temporary(SIZES, "float32") for _ in range(5))
    copy(cx, a, source)
    copy(cx, kept, a)
    copy(cx, b, source)
    copy(cx, c, b)
    cx.steps.append(HostCall(0, "aten::cumsum.out", (ReadArgument(0), 0, None), (source,), (host,)))
    copy(cx, d, host)
    copy(cx, results[0], d)
    copy(cx, e, kept)
    copy(cx, results[1], e)
    cx.inputs, cx.outputs = [source], results
    return graph, cx.finish()


def run_images() -> None:
    """Runs and profiles `images_beside_spills` as tight as it gets; prints what it is made of."""
    x = np.random.default_rng(0).standard_normal(SIZES).astype(np.float32)
    with override_device(discrete=True), Device.open() as device:
        compiler.lower_largest = lambda *_: images_beside_spills(device)
        compiler.smaller_works = lambda *_: ()  # its graph has no operators
        graph, _ = images_beside_spills(device)

        def method(**options):
            return Method(graph, [Source.wrap(b"")], device,
                          options=LoadOptions(storage="texture3d", **options))

        loose = method()
        budget = loose.plan.peak_bytes - NBYTES
        loose.close()
        print("tight", flush=True)
        tight = method(memory_budget=budget)
        outputs = tight.execute([x])
        for clock in ("device", "host"):
            tight.profile([x], repeat=1, clock=clock)
        np.testing.assert_array_equal(outputs[0], np.cumsum(x, 0, np.float64).astype(np.float32))
        np.testing.assert_array_equal(outputs[1], x)
        steps = tight.work.steps
        images = {o.storage.id for step in steps for o in (*step.writes, *step.reads)
                  if o.storage.is_image}
        tight.close()
    print("result", json.dumps({
        "steps": "".join("m" if isinstance(step, Move) else "h" if isinstance(step, HostCall)
                         else "d" for step in steps),
        "images": len(images), "messages": validation_messages()}))


def drop_barriers(name: str, storage: str, part: str) -> None:
    """Runs a program with each of its barriers left out; prints the messages of each run.

    Args:
        part: of the planned peak, as the budget of a device with memory of its own, where it is
            not "".
    """
    original = vkrt.plan.commands.barriers
    needed: list[bool] = []
    left_out = -1
    kinds = []

    def some_barriers(work, plan):
        nonlocal kinds
        needed[:] = original(work, plan)
        kinds = [type(step).__name__ for step in work.steps]
        return tuple(needs and number != left_out for number, needs in enumerate(needed))

    def run(**options):
        with override_device(discrete=bool(part)), Device.open() as device, \
                vkrt.load(MODELS / f"{name}.pte", device, storage=storage, **options) as program:
            program.run(*(np.zeros(info.sizes, info.dtype) for info in program.metadata().inputs))
            peak = program.memory.planned_peak
        messages = validation_messages()
        clear_validation_messages()
        return peak, messages

    vkrt.plan.commands.barriers = some_barriers
    # No imports: SwiftShader reads them, and tells newer layers that it does not.
    options: dict = {"weights": "copy"}
    peak, messages = run(**options)
    if part:
        options = {"memory_budget": int(float(part) * peak)}
        messages += run(**options)[1]
    result = [("nothing", messages)]
    for left_out in [number for number, needs in enumerate(needed) if needs]:
        if not part or kinds[left_out] == "Move":
            result.append((kinds[left_out], run(**options)[1]))
    print("result", json.dumps(result))


def call(function, *arguments: str, **environment: str):
    """What a function of this file prints in a process of its own: the lines, the result."""
    printed = run_python("""
        import sys
        import test_synchronization as tests
        from vkrt.errors import LoaderError
        try:
            getattr(tests, sys.argv[1])(*sys.argv[2:])
        except LoaderError as error:
            assert "vulkan-validationlayers" in str(error)
            print("no layer")
        """, function.__name__, *arguments, **environment)
    if "no layer" in printed:
        pytest.skip("the Khronos validation layer is not installed")
    *lines, result = printed.splitlines()
    return lines, json.loads(result.removeprefix("result "))


@pytest.mark.parametrize(("name", "part"), [("toy", ""), ("mlp", ""), ("unet_small", "0.9")])
def test_a_barrier_left_out_gives_a_message(name, part, storage):
    """Of programs with spilled activations only the barriers before copies: in them there are
    some between dispatches that write parts of one buffer."""
    if part and storage == "texture3d":
        pytest.skip("images are not spilled")
    _, (whole, *dropped) = call(drop_barriers, name, storage, part, VKRT_VALIDATION="1")
    assert whole == ["nothing", []]
    assert {kind for kind, _ in dropped} == {"Move" if part else "Dispatch"}
    for kind, messages in dropped:
        assert any("SYNC-HAZARD" in message for message in messages), (kind, messages)


@pytest.fixture(scope="module")
def command_log(tmp_path_factory) -> Path:
    """The library of `command_log.c`."""
    library = tmp_path_factory.mktemp("log") / "libcommand_log.so"
    subprocess.run([need_command("cc"), "-shared", "-fPIC", "-o", library,
                    Path(__file__).with_name("command_log.c"), "-ldl"], check=True)
    return library


def submissions_of(lines: list[str]) -> list[list[list[str]]]:
    """The words of the commands of every recording that has a dispatch or a copy."""
    submissions: list[list[list[str]]] = []
    for line in lines:
        words = line.split()
        if words[0] == "begin":
            submissions.append([])
        else:
            submissions[-1].append(words)
    return [submission for submission in submissions
            if any(words[0] in STAGES for words in submission)]


def test_images_and_copies_are_waited_for(command_log):
    """An image is made ready wherever it is first used, and a submission waits for what was before
    it by every stage that works in it."""
    lines, made = call(run_images, VKRT_VALIDATION="1", VKRT_VULKAN_LIBRARY=str(command_log))
    assert made["messages"] == []
    assert made["steps"] == "ddmddhmdddd"
    submissions = submissions_of(lines[lines.index("tight") + 1:])
    # A run, a profile by the device's clock and one by the host's, which submits every step.
    assert [sum(words[0] in STAGES for words in submission) for submission in submissions] == (
        [5, 5] * 2 + [1] * 10)
    images = [int(words[5]) for submission in submissions for words in submission
              if words[0] == "barrier"]
    assert sum(images) == 3 * made["images"] == 3 * 5
    for submission in submissions:
        works = {words[0] for words in submission if words[0] in STAGES}
        first, last = submission[0], submission[-1]
        assert first[0] == last[0] == "barrier"
        for kind in works:
            assert int(first[3], 16) & STAGES[kind], f"{kind} does not wait: {submission}"
            assert int(first[4], 16) & ACCESSES[kind] == ACCESSES[kind]
            assert int(last[1], 16) & STAGES[kind]
        # What was before may have been the host's, a copy or a dispatch.
        assert int(first[1], 16) & (0x4000 | COMPUTE | TRANSFER) == 0x4000 | COMPUTE | TRANSFER
