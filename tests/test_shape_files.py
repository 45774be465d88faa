"""Cached plans of methods with dynamic shapes: a file for each shape that has run."""

import os
import shutil
import struct
from functools import partial

import numpy as np
import pytest
from program_samples import with_checksum
from shape_programs import layout_program
from support import (
    MODELS,
    calls_of,
    close_to,
    damaged,
    in_threads,
    inputs_of,
    open_method,
    raising,
    run_python,
    same_bits,
)
from test_dynamic import NAMES

import vkrt
from vkrt.compiler import shape_files
from vkrt.compiler.description import Description
from vkrt.compiler.plan_cache import PlanFiles
from vkrt.compiler.shape import Shape
from vkrt.compiler.shape_files import ShapeFiles
from vkrt.executable import flat
from vkrt.memory.source import Source
from vkrt.plan.options import LoadOptions
from vkrt.runtime.open_device import OpenDevice

pytestmark = [pytest.mark.driver, pytest.mark.usefixtures("any_age")]

# Of how loads differ
OPTIONS = [{}, {"weights": "copy"}, {"weights": "stream"}, {"memory_budget": "smallest"},
           {"storage": "texture3d"}, {"order": "eager"}, {"prefer": "memory"}]


@pytest.fixture
def forbidden(monkeypatch):
    """Call it, and from then on no graph can be made."""
    return partial(monkeypatch.setattr, Description, "graph", raising(AssertionError, "a graph"))


def files_in(folder):
    return sorted(folder.glob("*.vkplan"))


def shapes_in(folder):
    """The files of shapes: their names have that of the method's file at the end."""
    return [path for path in files_in(folder) if path.name.count("-") == 2]


def run_all(path, calls, folder, **options):
    """What calls come to, in their order, and what is said of the program."""
    with vkrt.load(path, plan_cache=folder, **options) as program:
        found = [program.run(*inputs) for inputs in calls]
        memory = program.memory
        assert memory.measured_peak <= memory.planned_peak
        return found, (memory.planned_peak, memory.measured_peak, memory.notes,
                       sorted(record[:2] for record in memory.shapes),
                       vars(program.metadata()), program.method_names)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", [*NAMES, "buffers_dynamic"])
def test_the_same_program(name, options, tmp_path, forbidden):
    """A later load makes no graph, nor do runs at shapes that ran before; results, bytes and what
    is said are the same, in any order of the shapes."""
    path = MODELS / f"{name}.pte"
    kind = "step" if name == "buffers_dynamic" else "call"
    calls = [inputs for inputs, _ in calls_of(name, kind)]
    first, said = run_all(path, calls, tmp_path, **options)
    before = files_in(tmp_path)
    assert len(shapes_in(tmp_path)) == len(before) - 1 > 0
    forbidden()
    again, said_again = run_all(path, calls, tmp_path, **options)
    assert said_again == said
    for one, other in zip(again, first, strict=True):
        same_bits(one, other)
    if name != "buffers_dynamic":
        backwards, _ = run_all(path, calls[::-1], tmp_path, **options)
        for one, other in zip(backwards[::-1], first, strict=True):
            same_bits(one, other)
    assert files_in(tmp_path) == before


@pytest.fixture(scope="module")
def text_steps():
    """Tokens and positions of a text, in runs of several numbers of tokens."""
    return [[np.arange(start, start + count)[None] % 61, np.array([start])]
            for start, count in ((0, 8), (8, 4), (12, 1), (13, 1), (14, 2), (16, 4), (20, 1))]


@pytest.mark.parametrize("options", [*OPTIONS, {"cache": "int8"}], ids=str)
def test_a_language_model(options, text_steps, tmp_path, forbidden):
    """Its caches are the same bits after every run, also those of a further state, and whoever
    begins with other shapes."""
    path = MODELS / "llama.pte"

    def text(program, state):
        found = []
        for inputs in text_steps:
            found += program.run(*inputs, state=state)
        return [*found, *state.save().values()]

    results = []
    for number in range(3):
        with vkrt.load(path, plan_cache=tmp_path, **options) as program:
            own = program.load_method("forward").state
            with program.new_state() as other:
                results += [text(program, other), text(program, own)]
            if number:
                program.reset_state()
                for inputs in text_steps[4:]:  # values that mean nothing, at shapes in other turns
                    program.run(*inputs)
        forbidden()
    for result in results[1:]:
        same_bits(result, results[0])
    assert len(shapes_in(tmp_path)) == 4


def test_a_shape_that_no_process_ran_at(tmp_path, work_done):
    """It is compiled, with its weights where the first load has put them, and kept."""
    path, calls = MODELS / "attention-dyn.pte", calls_of("attention-dyn")
    assert len(calls) > 2
    run_all(path, [calls[0][0]], tmp_path)
    count = len(files_in(tmp_path))
    for position, (inputs, expected) in enumerate(calls[1:], 1):
        work_done.clear()
        with vkrt.load(path, plan_cache=tmp_path) as program:
            close_to(program.run(*calls[0][0]), calls[0][1])
            assert "lower" not in work_done
            close_to(program.run(*inputs), expected)
            assert "lower" in work_done
        assert len(files_in(tmp_path)) == count + position


def test_a_run_that_fails_keeps_nothing(tmp_path):
    inputs, expected = calls_of("pair-dyn")[1]
    with vkrt.load(MODELS / "pair-dyn.pte", plan_cache=tmp_path) as program:
        with pytest.raises(vkrt.InputError, match="does not hold"):
            program.run(*(np.zeros(sizes, np.float32) for sizes in ((7, 6), (7, 6), (1, 4))))
        assert not shapes_in(tmp_path)
        close_to(program.run_async(*inputs).result(60), expected)
        file, = shapes_in(tmp_path)
        status = file.stat()
        program.run(*inputs)
        assert file.stat() == status  # it is written once


def test_what_is_not_imported(tmp_path):
    """A process that runs at shapes that ran before has read neither program nor operators."""
    code = """
        import sys
        import vkrt
        import vkrt.text.model
        from vkrt.compiler import plan_cache
        plan_cache.RECENT_NS = 0
        with vkrt.load(sys.argv[1], plan_cache=sys.argv[2]) as program:
            assert program.constants["get_max_seq_len"] == (24,)
            session = vkrt.text.model.Session(vkrt.text.model.LanguageModel(program), chunk=8)
            session.add([1] * 9)
            session.logits()
        print(*(name for name in ("vkrt.pte.container", "vkrt.graph.build", "vkrt.ops.registry",
                                  "vkrt.lowering.lowering", "vkrt.plan.plan")
                if name in sys.modules))
    """
    first, second = (run_python(code, str(MODELS / "llama.pte"), str(tmp_path)).split()
                     for _ in range(2))
    assert len(first) == 5
    assert second == []


def test_a_load_makes_pipelines_for_what_runs(tmp_path):
    """Those of the largest sizes are not made by a load that finds its plan."""
    path = MODELS / "attention-dyn.pte"
    small = calls_of("attention-dyn")[-1][0]
    run_all(path, [small], tmp_path)
    with vkrt.Device.open() as device, vkrt.load(path, device, plan_cache=tmp_path) as program:
        instances = program.load_method("forward")._loaded.instances
        assert list(instances) == []
        program.run(*small)
        assert len(list(instances)) == 1


def test_threads(tmp_path):
    """Several programs at once, each at shapes of its own, and one program at all of them."""
    path, calls = MODELS / "attention-dyn.pte", calls_of("attention-dyn")

    def alone(inputs, expected):
        for _ in range(3):
            with vkrt.load(path, plan_cache=tmp_path) as program:
                close_to(program.run(*inputs), expected)

    in_threads(*(partial(alone, *call) for call in calls))
    count = len(files_in(tmp_path))
    assert count >= len(calls)
    for _ in range(2):
        with vkrt.load(path, plan_cache=tmp_path) as program:
            in_threads(*(lambda call=call: close_to(program.run(*call[0]), call[1])
                         for call in calls), lambda: program.load_method("forward").graph.nodes)
        assert len(files_in(tmp_path)) == count
        for file in shapes_in(tmp_path)[1:]:
            file.unlink()


def test_processes_that_write_at_once(tmp_path):
    """Whatever they do at the same time, a later one finds whole files."""
    code = """
        import sys
        import numpy as np
        import vkrt
        from vkrt.compiler import plan_cache
        plan_cache.RECENT_NS = 0
        path, folder, *counts = sys.argv[1:]
        for count in map(int, counts):
            with vkrt.load(path, plan_cache=folder) as program:
                program.run(np.ones((1, count), np.int64), np.zeros(1, np.int64))
    """
    path = str(MODELS / "llama.pte")
    in_threads(*(partial(run_python, code, path, str(tmp_path), *counts)
                 for counts in (("1", "2", "4"), ("4", "2", "1"))))
    assert len(files_in(tmp_path)) == len(shapes_in(tmp_path)) + 1 == 4
    for file in files_in(tmp_path):
        flat.File(file.read_bytes(), 1, 0)


def test_a_profile(tmp_path):
    """It names operators, of a shape that was read and of the largest one."""
    path, calls = MODELS / "conv-dyn.pte", [inputs for inputs, _ in calls_of("conv-dyn")]
    run_all(path, calls, tmp_path)
    with vkrt.load(path, plan_cache=tmp_path) as program:
        for inputs in (*calls, inputs_of(program)):
            steps = program.profile(*inputs, repeat=1).steps
            assert any(step.operator.startswith("aten.") for step in steps)


# Files that are not used


@pytest.fixture
def shape_file(tmp_path):
    """The file of the only shape that ran, and what checks that it is not used and written anew."""
    path, (inputs, expected) = MODELS / "pair-dyn.pte", calls_of("pair-dyn")[1]
    folder = tmp_path / "plans"
    run_all(path, [inputs], folder)
    file, = shapes_in(folder)
    good = file.read_bytes()

    def is_written_anew(work_done):
        work_done.clear()
        with vkrt.load(path, plan_cache=folder) as program:
            assert work_done == []
            close_to(program.run(*inputs), expected)
        assert work_done[:1] == ["lower"] and file.read_bytes() == good

    return file, is_written_anew


@pytest.mark.parametrize("damage", ["length", "flip", "empty", "header"])
def test_a_damaged_file(shape_file, work_done, damage):
    file, is_written_anew = shape_file
    file.write_bytes(damaged(file.read_bytes(), damage))
    is_written_anew(work_done)


def test_a_file_that_others_may_have_written(shape_file, work_done):
    file, is_written_anew = shape_file
    file.chmod(0o666)
    is_written_anew(work_done)


@pytest.mark.parametrize("other", ["shape", "weights", "method"])
def test_a_file_of_something_else(shape_file, work_done, other, tmp_path):
    """A plan at another shape, one with weights elsewhere, and one of another program, whose file
    has the name of this one."""
    file, is_written_anew = shape_file
    name = "bounds-dyn" if other == "method" else "pair-dyn"
    options = {"weights": "copy"} if other == "weights" else {}
    inputs, _ = calls_of(name)[2 if other == "shape" else 1]
    run_all(MODELS / f"{name}.pte", [inputs], tmp_path / "other", **options)
    found, = shapes_in(tmp_path / "other")
    if other == "weights" and found.read_bytes() == file.read_bytes():
        pytest.skip("weights are copied on this device anyway")
    shutil.copy(found, file)
    is_written_anew(work_done)


def test_every_word_counts(tmp_path):
    """A file with another word anywhere is none, or a plan of the same shape with the same weights
    and states in their places."""
    path = MODELS / "llama.pte"
    inputs = [np.ones((1, 1), np.int64), np.zeros(1, np.int64)]
    run_all(path, [inputs], tmp_path, weights="copy")
    file, = shapes_in(tmp_path)
    good = file.read_bytes()
    options = LoadOptions(plan_cache=tmp_path, weights="copy")
    with vkrt.load(path, plan_cache=tmp_path, weights="copy") as program:
        first, device = program.load_method("forward").largest, OpenDevice(program.device)
        source = Source.open(str(path))
        files = ShapeFiles(PlanFiles([source], options), "forward")
        shape = Shape(((1, 1), (1,)))
        whole = files.read(shape, first, device)
        assert whole is not None and whole.executable.figures.weight_bytes == 0
        random, refused = np.random.default_rng(5), 0
        places = range(flat.HEADER_BYTES, len(good) - 7, 8)
        for place in random.choice(places, 300, replace=False):
            number = int(random.choice([0, 1, -1, 3, 1 << 40]))
            file.write_bytes(with_checksum(
                good[:place] + struct.pack("<q", number) + good[place + 8:]))
            found = files.read(shape, first, device)
            refused += found is None
            if found is not None:
                assert found.executable.weights == first.executable.weights
                assert found.executable.states == first.executable.states
                assert [t.sizes for t in found.graph.inputs] == [(1, 1), (1,)]
        source.close()
    assert refused > 100


# What stays


def test_the_shapes_that_ran_lately_stay(tmp_path, monkeypatch):
    """In number and in bytes; a program that runs at others all the time keeps no more of them."""
    monkeypatch.setattr(shape_files, "MOST_FILES", 3)
    path, x = MODELS / "attention-dyn.pte", np.ones((1, 32, 24), np.float32)

    def run(*lengths):
        """How many graphs are made."""
        made, graph = [], Description.graph
        with monkeypatch.context() as patch:
            patch.setattr(Description, "graph",
                          lambda self, method: made.append(method) or graph(self, method))
            with vkrt.load(path, plan_cache=tmp_path) as program:
                for length in lengths:
                    program.run(x[:, :length])
                notes = program.memory.notes
        return bool(made), notes

    def grow_older():
        for file in files_in(tmp_path):
            status = file.stat()
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))

    run(2)
    for length in (3, 4):
        grow_older()
        assert run(2, length) == (True, [])  # a shape that is read is as new as one that is written
    grow_older()
    assert run(2, 4, 5)[0]
    assert len(shapes_in(tmp_path)) == 3
    assert run(2, 4, 5) == (False, [])
    assert run(3)[0]
    monkeypatch.setattr(shape_files, "MAX_BYTES", 0)
    run(6)
    assert len(shapes_in(tmp_path)) == 1
    monkeypatch.setattr(shape_files, "MOST_WRITTEN", 2)
    monkeypatch.setattr(shape_files, "MAX_BYTES", 1 << 30)
    _, (note,) = run(7, 8, 9, 10)
    assert "plans of some shapes are not kept for later loads" in note and "more than 2" in note


def test_weights_in_another_layout(device, tmp_path):
    """A load by the plan of the largest sizes does not have them: such a shape is compiled."""
    graph, data, run = layout_program()
    path = tmp_path / "weights"
    path.write_bytes(data)
    source = Source.open(str(path))
    files = ShapeFiles(PlanFiles([source], LoadOptions(plan_cache=tmp_path)), "layout")
    with open_method(graph, data, device) as method:
        method.keep_shapes(files)
        for count, width, kept in ((12, 3, 1), (7, 1, 1), (9, 3, 2)):
            x = np.ones((1, count), np.float32)
            close_to(method.execute([x, np.zeros(width, np.float32)]), [run(x, width)])
            assert len(shapes_in(tmp_path)) == kept
        assert sum("in layouts that they do not have" in note for note in method.report.notes) == 1
    source.close()
