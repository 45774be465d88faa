"""Shaders that a driver does not compile: the load names them, and takes the next smaller ones.

The layer of tests/hostile refuses modules of more than VKRT_HOSTILE_MAX_SHADER bytes, in processes
of their own. VKRT_GPU_DRIVERS is a folder with a command `as-gpu NAME COMMAND..`
that runs COMMAND on the driver of a GPU that need not be there.
"""

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hostile_device import environment_of
from support import MODELS, damaged, run_python

from vkrt.cli.selftest import PROGRAMS, _graph
from vkrt.errors import PipelineError
from vkrt.graph.graph import Graph, Node
from vkrt.lowering.lowering import lower
from vkrt.runtime import refusals
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Constant, Tensor
from vkrt.work.tuning import Tuning

GPU, CPU = Tuning(lanes=16, shares=True), Tuning(lanes=16)
WIDE = replace(CPU, tiles=(((4, 16), 30.0), *CPU.tiles))
DOT = frozenset({"dot"})


def product(dtype="float32"):
    """A linear layer with large sizes."""
    x, out = Tensor((256, 64), dtype), Tensor((256, 256), dtype)
    weight = Tensor((256, 64), dtype, constant=Constant(0, 256 * 64 * 4, dtype))
    return Graph("product", [x], [out], [Node("aten.linear.default", (x, weight, None), (out,),
                                              "product")]).finish()


def of_selftest(name, dtype):
    return _graph(next(program for program in PROGRAMS if program.name == name), dtype)[0]


def chain_of(graph, target, kernel):
    """The shaders of a kernel that are taken one after the other as each is refused, the last of
    which is taken although it is."""
    found = []
    while True:
        work = lower(graph, replace(target, refused=frozenset(found)))
        one, = {step.shader for step in work.steps
                if isinstance(step, Dispatch) and step.shader.startswith(kernel)}
        if one in found:
            return [name.replace(".texel", "") for name in found]
        assert {note.split(":")[0].rpartition(" ")[2] for note in work.notes} == set(found)
        found.append(one)


@pytest.mark.parametrize(("graph", "target", "kernel", "expected"), [
    (product(), Target(tuning=GPU), "matmul", [
        "matmul_shared_64.f32", "matmul_shared_32.f32", "matmul_8x8.f32", "matmul_4x8.f32",
        "matmul_4x4.f32", "matmul_2x4.f32"]),
    (product("float16"), Target(tuning=CPU), "matmul", [
        "matmul_8x8.f16", "matmul_4x8.f16", "matmul_4x4.f16", "matmul_2x4.f16"]),
    (product(), Target(tuning=WIDE, features=frozenset({"shuffle"})),
     "matmul", ["matmul_4x16.f32.shuffle", "matmul_4x8.f32", "matmul_4x4.f32", "matmul_2x4.f32"]),
    (of_selftest("gemv", "float32"), Target(tuning=GPU), "gemv", ["gemv_team.f32", "gemv.f32"]),
    (of_selftest("softmax", "float32"), Target(tuning=GPU), "softmax", [
        "softmax_team.f32", "softmax.f32"]),
    (of_selftest("conv2d_depthwise", "float32"), Target(), "conv2d_depthwise", [
        "conv2d_depthwise_8.f32", "conv2d_depthwise_2.f32"]),
    (of_selftest("linear_q8", "int8"), Target(tuning=GPU, features=DOT), "matmul", [
        "matmul_shared_64.i32_i8.dot", "matmul_shared_64.i32_i8", "matmul_shared_32.i32_i8.dot",
        "matmul_shared_32.i32_i8", "matmul_8x8.i32_i8", "matmul_4x8.i32_i8", "matmul_4x4.i32_i8",
        "matmul_2x4.i32_i8", "matmul_shared_32.i8.dot", "matmul_shared_32.i8", "matmul_8x8.i8",
        "matmul_4x8.i8", "matmul_4x4.i8", "matmul_2x4.i8"]),
    (of_selftest("conv2d_q8", "int8"), Target(tuning=CPU), "conv2d", [
        f"conv2d_{tile}.{dtype}" for dtype in ("i32_i8", "i8")
        for tile in ("8x8", "4x8", "4x4", "2x4", "1x4")])],
    ids=lambda value: value if isinstance(value, str) else "")
def test_the_next_smaller_kernel(graph, target, kernel, expected):
    assert chain_of(graph, target, kernel) == expected


LOAD = """
    import sys
    import numpy as np
    import vkrt
    import vkrt.program.program
    from vkrt.errors import PipelineError
    from vkrt.runtime import refusals
    from vkrt.vk import live_objects
    notes, note = [], refusals.note

    def counted(device, names):
        notes.append(names)
        note(device, names)

    refusals.note = vkrt.program.program.note = counted
    path = sys.argv[1]
    with np.load(path[:-3] + "npz") as archive:
        x, y = archive.get("in0"), archive.get("out0")
"""


@pytest.fixture
def at_most(tmp_path):
    """Runs code behind `LOAD` on a device whose compiler gives up beyond so many bytes."""
    def run(nbytes, code, name="quantized_mlp", **environment):
        environment = {"XDG_CACHE_HOME": str(tmp_path), "VKRT_PLAN_CACHE": "auto", **environment,
                       "VKRT_HOSTILE_MAX_SHADER": str(nbytes)}
        return run_python(LOAD + code, str(MODELS / f"{name}.pte"), **environment_of("adreno"),
                          **environment)
    return run


RESULT = """
    with vkrt.load(path) as program:
        result, = program.run(x)
        memory = program.memory
        np.testing.assert_array_equal(result, y)
        assert memory.measured_peak == memory.planned_peak == memory.phases[-1].device
        print(*notes, *memory.notes, sep="\\n")
"""
REFUSED = "matmul_2x4.texel.i32_i8"


def test_a_network_loads_with_smaller_kernels(at_most):
    """Once the load begins anew; a later process knows, by its cached plan and without."""
    said = at_most(20000, RESULT).splitlines()
    assert said == [f"('{REFUSED}',)",
                    f"the driver does not compile {REFUSED}: smaller kernels are used"]
    for option in ("auto", "off"):
        assert at_most(20000, RESULT, VKRT_PLAN_CACHE=option).splitlines() == said[1:]


def test_without_a_cache_the_process_knows(at_most):
    said = at_most(20000, RESULT.replace("path)", 'path, pipeline_cache="off")') * 2).splitlines()
    first = at_most(20000, RESULT).splitlines()
    assert len(first) == 2
    assert said == [first[0], first[1], first[0], first[1]]  # `notes` is printed twice


@pytest.mark.parametrize("damage", ["flip", "empty", "length"])
def test_a_damaged_file_is_none(at_most, tmp_path, damage):
    at_most(20000, RESULT)
    path, = tmp_path.rglob("*.vkrtrefused")
    good = path.read_bytes()
    path.write_bytes(damaged(good, damage))
    assert len(at_most(20000, RESULT).splitlines()) == 2
    assert path.read_bytes() == good


def test_a_cached_plan_whose_kernels_do_not_compile(at_most):
    """It was made when they did: the program is read."""
    assert at_most(10**9, RESULT) == "\n"
    assert at_most(20000, RESULT).splitlines()[0] == f"('{REFUSED}',)"


def test_nothing_smaller(at_most):
    """The error names the shader and what was compiled in, and nothing is left."""
    said = at_most(11000, """
    with vkrt.Device.open() as device:
        before = live_objects()
        for _ in range(2):
            try:
                vkrt.load(path, device)
            except PipelineError as error:
                print(error, error.shaders[0], sep="\\n")
        # The device's own cache stays with it.
        assert live_objects() == {**before, "pipeline_cache": 1}
    """, "mlp").splitlines()
    assert said[1] == "matmul_2x4.texel.f32"
    assert said[0].startswith("shader matmul_2x4.texel.f32 (")
    assert "local_size_x=" in said[0]
    assert "vkCreateComputePipelines: the driver does not say what failed" in said[0]
    assert said[2:] == said[:2]


def test_sizes_that_take_a_larger_kernel(at_most):
    """It does not compile when they are run first, and they take a smaller one."""
    said = at_most(10**9, """
    import os
    from dataclasses import replace
    from vkrt.device.policy import overridden, policy_of

    def rows(program, count):
        x = np.random.default_rng(count).standard_normal((1, count, 24), np.float32)
        return program.run(x)[0]

    with vkrt.Device.open() as device:
        policy = policy_of(device.info)
        with overridden(replace(policy, tuning=replace(policy.tuning, lanes=16))):
            with vkrt.load(path, device) as program:
                expected = {count: rows(program, count) for count in (12, 32)}
            with vkrt.load(path, device) as program:
                os.environ["VKRT_HOSTILE_MAX_SHADER"] = "16000"
                found = {count: rows(program, count) for count in (32, 12)}
                print(*sum(notes, ()))
                assert found[32].tobytes() == expected[32].tobytes()
                np.testing.assert_allclose(found[12], expected[12], rtol=1e-4, atol=1e-6)
                memory = program.memory
                assert memory.measured_peak == memory.planned_peak
            with vkrt.load(path, device) as program:
                assert rows(program, 12).tobytes() == found[12].tobytes()

    """, "attention-dyn", VKRT_PLAN_CACHE="off")
    assert said.split() == ["matmul_8x8.texel.f32", "matmul_4x8.texel.f32"]


def test_cached_plans_of_sizes_whose_kernels_do_not_compile(at_most):
    """They did when the plans were made: the sizes are compiled anew, the largest ones, too."""
    said = at_most(10**9, """
    import os

    x = np.random.default_rng(1).standard_normal((1, 32, 24), np.float32)
    with vkrt.load(path) as program:
        expected = [program.run(x[:, :count])[0] for count in (32, 12)]
    os.environ["VKRT_HOSTILE_MAX_SHADER"] = "16000"
    for _ in range(2):
        with vkrt.load(path) as program:
            for count, wanted in zip((32, 12), expected):
                found, = program.run(x[:, :count])
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
            assert program.memory.measured_peak <= program.memory.planned_peak
        print(len(notes))
    """, "attention-dyn")
    first, second = map(int, said.split())
    assert 0 < first == second


def test_doctor_says_what_is_refused(at_most):
    said = at_most(20000, """
    from vkrt.cli import selftest
    from vkrt.cli.main import main
    selftest.PROGRAMS = tuple(p for p in selftest.PROGRAMS if p.name == "linear_q8")
    print(main(["doctor", "--quick"]))
    """)
    assert "\nrefuses   matmul_shared_32.texel.i32_i8: the driver does not compile it" in said
    assert "\nresult    3 programs, none wrong\n0\n" in said


def test_info_compiles_smaller_kernels(at_most):
    said = at_most(20000, """
    from vkrt.cli.main import main
    print(main(["info", "--compile", path]))
    """)
    assert f"  note: the driver does not compile {REFUSED}: smaller kernels are used\n0\n" in said


def test_a_load_that_began_before_another_noted_the_same(device, monkeypatch, tmp_path):
    """It begins anew; what it knew and met again is an error."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(refusals, "_refused", {})
    begun = []

    def load(last=2):
        begun.append(refusals.refused_by(device))
        if len(begun) < last:
            refusals.note(device, ["some.texel.f32"])
            raise PipelineError("no", shaders=["some.texel.f32"])
        return "loaded"

    assert refusals.with_smaller(device, load) == "loaded"
    assert begun == [(), ("some.texel.f32",)]
    begun.clear()
    with pytest.raises(PipelineError):
        refusals.with_smaller(device, load)
    assert len(begun) == 1


def test_what_is_known_is_looked_up(device, monkeypatch, tmp_path):
    """Every new shape asks: without a digest, and without sorting anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(refusals, "_refused", {})
    refusals.note(device, ["some.texel.f32", "other.texel.f32"])
    names = refusals.refused_by(device)
    assert names == ("other.texel.f32", "some.texel.f32")
    monkeypatch.setattr(refusals, "sha256", None)
    assert refusals.refused_by(device) is names


@pytest.mark.skipif("VKRT_GPU_DRIVERS" not in os.environ, reason="needs VKRT_GPU_DRIVERS")
def test_the_compiler_of_a_raspberry_pi(tmp_path):
    """Mesa's compiler for V3D gives up on products of words in any tile: its profile has none."""
    as_gpu = os.path.join(os.environ["VKRT_GPU_DRIVERS"], "as-gpu")
    done = subprocess.run(
        [as_gpu, "raspberry-pi-4", sys.executable, "-m", "vkrt", "run", "--memory",
         str(MODELS / "quantized_mlp.pte")], check=False, capture_output=True, text=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"),
             "GPUDRIVERS": os.environ.get("GPUDRIVERS", str(tmp_path / "drivers"))}, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "output 0: float32[3, 10]" in done.stdout
    assert "does not compile" not in done.stdout
