"""Weights that several methods of a compiled program read: on the device once, whichever of the
methods are loaded, and as long as one of them is."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from compiled_files import as_methods, rewritten, smaller
from program_samples import changed, graphs, target
from support import MODELS, failing, inputs_of, need_model, same_bits

import vkrt
from vkrt.compiled.file import read
from vkrt.compiled.shared import shared_weights, uses_of
from vkrt.errors import FormatError, UnsupportedError
from vkrt.executable.program import Compiled
from vkrt.executable.weights import PrepackPlan
from vkrt.lowering.lowering import lower
from vkrt.memory.source import Source
from vkrt.plan.contents import contents_of
from vkrt.vk import live_objects
from vkrt.vk.memory import fail_allocation_after

CODER = MODELS / "coder.pte"
METHODS = ("encode", "decode")
# Elements of a matrix of 40 x 24, of one of 24 x 24, and of a bias of 24, which both methods have
COMMON = 40 * 24 + 24 * 24 + 24

pytestmark = pytest.mark.driver


def records(path) -> Compiled:
    with closing(Source.open(path)) as source:
        return read(source).read()


def results(program, method):
    return [np.asarray(x) for x in program.run(*inputs_of(program, method), method=method)]


def check_methods(program, expected):
    for method in METHODS:
        same_bits(results(program, method), expected[method])


def check_figures(program):
    """The device has what was planned, at this moment and at the most."""
    memory = program.memory
    assert memory.planned_peak == memory.measured_peak
    assert memory.phases[-1].device == memory.weights + memory.state + memory.activations \
        + memory.host


@pytest.fixture(scope="module")
def expected():
    """What the methods of the program itself return."""
    with vkrt.load(CODER) as program:
        return {method: results(program, method) for method in METHODS}


@pytest.fixture
def copied(compiled_of, device):
    return compiled_of(CODER, device=device, weights="copy")


@pytest.mark.parametrize("order", ["lazy", "eager"])
@pytest.mark.parametrize("weights", ["auto", "direct", "copy"])
def test_bits_and_bytes(weights, storage, order, device, expected, compiled_of):
    """In any order, no more bytes of weights than the program itself has, but for what is between
    them; fewer may be where more can be mapped."""
    out = compiled_of(CODER, device=device, weights=weights, storage=storage, order=order)
    with vkrt.load(CODER, device, weights=weights, storage=storage, order=order) as program:
        for method in METHODS:
            program.load_method(method)
        needed, placements = program.memory.weights, program.memory.placements
    kinds = sorted(record.placement for record in placements if record.placement != "shared")
    # Buffers and images are apart in a block, of which there is one more.
    between = 256 + device.info.limits["bufferImageGranularity"]
    for methods in itertools.permutations(METHODS):
        with vkrt.load(out, device) as program:
            for method in methods:
                program.load_method(method)
                check_figures(program)
            check_methods(program, expected)
            memory = program.memory
            assert memory.weights <= needed + between
            # Each weight once
            if weights != "auto":
                assert sorted(record.placement for record in memory.placements) == kinds
                assert memory.weights >= needed - between
    if weights != "auto":
        one, = (shared.largest.executable for shared in records(out).targets[0].shared)
        assert sum(storage.nbytes for storage in one.execution.storages) >= 4 * COMMON
        assert not one.execution.submissions and one.figures.run_bytes == 0


def test_a_method_alone(copied, device, load, expected):
    """It brings no weight that only others read, and takes what the compiler has said."""
    compiled, peaks, weights = records(copied), [], []
    place, = compiled.targets
    for method in METHODS:
        found, = (m for m in place.methods if m.name == method)
        with vkrt.load(copied, device) as program:
            same_bits(results(program, method), expected[method])
            check_figures(program)
            figures = place.figures_of(found)
            assert program.memory.measured_peak == figures.peak_bytes
            assert program.memory.weights == figures.weight_bytes
            assert figures.weight_bytes > found.largest.executable.figures.weight_bytes
            peaks.append(figures.peak_bytes)
            weights.append(figures.weight_bytes)
    assert vkrt.compile(CODER, copied, device=device, weights="copy").peak_bytes == (max(peaks),)
    program = load(copied)
    for method in METHODS:
        program.load_method(method)
    assert program.memory.weights <= sum(weights) - 4 * COMMON


def test_a_device_with_memory_of_its_own(discrete, load, expected, compiled_of):
    program = load(compiled_of(CODER, device=discrete), discrete)
    for method in METHODS:
        same_bits(results(program, method), expected[method])
        check_figures(program)


def test_several_targets(device, load, expected, compiled_of):
    """Each has its own, which a device that fits none of the first takes from the next."""
    out = compiled_of(CODER, device=[device, "generic"], weights="copy")
    compiled = records(out)
    assert [len(place.shared) for place in compiled.targets] == [1, 1]
    block = "largest.executable.weights.blocks.0.alignment"
    for way in (f"targets.0.shared.0.{block}", f"targets.0.methods.0.{block}"):
        rewritten(out, lambda _, way=way: changed(compiled, way, 1))
        with vkrt.load(out, device) as program:
            check_methods(program, expected)
            check_figures(program)
    rewritten(out, lambda _: changed(changed(
        compiled, f"targets.0.shared.0.{block}", 1), f"targets.1.shared.0.{block}", 1))
    program = load(out)
    held = live_objects()
    with pytest.raises(UnsupportedError, match="where the device asks for"):
        program.load_method("encode")
    assert live_objects() == held


@pytest.mark.parametrize("options", [{"weights": "stream"}, {"memory_budget": "smallest"}], ids=str)
def test_not_with_a_budget(options, device, load, expected, compiled_of):
    out = compiled_of(CODER, device=device, **options)
    assert records(out).targets[0].shared == ()
    check_methods(load(out), expected)


@pytest.mark.parametrize("storage", ["texel", "texture3d"])
def test_shared_weights_stay_as_long_as_a_method_reads_them(storage, device, expected, compiled_of):
    out = compiled_of(CODER, device=device, weights="copy", storage=storage)
    before = live_objects()
    with vkrt.load(out, device) as program:
        encode, decode = map(program.load_method, METHODS)
        encode.close()
        same_bits(results(program, "decode"), expected["decode"])
        decode.close()
        assert live_objects()["block"] == before["block"]
    assert live_objects() == before


def test_a_load_that_fails_takes_nothing_along(copied, load, expected):
    """Of the first method, which brings the shared weights, and of the second one."""
    program = load(copied)
    for method in METHODS:
        held = live_objects()
        for count in itertools.count(1):
            try:
                with failing(fail_allocation_after, count):
                    program.load_method(method)
                break
            except vkrt.DeviceMemoryError:
                assert live_objects() == held
        assert count > (5 if method == METHODS[0] else 2)
        same_bits(results(program, method), expected[method])


def test_a_load_that_is_ended_takes_nothing_along(device, monkeypatch, compiled_of):
    """At every part of it, also while shared weights come."""
    as_methods(monkeypatch, forward=None, again=None)
    out = compiled_of("mlp", device=device, weights="copy")
    before, parts = live_objects(), []
    vkrt.load(out, device, on_progress=lambda *part: parts.append(part[0])).close()
    assert parts.count("pipelines") == 2
    for end in range(len(parts)):
        told = iter(range(end))

        def on_progress(*_, told=told):
            if next(told, None) is None:
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            vkrt.load(out, device, on_progress=on_progress)
        assert live_objects() == before


def test_states_are_not_shared(device, load, monkeypatch, compiled_of):
    as_methods(monkeypatch, forward=None, again=None)
    out = compiled_of("kept_attention", device=device, weights="copy")
    assert records(out).targets[0].methods[1].largest.executable.weights.blocks == ()
    program = load(out)
    first = [results(program, "forward") for _ in range(3)]
    for outputs in first:
        same_bits(results(program, "again"), outputs)
    check_figures(program)


def test_several_shapes(device, load, monkeypatch, compiled_of):
    """All shapes of a method read the weights that another method has, too."""
    with vkrt.load(MODELS / "conv-dyn.pte", device) as program:
        info, = program.metadata().inputs
        shapes = [smaller(info), info.sizes]
        chance = np.random.default_rng(2)
        inputs = [chance.standard_normal(sizes).astype(info.dtype) for sizes in shapes]
        wanted = [program.run(x) for x in inputs]
    as_methods(monkeypatch, forward=None, small=(shapes[0],))
    out = compiled_of("conv-dyn", device=device, weights="copy",
                      shapes=[[sizes] for sizes in shapes])
    assert len(records(out).targets[0].shared) == 1
    program = load(out)
    for number in (1, 0):
        same_bits(program.run(inputs[number]), wanted[number])
        same_bits(program.run(inputs[0], method="small"), wanted[0])
    assert program.memory.planned_peak == program.memory.measured_peak


def test_a_language_model(device, load, monkeypatch, compiled_of):
    """A method for prompts and one for steps: its weights once."""
    path = need_model("smollm2-135m-4w.pte")
    as_methods(monkeypatch, prefill=((1, 4), (1,)), decode=((1, 1), (1,)))
    program = load(compiled_of(path, device=device, weights="copy"))
    program.load_method("prefill")
    weights = program.memory.weights
    program.load_method("decode")
    assert program.memory.weights == weights
    check_figures(program)


def test_threads_load_methods_at_once(copied, device, expected):
    """Several times, as who is first is chance."""
    for _ in range(5):
        with vkrt.load(copied, device) as program, ThreadPoolExecutor() as pool:
            begun = {method: pool.submit(results, program, method) for method in METHODS}
            for method, run in begun.items():
                same_bits(run.result(), expected[method])
            check_figures(program)


def test_what_is_said_of_it(copied, output_of):
    assert output_of("info", copied).count("those shared") == 2


# What is shared


def test_the_same_methods_together():
    """Of three methods: what all have, what two have, and nothing that one has alone."""
    encode, decode = (lower(graph, target("texel")) for graph in graphs(CODER))
    names = {work: contents_of(work) for work in (encode, decode)}
    works = (encode, decode, encode)
    copied = [[weight.storage for weight in work.weight_table] for work in works]
    shared = shared_weights(works, copied)
    assert [sorted(one.storages) for one in shared] == [[0, 1, 2], [0, 2]]
    for one in shared:
        contents = list(contents_of(one.work).values())
        assert [storage.id for storage in one.work.storages] == list(range(len(contents)))
        for number, storages in one.storages.items():
            assert [names[works[number]][storage] for storage in storages] == contents
    assert uses_of(1, shared) == (uses_of(0, shared)[0].__class__(0, shared[0].storages[1]),)
    assert shared_weights((encode,), copied[:1]) == []
    # Only those that take memory
    assert shared_weights(works[:2], [copied[0], []]) == []


# Damaged files


def use(**changes):
    return lambda c: changed(c, "targets.0.methods.1.shared.0",
                             c.targets[0].methods[1].shared[0]._replace(**changes))


def storage_of_use(c, **changes):
    """The first shared weight as the method has it."""
    number = c.targets[0].methods[1].shared[0].storages[0]
    way = f"targets.0.methods.1.largest.executable.execution.storages.{number}"
    storages = c.targets[0].methods[1].largest.executable.execution.storages
    return changed(c, way, storages[number]._replace(**changes))


def storages_of_use(c, change):
    return use(storages=change(c.targets[0].methods[1].shared[0].storages))(c)


WEIGHTS = "targets.0.shared.0.largest.executable.weights"


@pytest.mark.parametrize("change, words", [
    (use(number=1), "one of 1 shared weights"),
    (use(number=-1), "one of 1 shared weights"),
    (lambda c: changed(c, "targets.0.shared", ()), "one of 0 shared weights"),
    (lambda c: storages_of_use(c, lambda s: s[1:]), "3 shared weights"),
    (lambda c: storages_of_use(c, lambda s: (*s, s[0])), "3 shared weights"),
    (lambda c: storages_of_use(c, lambda s: (s[0], s[0], s[2])), "that is shared weight 1, of"),
    (lambda c: storages_of_use(c, lambda s: s[::-1]), "that is shared weight 0, of"),
    (lambda c: storages_of_use(c, lambda s: (-1, *s[1:])), "that is shared weight 0, of"),
    (lambda c: storages_of_use(c, lambda s: (1 << 40, *s[1:])), "that is shared weight 0, of"),
    (lambda c: changed(c, "targets.0.methods.1.shared", ()), "a storage that has memory"),
    (lambda c: changed(c, "targets.0.methods.1.shared",
                       2 * c.targets[0].methods[1].shared), "and has no other memory"),
    # Two that claim to be the same
    (lambda c: storage_of_use(c, nbytes=1 << 20), "that is shared weight 0, of 2304 bytes"),
    (lambda c: storage_of_use(c, dtype="int8"), "that is shared weight 0, of"),
    (lambda c: storage_of_use(c, role="activation"), "number of a weight's storage"),
    (lambda c: storage_of_use(c, extents=(4, 4, 4)), "that is shared weight 0, of"),
    # Shared weights of which one has no memory, or that read others
    (lambda c: changed(c, WEIGHTS, c.targets[0].shared[0].largest.executable.weights._replace(
        weights=(), contents=(), blocks=(), prepack=PrepackPlan((), (), 0))),
     "nothing else: 0 of them have memory"),
    (lambda c: changed(c, "targets.0.shared.0.shared", c.targets[0].methods[1].shared),
     "one of 0 shared weights"),
    (lambda c: changed(c, f"{WEIGHTS}.blocks.0.nbytes", 16), "a place of"),
])
def test_uses_that_cannot_be(change, words, copied):
    rewritten(copied, change)
    with pytest.raises(FormatError, match=words):
        vkrt.load(copied)
