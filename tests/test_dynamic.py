"""Dynamic shapes: results at any size, what is refused, threads."""

from contextlib import closing
from functools import partial

import numpy as np
import pytest
from shape_programs import layout_program, random_program
from support import (
    MODELS,
    QUICK,
    calls_of,
    close_to,
    execute,
    in_threads,
    need_model,
    open_method,
    reference_of,
)

import vkrt
from vkrt.compiler.description import Description
from vkrt.dynamic.resolve import resolve

NAMES = ["conv-dyn", "attention-dyn", "masked-dyn", "numbers-dyn", "pair-dyn", "shrinking-dyn",
         "between-dyn", "bounds-dyn"]
# Sizes of the input of programs in the folders of VKRT_MODELS; npz files have the first.
LARGE = {
    "mlp-dyn": [(4, 64), (1, 64), (16, 64), (7, 64), (3, 64)],
    "superres-dyn": [(1, 1, 96, 96), (1, 1, 5, 12), (1, 1, 128, 128), (1, 1, 33, 1),
                     (1, 1, 127, 126)],
    "realesr-animevideov3-dynamic": [(1, 3, 64, 64), (1, 3, 8, 8), (1, 3, 31, 17), (1, 3, 1, 40),
                                     (1, 3, 72, 50)],
}


def sorted_calls(name: str):
    """The calls of a program, from small to large inputs."""
    return sorted(calls_of(name), key=lambda call: call[0][0].size)


@pytest.mark.parametrize("name", NAMES)
def test_results(name, storage, load):
    """Every size gives what eager torch gives, from small to large and back and again."""
    calls = sorted_calls(name)
    program = load(name, storage=storage)
    for inputs, expected in (*calls, *calls[::-1], calls[0], calls[0]):
        close_to(program.run(*inputs), expected)
    if name == "shrinking-dyn":
        # The size that needs the most is not among them.
        program.run(np.zeros((3, 6), np.float32))
    assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("name", list(LARGE)[:2 if QUICK else 3])
def test_large(name, device, load):
    """Real programs: the reference where there is one, and every size as a program made for it."""
    path = need_model(f"{name}.pte")
    (x,), expected = reference_of(path.with_name(path.name.replace("-dynamic", "")))
    random = np.random.default_rng(5)
    program = load(path)
    close_to(program.run(x), expected)
    assert x.shape == LARGE[name][0]
    for sizes in LARGE[name][1:] + LARGE[name][:2]:
        array = random.random(sizes, np.float32)
        results = program.run(array)
        with closing(Description(path)) as description, closing(vkrt.Method(
                resolve(description.graph("forward"), [sizes]), [description.source],
                device)) as alone:
            close_to(results, alone.execute([array]))
    memory = program.memory
    assert memory.measured_peak <= memory.planned_peak


def test_metadata_has_the_bounds(load):
    program = load("pair-dyn")
    inputs, outputs = program.metadata().inputs, program.metadata().outputs
    assert [str(i) for i in inputs] == ["float32[<=32,6]", "float32[<=32,6]", "float32[1,4]"]
    assert [str(o) for o in outputs] == ["float32[<=16,7]", "float32[<=32,8]"]
    assert inputs[0].sizes == (32, 6) and inputs[0].dynamic_dims == (0,)


def test_metadata_has_the_most_of_what_shrinks(load):
    """Bounds of what is largest at the smallest input, also where a call's sizes are other ones."""
    program = load("shrinking-dyn")
    outputs = [str(o) for o in program.metadata().outputs]
    assert outputs == ["float32[<=15]", "float32[<=30,5]", "float32[<=16,6]",
                       "float32[1,1,<=15,3]", "float32[28,6]", "float32[<=30,6]"]
    found = program.run(np.ones((16, 6), np.float32))
    assert [o.shape for o in found] == [(8,), (16, 5), (2, 6), (1, 1, 8, 3), (28, 6), (16, 6)]


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
def test_sizes_that_do_not_fit(name, sizes, words, load, work_done):
    inputs, expected = calls_of(name)[1]
    program = load(name)
    with pytest.raises(vkrt.InputError, match=words):
        program.run(*(np.zeros(s, np.float32) for s in sizes))
    assert work_done == []
    close_to(program.run(*inputs), expected)
    with pytest.raises(vkrt.InputError, match=words):
        program.run(*(np.zeros(s, np.float32) for s in sizes))
    close_to(program.run(*inputs), expected)


def test_out(load):
    (large, _), (small, expected), *_ = calls_of("conv-dyn")
    program = load("conv-dyn")
    out = [np.empty_like(array) for array in expected]
    assert program.run(*small, out=out)[0] is out[0]
    close_to(out, expected)
    with pytest.raises(vkrt.InputError, match=r"out 0 .*float32\[1,1,60,80\], got"):
        program.run(*large, out=out)


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


def test_close(load):
    program = load("pair-dyn")
    for inputs, _ in calls_of("pair-dyn"):
        program.run(*inputs)
    program.close()
    program.close()
    with pytest.raises(ValueError, match="closed"):
        program.run(*calls_of("pair-dyn")[0][0])


def test_threads_with_different_shapes(load):
    """One method, several threads, each with sizes of its own."""
    program = load("attention-dyn")

    def work(inputs, expected):
        for _ in range(8):
            close_to(program.run(*inputs), expected)

    in_threads(*(partial(work, *call) for call in calls_of("attention-dyn")))


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"weights": "copy"}], ids=str)
def test_a_weight_in_another_layout(options, device):
    """Sizes at which a kernel reads a constant in another layout: it is loaded too, once."""
    graph, data, run = layout_program()
    random, held = np.random.default_rng(1), []
    with open_method(graph, data, device, **options) as method:
        before = method.report.planned_peak
        for count, width in ((32, 4), (7, 1), (12, 3), (1, 1), (32, 4), (7, 1)):
            x = np.abs(random.standard_normal((1, count))).astype(np.float32)
            close_to(method.execute([x, np.zeros(width, np.float32)]), [run(x, width)])
            held.append(method.report.shapes[-1].device - method.report.shapes[-1].arena)
        assert before < method.report.planned_peak == method.report.measured_peak
    assert held[0] < held[1] == held[-1]


@pytest.mark.parametrize("seed", range(2 if QUICK else 6))
def test_fixed_and_dynamic_tensors_mixed(seed, storage, device):
    """Records that are reused at other sizes give the bits that all new ones give."""
    graph = random_program(seed)
    random = np.random.default_rng(seed)
    with open_method(graph, b"", device, storage=storage) as method:
        for rows in (16, 3, 1, 8):
            inputs = [random.standard_normal((n, 8)).astype(np.float32) for n in (1, rows)]
            alone = execute(resolve(graph, [(1, 8), (rows, 8)]), b"", inputs, device,
                            storage=storage)
            for result, expected in zip(method.execute(inputs), alone, strict=True):
                np.testing.assert_array_equal(result, expected)
