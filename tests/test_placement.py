"""The ways of weights: whichever they go, the results are the same bits and the plan holds."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from alarms import Interrupted, on_alarm, within_vkrt
from support import (
    MODELS,
    QUICK,
    failing,
    in_threads,
    inputs_of,
    need_model,
    need_one_memory,
    path_of,
    raising,
    same_bits,
)

import vkrt
from vkrt.compiler.description import Description
from vkrt.memory.reader import fail_read_after
from vkrt.vk.imported import import_alignment

# On further drivers, when one has run them all, less is enough: see tools/test.
SMALL = ["toy", "conv_mix"]
LARGE = ["silero-vad"]
STORAGES = ["texel"]
if not QUICK:
    SMALL += ["mlp", "mlp-fp16", "conv1d", "superres_small", "lstm_cell", "unet_small",
              "quantized_pictures"]
    LARGE += ["resnet50-base", "mobilenet_v2-base", "efficientnet-lite0"]
    STORAGES += ["texture3d"]
WEIGHTS = ["copy", "direct", "auto", "stream"]


def run(program: str | Path, device, times: int = 1, **options):
    """The outputs of the last of some runs, and the memory report; the plan has to hold."""
    with vkrt.load(path_of(program), device, **options) as program:
        inputs = inputs_of(program)
        for _ in range(times):
            outputs = program.run(*inputs)
        memory = program.memory
        assert memory.measured_peak == memory.planned_peak
        return outputs, memory


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", SMALL)
def test_every_way_gives_the_same_bits(name, storage, device):
    expected, _ = run(name, device, storage=storage, weights="copy")
    for weights in WEIGHTS[1:]:
        outputs, _ = run(name, device, 3, storage=storage, weights=weights)
        same_bits(outputs, expected)


@pytest.mark.parametrize("name", SMALL)
def test_every_way_on_a_device_with_memory_of_its_own(name, device, discrete):
    expected, _ = run(name, device, weights="copy")
    for weights in WEIGHTS:
        outputs, memory = run(name, discrete, 3, weights=weights)
        same_bits(outputs, expected)
        assert memory.mapped == memory.direct == 0
        assert memory.host > 0


def test_what_is_mapped_takes_no_device_memory(device, exact_sizes):
    if not device.unified or import_alignment(device) > 4096:
        pytest.skip("the device does not read the host's memory")
    outputs, memory = run("mlp", device)
    expected, copied = run("mlp", device, weights="copy")
    same_bits(outputs, expected)
    aligned = device.info.limits["minTexelBufferOffsetAlignment"] <= 128
    ways = {record.nbytes: record for record in memory.placements}
    packed = ways[7680]  # 64 rows of 30 elements: padded to whole texels
    assert packed.placement == "direct" and "padding" in packed.why
    assert memory.staging == 0
    if aligned:  # the file's constants are at multiples of 128 bytes
        assert [r.placement for r in memory.placements if r is not packed] == ["map"] * 6
        assert memory.direct == 7680 and memory.weights == 8192
        assert memory.planned_peak == memory.weights + memory.activations
        assert memory.mapped == sum(r.nbytes for r in memory.placements) - 7680
    assert copied.mapped == 0 and copied.planned_peak > memory.planned_peak
    for record in memory.placements:
        assert record.name and record.why and record.placement in ("map", "direct")
    assert "lies in the file" in memory.weights_table()


def test_bytes_are_not_mapped_and_map_says_why(device, load):
    need_one_memory(device)
    data = (MODELS / "mlp.pte").read_bytes()
    assert load(data).memory.mapped == 0
    with pytest.raises(vkrt.UnsupportedError, match="in memory, not in a file"):
        vkrt.load(data, device, weights="map")


def test_wrong_options(device):
    for options, message in (({"weights": "half"}, "weights='half'.*auto"),
                             ({"memory_budget": "lots"}, "'lots'.*300MB"),
                             ({"memory_budget": 0}, "positive"),
                             ({"prefetch": "guess"}, "'guess'.*pread"),
                             ({"winograd": "yes"}, "'yes'.*always"),
                             ({"stream_lookahead": -1}, "0 or more"),
                             ({"order": "late"}, "order='late'")):
        with pytest.raises(vkrt.InputError, match=message):
            vkrt.load(MODELS / "mlp.pte", device, **options)


# Budgets


def budgets(path: Path, device, points: int, **options) -> list[int]:
    """From the smallest possible to what keeps everything resident."""
    _, least = run(path, device, weights="stream", **options)
    _, most = run(path, device, weights="direct")
    low, high = least.planned_peak, most.planned_peak
    if low >= high:
        need_one_memory(device)  # where a pool and uploads may take more than so few weights
    assert low < high
    return [low + (high - low) * i // (points - 1) for i in range(points)]


@pytest.mark.parametrize("name", ["mlp", "conv_mix", *LARGE])
def test_budgets_are_kept(name, device):
    path = need_model(f"{name}.pte")
    expected, resident = run(path, device, weights="direct")
    read = []
    for budget in budgets(path, device, 3 if QUICK else 6):
        outputs, memory = run(path, device, 3, weights="stream", memory_budget=budget)
        same_bits(outputs, expected)
        assert memory.measured_peak <= budget
        read.append(memory.streamed)
    assert read[0] > read[-1] == 0
    assert memory.planned_peak == resident.planned_peak


@pytest.mark.parametrize("lookahead", [0, 1, 100] if QUICK else [0, 1, 3, 100])
def test_lookahead(device, lookahead):
    expected, resident = run("conv_mix", device, weights="direct")
    outputs, memory = run("conv_mix", device, 4, weights="stream", stream_lookahead=lookahead)
    same_bits(outputs, expected)
    # As many layers ahead as there are would be all of them at once: then they stay.
    assert (memory.streamed > 0) == (lookahead < 100)
    assert (memory.planned_peak < resident.planned_peak) == (lookahead < 100)


def test_too_small_a_budget_names_the_smallest(device):
    need_one_memory(device)
    path = MODELS / "mlp.pte"
    _, least = run(path, device, weights="stream", memory_budget="smallest")
    smallest = least.planned_peak
    with pytest.raises(vkrt.InputError, match=f"{smallest:,}"):
        vkrt.load(path, device, weights="stream", memory_budget=smallest - 1)
    run(path, device, weights="stream", memory_budget=smallest)


def test_a_budget_does_not_stream_what_was_to_be_copied(device):
    with pytest.raises(vkrt.InputError, match="memory_budget"):
        vkrt.load(MODELS / "mlp.pte", device, weights="copy", memory_budget="8KiB")


def test_host_kernels_between_streamed_sections(device):
    """places.pte has kernels that run in numpy."""
    expected, _ = run("places", device, weights="direct")
    outputs, memory = run("places", device, 5, weights="stream", stream_lookahead=0)
    same_bits(outputs, expected)
    assert memory.streamed > 0


# Failures


def test_a_failed_read_is_raised_by_the_run_that_needs_it(device, load):
    expected, _ = run("mlp", device, weights="direct")
    program = load("mlp", weights="stream", stream_lookahead=0)
    inputs = inputs_of(program)
    same_bits(program.run(*inputs), expected)
    for after in (1, 2, 3):
        with failing(fail_read_after, after), pytest.raises(OSError, match=r"mlp\.pte"):
            for _ in range(4):
                program.run(*inputs)
        same_bits(program.run(*inputs), expected)
        same_bits(program.run(*inputs), expected)


def test_a_failed_read_while_loading_releases_everything(load):
    for weights in ("copy", "direct"):
        with failing(fail_read_after, 2), pytest.raises(OSError, match=r"conv_mix\.pte"):
            load("conv_mix", weights=weights)


@pytest.mark.parametrize("weights", ["copy", "direct"])
def test_a_file_changed_since_it_was_opened(device, copy_of, weights):
    path = copy_of("mlp")
    with closing(Description(path)) as description:
        description.graph("forward")
        path.write_bytes(path.read_bytes()[:-4096])
        with pytest.raises(vkrt.FormatError, match=r"mlp\.pte"):
            vkrt.Method(description.graph("forward"), [description.source], device,
                        options=vkrt.LoadOptions(weights=weights))


def test_truncation_under_a_streaming_program(load, copy_of):
    path = copy_of("mlp")
    content = path.read_bytes()
    program = load(path, weights="stream", stream_lookahead=0)
    inputs = inputs_of(program)
    expected = program.run(*inputs)
    with open(path, "r+b") as file:
        file.truncate(8192)
    with pytest.raises((vkrt.FormatError, OSError), match=r"mlp\.pte"):
        for _ in range(3):
            program.run(*inputs)
    path.write_bytes(content)  # the same file again
    same_bits(program.run(*inputs), expected)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_that_is_interrupted_leaves_the_program_usable(device, times):
    """At whatever moment, and so many times in a row: also while it recovers."""
    path = MODELS / "conv_mix.pte"
    left = 0

    def interrupt(_, frame):
        nonlocal left
        # Only inside of run: not where it would be this test that is interrupted.
        if left and within_vkrt(frame):
            left -= 1
            raise Interrupted

    expected, _ = run(path, device, weights="direct")
    with on_alarm(interrupt), vkrt.load(path, device, weights="stream") as program:
        inputs = inputs_of(program)
        for number in range(20):
            left = times
            signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.0003 * number, 0.0002)
            while left:
                with suppress(Interrupted):
                    program.run(*inputs)
            signal.setitimer(signal.ITIMER_REAL, 0)
            same_bits(program.run(*inputs), expected)


def test_two_programs_stream_from_one_file(device, load):
    expected, _ = run("conv_mix", device, weights="direct")
    a, b = (load("conv_mix", weights="stream") for _ in range(2))
    inputs = inputs_of(a)

    def work(program):
        for _ in range(20):
            same_bits(program.run(*inputs), expected)

    in_threads(*(partial(work, program) for program in (a, b)))


def test_closing_while_another_thread_runs(device):
    """A run in progress ends first; later ones are refused."""
    program = vkrt.load(MODELS / "conv_mix.pte", device, weights="stream")
    inputs = inputs_of(program)
    began = threading.Event()

    def work():
        while True:
            program.run(*inputs)
            began.set()

    with ThreadPoolExecutor() as pool:
        running = pool.submit(work)
        assert began.wait(60)
        program.close()
        with pytest.raises(ValueError, match="closed"):
            running.result(60)


def test_closing_before_the_first_run(device):
    vkrt.load(MODELS / "conv_mix.pte", device, weights="stream").close()


def test_a_failing_host_kernel_leaves_the_program_usable(device, load, on_host, monkeypatch):
    from vkrt.ops.host import run as host

    expected, _ = run("places", device, weights="direct")
    program = load("places", weights="stream", stream_lookahead=0)
    inputs = inputs_of(program)
    same_bits(program.run(*inputs), expected)
    with monkeypatch.context() as patch:
        patch.setattr(host, "run_kernel", raising(ArithmeticError))
        with pytest.raises(ArithmeticError):
            program.run(*inputs)
    same_bits(program.run(*inputs), expected)


# Spilling, and strips

# Passes that make nothing smaller
WHOLE = "no-divide_activations,no-divide_weights"


def test_activations_are_spilled_where_nothing_else_is_enough(discrete, device):
    """A budget below what streaming alone can do, on a device with memory of its own."""
    expected, _ = run("unet_small", device, weights="copy")
    _, least = run("unet_small", discrete, weights="stream")
    assert least.spilled == 0
    budget = least.planned_peak - 20_000
    outputs, memory = run("unet_small", discrete, 3, weights="stream", memory_budget=budget,
                          fusions=WHOLE)
    same_bits(outputs, expected)
    assert memory.measured_peak <= budget
    assert memory.activations <= least.activations - 20_000
    assert memory.spilled > 0


def test_spilling_gains_nothing_where_memory_is_shared(device):
    need_one_memory(device)
    path = MODELS / "unet_small.pte"
    _, least = run(path, device, weights="stream")
    with pytest.raises(vkrt.InputError, match="nothing to gain by spilling"):
        vkrt.load(path, device, weights="stream", memory_budget=least.planned_peak - 20_000,
                  fusions=WHOLE)


def test_a_budget_takes_strips_where_activations_cannot_wait_elsewhere(device):
    """With `prefer="memory"` they are taken always."""
    expected, whole = run("unet_small", device)
    _, strips = run("unet_small", device, prefer="memory")
    assert strips.activations < whole.activations
    budget = whole.planned_peak - 20_000
    outputs, memory = run("unet_small", device, memory_budget=budget)
    assert memory.measured_peak <= budget
    assert memory.activations < whole.activations
    assert memory.spilled == 0 or not device.unified
    for one, other in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
