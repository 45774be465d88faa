"""Programs in ExecuTorch's own runtime, where that is installed (tests/README.md says how)."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support import MODELS, model_folders, need_model, relative_l2, run_python

import vkrt
import vkrt.executorch
from vkrt.compiler.description import Description

# This folder of tests is a package of that name too, without what ExecuTorch's has.
if find_spec("executorch.runtime") is None:
    pytest.skip("ExecuTorch is not installed here (pip install -e '.[test,executorch]')",
                allow_module_level=True)

pytestmark = pytest.mark.driver

HERE = Path(__file__).parent
# Larger programs; those with external data have a test of their own.
FURTHER = [path for folder in model_folders() if folder != MODELS
           for path in sorted(folder.glob("*.pte"))
           if path.with_suffix(".npz").exists() and not path.stem.endswith("-ext")]


@pytest.fixture
def runtime(device):
    from executorch.runtime import Runtime

    vkrt.executorch.register(device)
    yield Runtime.get()
    assert not vkrt.executorch._host.in_use


def steps_of(path, count):
    """The inputs of the calls of a program: one, or several in order."""
    with np.load(path.with_suffix(".npz")) as archive:
        arrays = dict(archive)
    prefixes = sorted({name.split("_")[0] + "_" for name in arrays
                       if name.startswith(("step", "call"))},
                      key=lambda prefix: int(prefix[4:-1])) or [""]
    return [[arrays[f"{prefix}in{i}"] for i in range(count)] for prefix in prefixes]


def execute(method, inputs):
    import torch

    return [np.asarray(result) for result in
            method.execute([torch.from_numpy(array.copy()) for array in inputs])]


def compare(path, runtime, device, exact=True):
    """Runs a program in both and compares the results bit by bit."""
    with vkrt.load(path, device) as program:
        calls = steps_of(path, len(program.metadata().inputs))
        expected = [program.run(*inputs) for inputs in calls]
    method = runtime.load_program(path).load_method("forward")
    for inputs, wanted in zip(calls, expected):
        results = execute(method, inputs)
        assert len(results) == len(wanted)
        for result, each in zip(results, wanted):
            assert result.shape == np.shape(each)
            if exact:
                np.testing.assert_array_equal(result, each)
            else:
                assert relative_l2(result, np.asarray(each)) <= 1e-5


def has_kernels(path):
    """Whether kernels outside of the delegates run, for which the runtime has its own."""
    return bool(Description(path).program.plan("forward").operators)


@pytest.mark.parametrize("name", [
    "mlp", "mlp-fp16", "conv_mix", "quantized_mlp", "pair-dyn", "attention-dyn", "between-dyn",
    "masked-dyn", "shrinking-dyn", "buffers", "buffers_dynamic", "llama", "toy",
    "conv-dyn"])
def test_results_are_those_of_load(name, runtime, device):
    """The same bits, also with dynamic shapes, from state to state, and with a cache of attention.
    Kernels outside of delegates are the runtime's own there, which may round otherwise."""
    path = MODELS / f"{name}.pte"
    compare(path, runtime, device, exact=not has_kernels(path))


@pytest.mark.parametrize("path", FURTHER, ids=lambda path: path.stem)
def test_further_programs(path, runtime, device):
    compare(path, runtime, device, exact=not has_kernels(path))


def test_two_methods(runtime, device):
    path = MODELS / "coder.pte"
    with np.load(path.with_suffix(".npz")) as archive:
        arrays = dict(archive)
    program = runtime.load_program(path)
    methods = {name: program.load_method(name) for name in ("encode", "decode")}
    with vkrt.load(path, device) as own:
        for name, method in methods.items():
            x = arrays[f"{name}_in0"]
            np.testing.assert_array_equal(execute(method, [x])[0], own.run(x, method=name)[0])


def test_three_that_compute(runtime):
    """A delegate of vkrt's, kernels of the runtime and a delegate of XNNPACK's in one program."""
    path = HERE / "mixed.pte"
    plan = Description(path).program.plan("forward")
    assert {reference.id for reference in plan.delegates} == {"VulkanBackend", "XnnpackBackend"}
    assert plan.operators
    with np.load(path.with_suffix(".npz")) as archive:
        result, = execute(runtime.load_program(path).load_method("forward"), [archive["in0"]])
        assert relative_l2(result, archive["out0"]) <= 1e-5


def test_program_in_memory(runtime, device):
    path = MODELS / "mlp.pte"
    inputs, = steps_of(path, 1)
    with vkrt.load(path, device) as program:
        expected, = program.run(*inputs)
    method = runtime.load_program(path.read_bytes()).load_method("forward")
    np.testing.assert_array_equal(execute(method, inputs)[0], expected)


def test_external_constants(runtime, device):
    path = need_model("mlp-ext.pte")
    data, = path.parent.glob("*.ptd")
    inputs, = steps_of(path, 1)
    with pytest.raises(RuntimeError):
        runtime.load_program(path).load_method("forward")
    assert "pass" in vkrt.executorch.last_error() and "data_path" in vkrt.executorch.last_error()
    with vkrt.load(path, device, data_path=data) as program:
        expected, = program.run(*inputs)
    try:
        loaded = runtime.load_program(path, data_path=data)
    except TypeError:
        pytest.skip("this release of ExecuTorch takes no data_path")
    np.testing.assert_array_equal(execute(loaded.load_method("forward"), inputs)[0], expected)


def test_errors_have_words(runtime, tmp_path):
    """The runtime says a number, `last_error` what it means; other programs go on."""
    path = MODELS / "mlp.pte"
    inputs, = steps_of(path, 1)
    method = runtime.load_program(path).load_method("forward")
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes(path.read_bytes().replace(b"VH00", b"VH11"))
    with pytest.raises(RuntimeError, match="0x30|error"):
        runtime.load_program(damaged).load_method("forward")
    assert "FormatError: VH00 header.magic" in vkrt.executorch.last_error()
    execute(method, inputs)


def test_programs_may_outlive_everything():
    """A program that is still loaded when the process ends is no error."""
    output = run_python(f"""
        import torch, vkrt.executorch
        from executorch.runtime import Runtime
        vkrt.executorch.register()
        program = Runtime.get().load_program({str(MODELS / "mlp.pte")!r})
        method = program.load_method("forward")
        y, = method.execute([torch.zeros(3, 30)])
        print(tuple(y.shape))
        """)
    assert output.splitlines()[-1] == "(3, 10)"
