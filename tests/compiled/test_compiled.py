"""Compiled programs: the same results and no more bytes than the program, from one file."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from compiled_files import rewritten, smaller
from program_samples import changed, program_of
from support import MODELS, inputs_of, need_model, raising, run_python, same_bits

import vkrt
from vkrt.compiled.file import read
from vkrt.device import policy
from vkrt.errors import FormatError, InputError, UnsupportedError
from vkrt.executable import flat, rows
from vkrt.executable.program import Compiled
from vkrt.executable.records import DispatchCommand
from vkrt.executable.weights import WeightRead
from vkrt.memory.source import Source
from vkrt.runtime.fit import fitted
from vkrt.text.model import LanguageModel, Session

# Several methods, states, quantized weights, branches, several outputs, halves
NAMES = ("mlp", "elementwise", "quantized_mlp", "kept_attention", "branches", "unet_small", "coder",
         "mlp-fp16", "kept", "conv_mix")
MLP = MODELS / "mlp.pte"

pytestmark = pytest.mark.driver


def runs(path, method: str, **options):
    """Outputs of two runs, and the report of memory."""
    with vkrt.load(path, **options) as program:
        inputs = inputs_of(program, method)
        outputs = [value for _ in range(2) for value in program.run(*inputs, method=method)]
        return outputs, program.memory


@pytest.mark.parametrize("name", NAMES)
def test_the_same_program(name, storage, tmp_path):
    path, out = MODELS / f"{name}.pte", tmp_path / "net.vkx"
    done = vkrt.compile(path, out, storage=storage)
    assert done.output == str(out) and done.file_bytes == out.stat().st_size
    with vkrt.load(path, storage=storage) as program, vkrt.load(out) as compiled:
        assert compiled.method_names == program.method_names == done.methods
        assert compiled.constants == program.constants
        methods = [m for m in program.method_names if m not in program.constants]
        for method in methods:
            assert repr(compiled.metadata(method)) == repr(program.metadata(method))
    for method in methods:
        expected, planned = runs(path, method, storage=storage)
        found, memory = runs(out, method)
        same_bits(found, expected)
        if len(methods) == 1:
            assert memory.planned_peak == memory.measured_peak == done.peak_bytes[0]
            # Weights that pass a staging buffer have their padding with them.
            assert memory.planned_peak - memory.staging <= planned.planned_peak - planned.staging


@pytest.mark.parametrize("options", [{"weights": "copy"}, {"weights": "direct"},
                                     {"weights": "stream"}, {"memory_budget": "smallest"},
                                     {"fusions": "off", "order": "eager"}], ids=str)
def test_options_are_decided_when_it_is_compiled(options, tmp_path):
    path, out = MODELS / "unet_small.pte", tmp_path / "net.vkx"
    try:
        vkrt.compile(path, out, **options)
    except UnsupportedError as error:
        pytest.skip(str(error))
    found, memory = runs(out, "forward")
    expected, loaded = runs(path, "forward", **options)
    same_bits(found, expected)
    assert memory.planned_peak == memory.measured_peak
    if "memory_budget" in options:  # which is kept by the same strips
        assert memory.planned_peak <= loaded.planned_peak
    for name, value in options.items():
        with pytest.raises(InputError, match=f"{name}=.*decided when it was compiled"):
            vkrt.load(out, **{name: value})


def test_nothing_else_is_needed(copy_of):
    """Neither the program, nor the modules that lower and plan."""
    code = """
        import sys
        import vkrt
        from vkrt.compiler import plan_cache
        with vkrt.load(sys.argv[1]) as program:
            program.run(*[info.example() for info in program.metadata().inputs])
        print(*(name for name in ("vkrt.pte.container", "vkrt.graph.build", "vkrt.ops.registry",
                                  "vkrt.lowering.lowering", "vkrt.plan.plan")
                if name in sys.modules))
    """
    program = copy_of("mlp")
    out = program.with_suffix(".vkx")
    assert vkrt.compile(program).output == str(out)
    program.unlink()
    assert run_python(code, out, VKRT_PLAN_CACHE="off").split() == []


def test_a_state_goes_from_one_to_the_other(load, compiled_of):
    program, compiled = load("kept_attention"), load(compiled_of("kept_attention"))
    inputs = inputs_of(program)
    program.run(*inputs)
    compiled.load_state(program.save_state())
    with program.new_state() as fresh, compiled.new_state() as other:
        same_bits(compiled.run(*inputs, state=other), program.run(*inputs, state=fresh))
    same_bits(compiled.run(*inputs), program.run(*inputs))
    compiled.load_method("forward").state.reset()


@pytest.mark.parametrize("smallest_first", [False, True])
def test_a_budget_of_several_shapes_is_kept_as_a_load_keeps_it(smallest_first, compiled_of):
    """Nodes are in parts where the largest shape needs that, whichever comes first."""
    path = MODELS / "attention-dyn.pte"
    with vkrt.load(path, memory_budget="smallest") as program:
        largest = [info.sizes for info in program.metadata().inputs]
        shapes = [largest, [smaller(info) for info in program.metadata().inputs]]
        chance = np.random.default_rng(2)
        inputs = [[chance.standard_normal(sizes).astype("f4") for sizes in shape]
                  for shape in shapes]
        expected = [program.run(*values) for values in inputs]
        most = program.memory.planned_peak
    with vkrt.load(path) as whole:
        assert most < whole.memory.planned_peak
    out = compiled_of(path, memory_budget="smallest",
                      shapes=shapes[::-1] if smallest_first else shapes)
    with vkrt.load(out) as compiled:
        for values, results in zip(inputs, expected):
            same_bits(compiled.run(*values), results)
        assert compiled.memory.planned_peak == compiled.memory.measured_peak == most


def test_dynamic_shapes_are_compiled_at_some(tmp_path):
    """The first two shapes over one set of weights, in any order; no other runs."""
    path, out = MODELS / "conv-dyn.pte", tmp_path / "net.vkx"
    with pytest.raises(UnsupportedError, match="name those that the compiled program is to have"):
        vkrt.compile(path, out)
    with vkrt.load(path) as program:
        info, = program.metadata().inputs
        assert info.dynamic_dims
        shapes = [smaller(info), info.sizes]
        chance = np.random.default_rng(2)
        inputs = [chance.standard_normal(sizes).astype(info.dtype) for sizes in shapes]
        expected = [program.run(x) for x in inputs]
    vkrt.compile(path, out, shapes=[[sizes] for sizes in shapes])
    with vkrt.load(out) as compiled:
        assert compiled.metadata().inputs[0].sizes == info.sizes
        for number in (0, 1, 1, 0):
            same_bits(compiled.run(inputs[number]), expected[number])
        report = compiled.memory
        assert report.planned_peak == report.measured_peak and len(report.shapes) == 2
        other = tuple(n - (d in info.dynamic_dims) for d, n in enumerate(info.sizes))
        with pytest.raises(InputError, match="it is not compiled for inputs of sizes"):
            compiled.run(np.zeros(other, info.dtype))
        same_bits(compiled.run(inputs[0]), expected[0])
    for wrong in ([[shapes[0], shapes[0]]], [[]]):
        with pytest.raises(InputError, match="expected the sizes of 1 inputs"):
            vkrt.compile(path, out, shapes=wrong)
    assert os.listdir(tmp_path) == ["net.vkx"]


def test_one_shape_is_no_dynamic_one(compiled_of):
    with vkrt.load(MODELS / "conv-dyn.pte") as program:
        sizes = smaller(program.metadata().inputs[0])
    with vkrt.load(compiled_of("conv-dyn", shapes=[[sizes]])) as compiled:
        info, = compiled.metadata().inputs
        assert info.sizes == sizes and not info.dynamic_dims


@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_a_language_model(weights, compiled_of):
    """Prompts and steps of 1, 2 and 4 tokens over one state: the tokens of the program itself."""
    path = need_model("smollm2-135m-4w.pte")
    try:
        out = compiled_of(path, shapes=[[(1, count), (1,)] for count in (1, 2, 4)], weights=weights)
    except (InputError, UnsupportedError) as error:
        pytest.skip(str(error))
    texts = []
    for name, options in ((path, {"weights": weights}), (out, {})):
        with vkrt.load(name, **options) as program:
            session = Session(LanguageModel(program), chunk=4)
            session.add([504, 3575, 282, 4649, 314, 504, 2])
            for _ in range(3):
                session.add([int(session.logits().argmax())])
            texts.append(session.ids)
            # The program is planned for the longest prompt that it may be given.
            planned, measured = program.memory.planned_peak, program.memory.measured_peak
            assert planned == measured if name == out else planned >= measured
    assert texts[0] == texts[1]


def test_kernels_of_the_host_are_refused_by_name(tmp_path, on_host):
    with pytest.raises(UnsupportedError, match=r"places\.pte: aten::.* run on the host"):
        vkrt.compile(MODELS / "places.pte", tmp_path / "net.vkx")
    assert not os.listdir(tmp_path)


def test_what_a_compiled_program_does_not_have(compiled_of, tmp_path):
    out = compiled_of(MLP)
    with pytest.raises(InputError, match="has all of its data"):
        vkrt.load(out, data_path=str(MLP))
    with vkrt.load(out) as program:
        method = program.load_method("forward")
        for ask in (lambda: method.work, lambda: method.planned,
                    lambda: program.profile(*inputs_of(program))):
            with pytest.raises(UnsupportedError, match=r"compiled program and has no graph; load "
                                                       r"mlp\.pte"):
                ask()
        with pytest.raises(InputError, match="no method 'other'"):
            program.load_method("other")
    with pytest.raises(FormatError, match="is a compiled program"):
        vkrt.compile(out, tmp_path / "other")


def test_other_files_are_not_written_over(compiled_of, tmp_path, monkeypatch):
    photo = tmp_path / "photo.jpg"
    photo.write_bytes(b"\xff\xd8\xff")
    with pytest.raises(InputError, match="not a compiled program"):
        vkrt.compile(MLP, photo)
    out = compiled_of(MLP)
    good = out.read_bytes()
    vkrt.compile(MLP, out)
    assert out.read_bytes() == good
    monkeypatch.setattr("vkrt.compiled.compiler._write_modules",
                        raising(OSError, 28, "the disk is full"))
    with pytest.raises(OSError, match="the disk is full"):
        vkrt.compile(MLP, out)
    assert out.read_bytes() == good and sorted(os.listdir(tmp_path)) == ["mlp.vkx", "photo.jpg"]


# Whether it fits


@pytest.fixture
def executable(device, compiled_of):
    """One of an image's network, with shaders that pack its weights where there are some."""
    out = compiled_of("conv_mix", device=device, storage="texture3d", weights="copy")
    with closing(Source.open(out)) as source:
        return read(source).read().targets[0].methods[0].executables[0]


def with_dispatch(executable, **changes):
    """The same with its first dispatch changed."""
    commands = executable.execution.submissions[0].commands
    number = next(i for i, c in enumerate(commands) if isinstance(c, DispatchCommand))
    return changed(executable, f"execution.submissions.0.commands.{number}",
                   commands[number]._replace(**changes))


def with_block(executable, **changes):
    """The same with its first block of activations changed."""
    return changed(executable, "execution.blocks.0",
                   executable.execution.blocks[0]._replace(**changes))


def with_places(executable, change):
    """The same with the places of its first block of activations changed, in a larger block."""
    block, storages = executable.execution.blocks[0], executable.execution.storages
    return with_block(executable, nbytes=block.nbytes + 64, places=tuple(
        change(place, storages[place.storage]) for place in block.places))


def fitted_on(executable, device):
    """The executable for a device, by way of a file."""
    program = program_of(executable)
    file = flat.File(rows.to_bytes(program), 1, 0)
    made, = fitted(file, 0, 0, program.targets[0].methods[0], device)
    return made


def test_it_fits_its_own_device(device, executable):
    assert fitted_on(executable, device) == executable


def test_types_of_memory_become_those_of_the_device(device, executable):
    assert fitted_on(with_block(executable, type_bits=1 << 31), device) == executable


@pytest.mark.parametrize("change, words", [
    (lambda e: with_dispatch(e, groups=(1 << 31, 1, 1)), "a dispatch of"),
    (lambda e: with_block(e, nbytes=1 << 62), "bytes at once"),
    (lambda e: with_block(e, alignment=1), "where the device asks for"),
    (lambda e: with_places(e, lambda place, storage: place._replace(
        nbytes=1 if storage.is_image else place.nbytes)), "where the device asks"),
    (lambda e: with_places(e, lambda place, storage: place._replace(offset=place.offset + 1)),
     "at multiples of"),
    (lambda e: e._replace(shared_bytes=1 << 40), "in a workgroup"),
    (lambda e: e._replace(granularity=3), "bufferImageGranularity"),
    (lambda e: e._replace(execution=e.execution._replace(kernels=tuple(
        kernel._replace(constants=((100, 1 << 20),)) for kernel in e.execution.kernels))),
     "workgroups of 1048576 invocations"),
])
def test_a_device_that_does_not_fit(device, executable, change, words):
    with pytest.raises(UnsupportedError, match=words):
        fitted_on(change(executable), device)


def test_loops_that_the_driver_ends(device, executable):
    row = policy.policy_of(device.info)
    with policy.overridden(replace(row, loop_limit=executable.loops)):
        fitted_on(executable, device)
    with (policy.overridden(replace(row, loop_limit=executable.loops - 1)),
          pytest.raises(UnsupportedError, match="its kernels loop")):
        fitted_on(executable, device)


def test_views_that_the_driver_reads_though_it_says_less(device, compiled_of):
    """As SwiftShader does, see its profile."""
    out = compiled_of("unet_small", device=device, storage="texel")
    with policy.overridden(replace(policy.policy_of(device.info), max_texels=16)), pytest.raises(
            UnsupportedError, match="and the device 16 at most"):
        vkrt.load(out)


def test_ways_of_weights(device, executable):
    """Staging for the host's own memory, and writing to what the host does not see."""
    weights = executable.weights
    with pytest.raises(UnsupportedError, match="the device"):
        if device.unified:
            fitted_on(executable._replace(weights=weights._replace(upload_bytes=1024)), device)
        else:
            storages = executable.execution.storages
            buffer = next(n for n in weights.weights if not storages[n].is_image)
            read = WeightRead(buffer, 0, 0, 16, 0, None, "w")
            fitted_on(executable._replace(weights=weights._replace(written=(read,))), device)


def test_the_first_target_that_fits_is_taken(device, tmp_path):
    out = tmp_path / "net.vkx"
    done = vkrt.compile(MLP, out, device=[device, device])
    assert len(done.targets) == len(done.peak_bytes) == 2

    def spoil(compiled: Compiled, count: int) -> Compiled:
        for number, target in enumerate(compiled.targets[:count]):
            method, = target.methods
            compiled = changed(compiled, f"targets.{number}.methods.0.largest.executable",
                               with_dispatch(method.largest.executable, groups=(1 << 31, 1, 1)))
        return compiled

    expected = runs(MLP, "forward")[0]
    rewritten(out, lambda compiled: spoil(compiled, 1))
    same_bits(runs(out, "forward")[0], expected)
    rewritten(out, lambda compiled: spoil(compiled, 2))
    with pytest.raises(UnsupportedError, match="was not compiled for .*compile the program for "):
        vkrt.load(out)


def test_shaders_of_another_build(compiled_of):
    """What runs are the shaders that are installed; so they have to be those of the file."""
    out = compiled_of(MLP)
    rewritten(out, lambda compiled: compiled._replace(modules=tuple(
        module._replace(sha256="0" * 64) for module in compiled.modules)))
    with pytest.raises(UnsupportedError, match="is another one than this build"):
        vkrt.load(out)


# The command


def test_the_command(tmp_path, output_of, error_of):
    out = tmp_path / "net.vkx"
    said = output_of("compile", MLP, "-o", out, "--target", "0")
    assert said.startswith(f"wrote {out}, ") and "1 method, " in said
    said = output_of("info", out)
    assert said.startswith("compiled from mlp.pte by vkrt") and "predicted peak" in said
    assert "output 0" in output_of("run", out, "--input", MODELS / "mlp.npz")
    assert "--shape" in error_of(3, "compile", MODELS / "conv-dyn.pte", "-o", out)


@pytest.mark.parametrize(("name", "shapes", "text"), [
    ("mlp", [[(2, 30)]], r"'input_0' .* is float32\[3,30\], got sizes \[2, 30\]; dimension 0 has "
                         "to be 3, not 2"),
    ("toy", [[(1, 3, 16)]], "it has 4 dimensions"),
    ("attention-dyn", [[(1, 0, 24)]], "dimension 1 has to be 1 to 32, not 0"),
    ("attention-dyn", [[(1, 33, 24)]], "dimension 1 has to be 1 to 32, not 33"),
    ("attention-dyn", [[(1, 4, 24), (1, 4, 24)]], "expected the sizes of 1 inputs"),
    ("attention-dyn", [{"input_0": (1, 4, 24)}], "a list of the sizes of every input"),
    ("attention-dyn", [["1,4"]], "a list of the sizes of every input"),
    ("attention-dyn", {"input_0": (1, 4, 24)}, "a list of shapes, got a dict")])
def test_sizes_that_a_run_would_refuse(name, shapes, text, tmp_path):
    """The arguments are to blame, not the file."""
    out = tmp_path / "net.vkx"
    with pytest.raises(InputError, match=f"shapes: .*{text}"):
        vkrt.compile(MODELS / f"{name}.pte", out, device="generic", shapes=shapes)
    assert not out.exists()


def test_no_device_to_compile_for(tmp_path):
    with pytest.raises(InputError, match="at least one device"):
        vkrt.compile(MLP, tmp_path / "net.vkx", device=[])
