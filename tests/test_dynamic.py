"""Dynamic shapes: results at any size, what a repeated one costs, memory, failures."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from shape_programs import layout_program, random_program
from support import MODELS, QUICK, STORAGES, need_model

import vkrt
from vkrt.description import Description
from vkrt.lowering import lowering
from vkrt.memory.source import Source
from vkrt.method import instances, loaded, prepare
from vkrt.method.instances import Instances
from vkrt.method.lru_cache import LEAST
from vkrt.ops.resolving import resolve
from vkrt.vk.device import Device
from vkrt.vk.pretence import treat_as_discrete

pytestmark = pytest.mark.driver

# On further drivers, when one has run them all, less is enough: see tools/test.
STREAMS: list[dict] = [{"weights": "stream"}, {"memory_budget": "smallest"}]
if not QUICK:
    STREAMS += [{"weights": "stream", "stream_lookahead": n} for n in (0, 3)]
NAMES = ["conv-dyn", "attention-dyn", "masked-dyn", "numbers-dyn", "pair-dyn", "shrinking-dyn",
         "between-dyn"]
# Sizes of the input of programs in the folders of VKRT_MODELS; npz files have the first.
LARGE = {
    "mlp-dyn": [(4, 64), (1, 64), (16, 64), (7, 64), (3, 64)],
    "superres-dyn": [(1, 1, 96, 96), (1, 1, 5, 12), (1, 1, 128, 128), (1, 1, 33, 1),
                     (1, 1, 127, 126)],
    "realesr-animevideov3-dynamic": [(1, 3, 64, 64), (1, 3, 8, 8), (1, 3, 31, 17), (1, 3, 1, 40),
                                     (1, 3, 72, 50)],
}


def calls_of(name: str) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """(inputs, outputs of eager torch) of each call in a program's npz."""
    with np.load(MODELS / f"{name}.npz") as archive:
        arrays = {key: archive[key] for key in archive.files}

    def numbered(prefix: str) -> list[np.ndarray]:
        return [arrays[f"{prefix}{i}"] for i in range(sum(k.startswith(prefix) for k in arrays))]

    count = len({key.split("_")[0] for key in arrays})
    return [(numbered(f"call{i}_in"), numbered(f"call{i}_out")) for i in range(count)]


def check(outputs, expected) -> None:
    for output, array in zip(outputs, expected, strict=True):
        assert output.shape == array.shape
        error = np.linalg.norm(output.astype(np.float64) - array) / np.linalg.norm(array)
        assert error < 1e-5


@pytest.fixture
def work_done(monkeypatch):
    """What is done for shapes: "lower" for a new one, "bind" for its handles and commands."""
    done: list[str] = []
    bind, lower = Instances.bind, lowering.lower

    def count_bind(self, instance):
        did = bind(self, instance)
        done.extend(["bind"] * did)
        return did

    monkeypatch.setattr(Instances, "bind", count_bind)
    monkeypatch.setattr(
        lowering, "lower", lambda *args: done.append("lower") or lower(*args))
    return done


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", NAMES)
def test_results(name, storage, device):
    """Every size gives what eager torch gives, from small to large and back and again."""
    calls = sorted(calls_of(name), key=lambda call: call[0][0].size)
    with vkrt.load(MODELS / f"{name}.pte", device, storage=storage) as program:
        for inputs, expected in (*calls, *calls[::-1], calls[0], calls[0]):
            check(program.run(*inputs), expected)
        if name == "shrinking-dyn":
            # The size that needs the most is not among them.
            program.run(np.zeros((3, 6), np.float32))
        assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("name", list(LARGE)[:2 if QUICK else 3])
def test_large(name, device):
    """Real programs: the reference where there is one, and every size as a program made for it."""
    path = need_model(f"{name}.pte")
    with np.load(path.with_name(path.name.replace("-dynamic", "")).with_suffix(".npz")) as archive:
        x, y = archive["in0"], archive["out0"]
    random = np.random.default_rng(5)
    with vkrt.load(path, device) as program:
        check(program.run(x), [y])
        assert x.shape == LARGE[name][0]
        for sizes in LARGE[name][1:] + LARGE[name][:2]:
            array = random.random(sizes, np.float32)
            results = program.run(array)
            description = Description(path)
            graph = resolve(description.graph("forward"), [sizes])
            alone = vkrt.Method(graph, [description.source], device)
            check(results, alone.execute([array]))
            alone.close()
            description.close()
        memory = program.memory
        assert memory.measured_peak <= memory.planned_peak


def test_metadata_has_the_bounds(device):
    with vkrt.load(MODELS / "pair-dyn.pte", device) as program:
        inputs, outputs = program.metadata().inputs, program.metadata().outputs
    assert [str(i) for i in inputs] == ["float32[<=32,6]", "float32[<=32,6]", "float32[1,4]"]
    assert [str(o) for o in outputs] == ["float32[<=16,7]", "float32[<=32,8]"]
    assert inputs[0].sizes == (32, 6) and inputs[0].dynamic_dims == (0,)


def test_metadata_has_the_most_of_what_shrinks(device):
    """Bounds of what is largest at the smallest input, also where a call's sizes are other ones."""
    with vkrt.load(MODELS / "shrinking-dyn.pte", device) as program:
        outputs = [str(o) for o in program.metadata().outputs]
        assert outputs == ["float32[<=15]", "float32[<=30,5]", "float32[<=16,6]",
                           "float32[1,1,<=15,3]", "float32[28,6]", "float32[<=30,6]"]
        found = program.run(np.ones((16, 6), np.float32))
    assert [o.shape for o in found] == [(8,), (16, 5), (2, 6), (1, 1, 8, 3), (28, 6), (16, 6)]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", ["shrinking-dyn", "between-dyn"])
def test_no_size_needs_more_than_planned(name, storage, device):
    """All sizes there are: the prediction is the most that any of them needs, to the byte."""
    with vkrt.load(MODELS / f"{name}.pte", device, storage=storage) as program:
        planned = program.memory.planned_peak
        infos = program.metadata().inputs
        for first in itertools.product(*(range(1, info.sizes[0] + 1) for info in infos)):
            arrays = [np.ones((n, *info.sizes[1:]), np.float32) for n, info in zip(first, infos)]
            try:
                program.run(*arrays)
            except vkrt.InputError as error:  # less than the program was exported for
                assert 1 in first and "the program allows no more than" in str(error)
            assert program.memory.measured_peak <= planned
        assert program.memory.measured_peak == program.memory.planned_peak == planned
        assert program.memory.notes == []


def test_sizes_that_need_more_than_was_found(device, monkeypatch):
    """Should the search miss them, the prediction is corrected, and a note says for which sizes."""
    import vkrt.method.prepare

    monkeypatch.setattr(prepare, "largest_and_near", lambda graph: [graph])
    calls = sorted(calls_of("shrinking-dyn"), key=lambda call: -call[0][0].size)
    with vkrt.load(MODELS / "shrinking-dyn.pte", device) as program:
        memory = program.memory
        planned = memory.planned_peak
        check(program.run(*calls[0][0]), calls[0][1])
        assert memory.measured_peak == memory.planned_peak == planned and memory.notes == []
        for inputs, expected in calls:
            check(program.run(*inputs), expected)
            assert memory.measured_peak <= memory.planned_peak
        assert memory.measured_peak == memory.planned_peak > planned
        assert "'forward' at [2,6] needs" in memory.notes[-1]


def test_a_repeated_shape_costs_nothing(device, work_done):
    (large, _), (small, expected), *_ = calls_of("pair-dyn")
    with vkrt.load(MODELS / "pair-dyn.pte", device) as program:
        assert work_done == []  # a load binds nothing: there are no activations yet
        program.run(*small)
        assert work_done == ["lower", "bind"]
        program.run(*small)
        assert work_done == ["lower", "bind"]
        # Load has made the work list of the largest sizes. The arena is new.
        program.run(*large)
        assert work_done == ["lower", "bind", "bind"]
        program.run(*small)
        assert work_done == ["lower", "bind", "bind", "bind"]
        for _ in range(3):
            program.run(*large)
            check(program.run(*small), expected)
        assert work_done == ["lower", "bind", "bind", "bind"]


def test_many_shapes(device, work_done, monkeypatch):
    """Shapes beyond those kept are made anew, without those of loading; nothing piles up."""
    monkeypatch.setattr(instances, "MAX_BYTES", 0)
    monkeypatch.setattr(loaded, "MAX_PREPARED_BYTES", 0)
    with vkrt.load(MODELS / "attention-dyn.pte", device) as program:
        x = np.ones((1, 32, 24), np.float32)
        program.run(x)
        for length in range(2, 2 + LEAST):
            program.run(x[:, :length])
        work_done.clear()
        program.run(x[:, :1 + LEAST])
        assert work_done == []
        program.run(x)  # the instance that was not run for longest; its sizes are those of loading
        assert work_done == ["bind"]
        program.run(x[:, :2 + LEAST])  # in whose place the sizes go that were not run for longest
        assert work_done == ["bind", "lower", "bind"]
        program.run(x[:, :2])
        assert work_done == ["bind", "lower", "bind", "lower", "bind"]
        kept = program._methods["forward"]._loaded
        assert len(list(kept.instances)) == len(kept._other_sizes) == LEAST


def test_shapes_are_kept_by_bytes(device, work_done):
    """Small ones are many, and those that are run again and again stay."""
    with vkrt.load(MODELS / "attention-dyn.pte", device) as program:
        x = np.ones((1, 32, 24), np.float32)
        program.run(x)
        for length in range(2, 31):
            program.run(x[:, :length])
        work_done.clear()
        for length in range(2, 31):
            program.run(x[:, :length])
        assert work_done == []
        kept = program._methods["forward"]._loaded
        kept._other_sizes.max_bytes = 0
        for length in (2, 3, 2, 31):
            program.run(x[:, :length])
        assert [shape.sizes[0][1] for shape, _ in kept._other_sizes][-3:] == [3, 2, 31]
        # The instances of the sizes that went are gone, too: beside the others there is that of
        # the sizes of loading.
        assert len(list(kept.instances)) == LEAST + 1


def test_the_arena_grows_only_for_larger_shapes(device):
    calls = sorted(calls_of("conv-dyn"), key=lambda call: call[0][0].size)
    with vkrt.load(MODELS / "conv-dyn.pte", device) as program:
        memory = program.memory
        phases = {p.name: p.device for p in memory.phases}
        assert phases["before execute"] == phases["after prepack"] == memory.weights
        arena = 0
        for inputs, _ in (*calls, *calls[::-1]):
            program.run(*inputs)
            shapes = {record.sizes: record for record in memory.shapes}
            record = shapes[f"[{','.join(map(str, inputs[0].shape))}]"]
            if record.activations > arena:
                assert memory.shapes[-1] == record and record.arena == record.activations
            arena = max(arena, record.activations)
            assert memory.shapes[-1].arena == arena
            assert memory.shapes[-1].device == memory.weights + arena
            assert memory.measured_peak == max(memory.weights + memory.staging,
                                               memory.weights + arena)
        assert memory.measured_peak == memory.planned_peak
        assert "[1,3,16,16]" in memory.table()


def test_eager_allocates_the_largest_arena_before_prepack(device):
    (_, _), (small, expected), *_ = calls_of("conv-dyn")
    with vkrt.load(MODELS / "conv-dyn.pte", device, order="eager") as program:
        memory = program.memory
        phases = {p.name: p.device for p in memory.phases}
        assert phases["prepack start"] == memory.weights + memory.activations
        check(program.run(*small), expected)
        assert memory.measured_peak == memory.planned_peak


@pytest.mark.parametrize("name", NAMES[:2])
@pytest.mark.parametrize("options", STREAMS, ids=str)
def test_streaming(name, options, device):
    """Streamed weights serve every size, and the budget holds."""
    with vkrt.load(MODELS / f"{name}.pte", device, **options) as program:
        assert program.memory.streamed > 0 or program.memory.mapped > 0
        calls = calls_of(name)
        for inputs, expected in (*calls, *calls[::-1]):
            check(program.run(*inputs), expected)
        assert program.memory.measured_peak <= program.memory.planned_peak


@pytest.mark.parametrize("weights", ["copy", "stream"])
@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_with_memory_of_its_own(name, weights, device):
    """Inputs and outputs in a block of their own, weights through staging or uploads."""
    treat_as_discrete(True)
    try:
        with Device.open() as opened:
            if weights == "stream" and "timeline" not in opened.features:
                pytest.skip("the device cannot stream")
            with vkrt.load(MODELS / f"{name}.pte", opened, weights=weights) as program:
                calls = calls_of(name)
                for inputs, expected in (*calls, *calls[::-1]):
                    check(program.run(*inputs), expected)
                assert program.memory.host > 0
                assert program.memory.measured_peak <= program.memory.planned_peak
    finally:
        treat_as_discrete(False)


@pytest.mark.parametrize(("name", "part", "own"), [
    ("conv-dyn", 0.98, False), ("attention-dyn", 0.92, False), ("conv-dyn", 0.98, True),
    ("conv-dyn", 0.9, True), ("conv-dyn", 0.82, True), ("attention-dyn", 0.92, True)])
def test_a_budget_holds_at_every_size(name, part, own):
    """Whether weights are streamed or, on a device with memory of its own, activations spilled."""
    treat_as_discrete(own)
    try:
        with Device.open() as opened:
            options: dict = {} if own else {"weights": "stream"}
            with vkrt.load(MODELS / f"{name}.pte", opened, weights="direct") as program:
                options["memory_budget"] = int(program.memory.planned_peak * part)
            with vkrt.load(MODELS / f"{name}.pte", opened, **options) as program:
                assert (program.memory.spilled if own else program.memory.streamed) > 0
                calls = calls_of(name)
                for inputs, expected in (*calls, *calls[::-1]):
                    check(program.run(*inputs), expected)
                    assert program.memory.measured_peak <= options["memory_budget"]
    finally:
        treat_as_discrete(False)


@pytest.mark.parametrize(("name", "sizes", "words"), [
    ("conv-dyn", [(1, 3, 31, 40)], r"expected float32\[1,3,<=30,<=40\], got float32\[1,3,31,40\]; "
                                   "dimension 2 has to be 1 to 30, not 31"),
    ("conv-dyn", [(1, 3, 0, 40)], "dimension 2 has to be 1 to 30, not 0"),
    ("conv-dyn", [(1, 2, 16, 16)], "dimension 1 has to be 3, not 2"),
    ("conv-dyn", [(3, 16, 16)], r"got float32\[3,16,16\]"),
    ("pair-dyn", [(8, 6), (6, 6), (1, 4)], r"cannot run on inputs float32\[8,6\], float32\[6,6\], "
                                           r"float32\[1,4\].*aten.cat.default.*sizes differ"),
    ("shrinking-dyn", [(1, 6)], r"float32\[1,6\]: aten.slice_copy.Tensor .*would have sizes "
                                r"\[31, 6\], the program allows no more than \[30, 6\]"),
    ("pair-dyn", [(7, 6), (7, 6), (1, 4)], "aten.view_copy.default .*does not hold"),
])
def test_sizes_that_do_not_fit(name, sizes, words, device, work_done):
    inputs, expected = calls_of(name)[1]
    with vkrt.load(MODELS / f"{name}.pte", device) as program:
        with pytest.raises(vkrt.InputError, match=words):
            program.run(*(np.zeros(s, np.float32) for s in sizes))
        assert work_done == []
        check(program.run(*inputs), expected)
        with pytest.raises(vkrt.InputError, match=words):
            program.run(*(np.zeros(s, np.float32) for s in sizes))
        check(program.run(*inputs), expected)


def test_out(device):
    (large, _), (small, expected), *_ = calls_of("conv-dyn")
    with vkrt.load(MODELS / "conv-dyn.pte", device) as program:
        out = [np.empty_like(array) for array in expected]
        assert program.run(*small, out=out)[0] is out[0]
        check(out, expected)
        with pytest.raises(vkrt.InputError, match=r"out 0 .*float32\[1,1,60,80\], got"):
            program.run(*large, out=out)


@pytest.mark.parametrize("options", [{"weights": "copy"}, {"weights": "stream"},
                                     {"order": "eager"}, {"storage": "texture3d"}], ids=str)
def test_out_of_memory_at_every_allocation(options, device):
    """Each allocation of a load and its runs fails in turn; what can still run does."""
    from vkrt.vk.memory import fail_allocation_after

    calls = sorted(calls_of("conv-dyn"), key=lambda call: call[0][0].size)
    calls = [calls[0], calls[2], calls[-1]]
    failures = failed_runs = 0
    while True:
        fail_allocation_after(failures + 1)
        failed = False
        try:
            with vkrt.load(MODELS / "conv-dyn.pte", device, **options) as program:
                for number, (inputs, expected) in enumerate(calls):
                    try:
                        check(program.run(*inputs), expected)
                    except vkrt.DeviceMemoryError as error:
                        assert error.breakdown["activation_bytes"] > 0
                        failed, failed_runs = True, failed_runs + 1
                        # The method goes on: with shapes it has run, and with the one that failed.
                        for again, wanted in calls[:number + 1]:
                            check(program.run(*again), wanted)
        except vkrt.DeviceMemoryError:
            failed = True
        finally:
            fail_allocation_after(-1)
        if not failed:
            break
        failures += 1
    assert failed_runs == (0 if options.get("order") == "eager" else 3)
    assert failures > failed_runs


def test_a_failed_growth_leaves_less(device):
    """The larger arena is refused: its shape fails, and the smaller takes its own bytes again."""
    from vkrt.vk.memory import fail_allocation_after

    (large, _), (small, expected), *_ = calls_of("conv-dyn")
    with vkrt.load(MODELS / "conv-dyn.pte", device) as program:
        program.run(*small)
        bytes_before = program.memory.shapes[-1].device
        fail_allocation_after(1)
        try:
            with pytest.raises(vkrt.DeviceMemoryError):
                program.run(*large)
        finally:
            fail_allocation_after(-1)
        check(program.run(*small), expected)
        assert program.memory.shapes[-1].device == bytes_before


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files(name, device):
    """Any byte may be wrong: a clear exception or results at other sizes too, never a crash."""
    random = np.random.default_rng(11)
    original = (MODELS / f"{name}.pte").read_bytes()
    (large, _), (small, _), *_ = calls_of(name)
    allowed = (vkrt.FormatError, vkrt.UnsupportedError, vkrt.InputError)
    for _ in range(4 if QUICK else 25):
        data = bytearray(original)
        for _ in range(random.choice((1, 1, 2, 4))):
            data[random.integers(min(len(data), 9000))] = random.choice((0, 1, 0x7F, 0x80, 0xFF))
        try:
            program = vkrt.load(bytes(data), device)
        except allowed as error:
            assert str(error)
            continue
        with program:
            for inputs in (small, large):
                try:
                    program.run(*inputs)
                except allowed as error:
                    assert str(error)


def test_close(device):
    program = vkrt.load(MODELS / "pair-dyn.pte", device)
    for inputs, _ in calls_of("pair-dyn"):
        program.run(*inputs)
    program.close()
    program.close()
    with pytest.raises(ValueError, match="closed"):
        program.run(*calls_of("pair-dyn")[0][0])


def test_threads_with_different_shapes(device):
    """One method, several threads, each with sizes of its own."""
    calls, failures = calls_of("attention-dyn"), []
    with vkrt.load(MODELS / "attention-dyn.pte", device) as program:
        def work(call):
            try:
                for _ in range(8):
                    check(program.run(*call[0]), call[1])
            except BaseException as error:  # noqa: BLE001 - reported by the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"weights": "copy"}], ids=str)
def test_a_weight_in_another_layout(options, device):
    """Sizes at which a kernel reads a constant in another layout: it is loaded too, once."""
    graph, data, run = layout_program()
    method = vkrt.Method(graph, [Source.wrap(data)], device, options=vkrt.LoadOptions(**options))
    try:
        random = np.random.default_rng(1)
        held = []
        for count, width in ((32, 4), (7, 1), (12, 3), (1, 1), (32, 4), (7, 1)):
            x = np.abs(random.standard_normal((1, count))).astype(np.float32)
            check(method.execute([x, np.zeros(width, np.float32)]), [run(x, width)])
            held.append(method.report.shapes[-1].device - method.report.shapes[-1].arena)
        assert held[0] < held[1] == held[-1]
    finally:
        method.close()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("seed", range(2 if QUICK else 6))
def test_fixed_and_dynamic_tensors_mixed(seed, storage, device):
    """Records that are reused at other sizes give the bits that all new ones give."""
    graph = random_program(seed)
    options = vkrt.LoadOptions(storage=storage)
    method = vkrt.Method(graph, [Source.wrap(b"")], device, options=options)
    try:
        random = np.random.default_rng(seed)
        for rows in (16, 3, 1, 8):
            inputs = [random.standard_normal((n, 8)).astype(np.float32) for n in (1, rows)]
            results = method.execute(inputs)
            alone = vkrt.Method(resolve(graph, [(1, 8), (rows, 8)]), [Source.wrap(b"")], device,
                                options=options)
            for result, expected in zip(results, alone.execute(inputs), strict=True):
                np.testing.assert_array_equal(result, expected)
            alone.close()
    finally:
        method.close()
