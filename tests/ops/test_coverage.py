"""Operators, shaders and samples agree; no driver is needed."""

import gc
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from dealing import STORAGES
from fused_graphs import graphs
from graph_maker import graph_of_node
from harness import samples, variants
from small_graphs import families_of, shaders_of
from support import outside, run_python

from vkrt.device.policy import policy_from
from vkrt.device.rows import FEATURES, PACKAGE, read
from vkrt.errors import UnsupportedError
from vkrt.graph.graph import Graph
from vkrt.lowering.context import Lowering
from vkrt.lowering.lowering import lower
from vkrt.ops.registry import supported
from vkrt.shader import shader_library, spirv
from vkrt.work.command_list import CommandList
from vkrt.work.records import HAS_FEW_TEXELS, IS_SMALL, IS_WHOLE, LOCAL_SIZE, Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Operand, Storage, Tensor
from vkrt.work.tuning import WIDE_TILES, Tuning

SHADERS = Path(__file__).parents[2] / "shaders"

# Constants that the runtime sets (`Dispatch.constants`), and where shaders declare them
OF_RUNTIME = {LOCAL_SIZE: "params.glsl", IS_SMALL: "division.glsl", IS_WHOLE: "tensor.glsl",
              HAS_FEW_TEXELS: "division.glsl"}
SHARING = policy_from(read(f"{PACKAGE}/default.json")).tuning
WIDE = replace(Tuning(), tiles=(*((tile, 1e6) for tile in WIDE_TILES), *Tuning().tiles))
# The size of a result's packed dimension, by which kernels tell where its padding begins
PACKED_SIZES = "size", "channels"


@cache
def command_lists() -> list[tuple[str, CommandList]]:
    """(name, command list) of every sample, and of nodes that become one kernel, in every storage,
    and in a GPU's shape where it differs."""
    # All of it stays: collections in between would only look through it, again and again.
    gc.disable()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Lowering, "write", _noted(Lowering.write))
            return _command_lists()
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _made_for_this_file():
    yield
    command_lists.cache_clear()
    OVER.clear()


# By the identity of a result's storage: (node, that storage, storages that it may go over)
OVER: dict[int, list[tuple[int, Storage, list[Storage]]]] = {}


def _noted(write):
    """`Lowering.write`, which notes what results may go over."""
    def noted(self, tensor, order=None, over=(), read_elsewhere=()):
        result = write(self, tensor, order, over, read_elsewhere)
        if over:
            OVER.setdefault(id(result.storage), []).append(
                (self.node, result.storage, [operand.storage for operand in over]))
        return result
    return noted


def _command_lists() -> list[tuple[str, CommandList]]:
    result = []
    for variant in variants():
        # In halves and in another memory order at once there is nothing new to a GPU's shape.
        result += lowered(str(variant), variant.case().graph,
                          everywhere=not variant.half or variant.layout == "plain")
    for name, graph in graphs():
        result += lowered(name, graph)
    return result


@cache
def families_of_lanes() -> frozenset[str]:
    """Families of the kernels in which lanes hand weights round: the first words of their names."""
    return frozenset(name.split(".")[0].split("_")[0] for name in built_library()
                     if name.endswith(".shuffle"))


def lowered(sample: str, graph: Graph, everywhere: bool = True) -> list[tuple[str, CommandList]]:
    """(name, command list) in every storage, `everywhere` also in a GPU's shape, and with the
    kernels of other choices."""
    result = []
    for storage in STORAGES:
        target = Target(storage=storage, max_texels=1 << 26, max_image_extent=16384, scratch="any")
        plain = lower(graph, target)
        result.append((f"{sample}-{storage}", plain))
        if not everywhere:
            continue
        # The same in a GPU's shape, with every feature and with none
        for name, features in (("shared", ()), ("featured", FEATURES)):
            work = lower(graph, replace(target, tuning=SHARING, features=frozenset(features)))
            if work.steps == result[-1][1].steps:
                break
            result.append((f"{sample}-{storage}-{name}", work))
        if any("_shared_" in name for name in shaders_of(result[-1][1])):
            # The larger tile, where it is large enough
            few = replace(SHARING, lanes=1)
            work = lower(graph, replace(target, tuning=few, features=frozenset(FEATURES)))
            result.append((f"{sample}-{storage}-few-lanes", work))
        # With Winograd's method in workgroups, too, for few lanes and for many
        if any(name.startswith("winograd_") for _, work in result for name in shaders_of(work)):
            for lanes in (1, 1 << 20):
                room = replace(target, scratch="spare", max_invocations=256,
                               tuning=replace(SHARING, lanes=lanes))
                result.append((f"{sample}-{storage}-{lanes}-lanes", lower(graph, room)))
        # With the smaller kernels that some have for few registers
        if any(name.startswith(("linear_q4", "conv2d")) for name in shaders_of(result[-1][1])):
            for registers in (128, 32):
                fewer = Tuning(lanes=1, registers=registers)
                result.append((f"{sample}-{storage}-{registers}",
                               lower(graph, replace(target, tuning=fewer))))
        # With weights that lanes hand round, wherever a kernel does it
        if families_of_lanes().isdisjoint(name.split("_")[0] for name in families_of(plain)):
            continue
        work = lower(graph, replace(target, tuning=WIDE, features=frozenset(["shuffle"])))
        if any(".shuffle" in name for name in shaders_of(work)):
            result.append((f"{sample}-{storage}-wide", work))
    return result


def dispatches() -> Iterator[tuple[str, Dispatch]]:
    for name, work in command_lists():
        for step in work.steps:
            if isinstance(step, Dispatch):
                yield name, step


def built_library():
    try:
        return shader_library()
    except UnsupportedError:
        pytest.skip("vkrt is not built")


def test_samples_are_of_every_operator_and_of_no_other():
    assert {sample.op for sample in samples()} == set(supported())


def test_operators_are_declared_where_the_list_of_families_says():
    """So that importing that module alone is enough; and asking for one imports no more."""
    said = run_python("""
        import sys
        from vkrt.ops import registry

        operators, kernels = {}, {}

        def now():
            # The module that is being imported
            frame = sys._getframe()
            while frame.f_code.co_name != "<module>":
                frame = frame.f_back
            return frame.f_globals["__name__"].removeprefix("vkrt.ops.")

        class Watched(dict):
            def __init__(self, modules):
                self.modules = modules
            def __setitem__(self, name, value):
                self.modules[name] = now()
                super().__setitem__(name, value)

        assert not registry._DECLARED and not registry._KERNELS
        registry._DECLARED, registry._KERNELS = Watched(operators), Watched(kernels)
        registry.operator("aten.linear.default")
        print("vkrt.ops.pooling" in sys.modules)
        registry.operators()
        assert operators and kernels
        print(all(registry.module_of(name, found is kernels) == module
                  for found in (operators, kernels) for name, module in found.items()))
    """)
    assert said.split() == ["False", "True"]


def test_every_shader_is_used():
    used = {step.shader.split(".")[0] for _, step in dispatches()}
    used |= {prepack.shader.split(".")[0]
             for _, work in command_lists() for prepack in work.prepacks}
    there = {path.stem for path in SHADERS.rglob("*.comp")}
    assert not there - used, f"shaders that no sample runs: {sorted(there - used)}"


def test_dispatches_fit_their_shaders():
    """Bindings and parameters of each dispatch are those in the shader's own SPIR-V."""
    shaders = built_library()
    wrong = set()
    for name, step in dispatches():
        shader = shaders.get(step.shader)
        operands = [*step.writes, *step.reads]
        for binding in shader.bindings:
            if binding.binding >= len(operands):
                wrong.add(f"{step.shader} ({name}): no operand for binding {binding.name}")
            elif binding.writable != (binding.binding < len(step.writes)):
                wrong.add(f"{step.shader} ({name}): {binding.name} is written and read")
        if len(shader.bindings) != len(operands):
            wrong.add(f"{step.shader} ({name}): {len(operands)} operands for "
                      f"{len(shader.bindings)} bindings")
        beyond = [spec.name for spec in shader.specs
                  if spec.id not in OF_RUNTIME and spec.id >= len(step.params)]
        if beyond:
            wrong.add(f"{step.shader} ({name}): no parameter for {beyond}")
    assert not wrong, "\n".join(sorted(wrong)[:20])


def shared_memory(step: Dispatch) -> Iterator[tuple[Operand, int, int]]:
    """(operand, its binding, the binding of what is written) where both are the same memory, or may
    be in another program."""
    operands = [*step.writes, *step.reads]
    for number, written in enumerate(step.writes):
        may = [storage for node, _, over in OVER.get(id(written.storage), ())
               if node == step.node for storage in over]
        for other, operand in enumerate(operands):
            if (other > number and not operand.placeholder
                    and (operand.storage is written.storage and _meet(operand, written)
                         or any(operand.storage is storage for storage in may))):
                yield operand, other, number


def _meet(one: Operand, other: Operand) -> bool:
    """Whether two operands of a storage have a byte in common."""
    return one.storage.is_image or (max(one.offset, other.offset)
                                    < min(one.offset + one.nbytes, other.offset + other.nbytes))


def test_what_shares_memory_is_declared_aliased():
    """A driver may take every other two variables for different memory."""
    shaders = built_library()
    declared = {}
    found, wrong = set(), set()
    for name, step in dispatches():
        for _, *bindings in shared_memory(step):
            shader = shaders.get(step.shader)
            if step.shader not in declared:
                declared[step.shader] = spirv.aliased(bytes(shader.spirv))
            found.add(step.shader.split(".")[0])
            names = {binding.binding: binding.name for binding in shader.bindings}
            wrong |= {f"{step.shader} ({name}): {names[number]}" for number in bindings
                      if number not in declared[step.shader]}
    assert not wrong, "\n".join(sorted(wrong)[:20])
    assert {"unary", "where", "rotary_into", "gemv"} <= found
    assert any(name.startswith("matmul_") for name in found)
    assert any(name.startswith("linear_q4_") for name in found)


def test_constants_of_the_runtime():
    """Each is declared in one file, and read only by the functions and macros there."""
    texts = {path.name: re.sub(r"//.*", "", path.read_text()) for path in SHADERS.rglob("*.*")
             if path.suffix in (".comp", ".glsl")}
    declared = [(int(number), file) for file, text in texts.items()
                for number in re.findall(r"(?:constant_id|local_size_\w_id) = (\d+)", text)]
    assert sorted(declared) == sorted(OF_RUNTIME.items())
    for name, home in (("is_small", "division.glsl"), ("is_whole", "tensor.glsl")):
        assert [file for file, text in texts.items() if name in text] == [home]
    given = next(dispatches())[1].constants
    assert len(given) == len(OF_RUNTIME)
    assert list(OF_RUNTIME) == list(range(LOCAL_SIZE, LOCAL_SIZE + len(given)))


def test_what_is_whole_has_no_padding():
    """Kernels that are told so do not mask what lies beyond the size that they are given."""
    shaders = built_library()
    seen, wrong = set(), set()
    for name, step in dispatches():
        specs = shaders.get(step.shader).specs
        if IS_WHOLE not in {spec.id for spec in specs}:
            continue
        is_whole = step.constants[IS_WHOLE - LOCAL_SIZE]
        for spec in specs:
            if spec.name in PACKED_SIZES:
                seen.add((step.shader.split(".")[0], is_whole))
                if (step.params[spec.id] % 4 == 0) != is_whole:
                    wrong.add(f"{step.shader} ({name}): {spec.name} is {step.params[spec.id]}")
    assert not wrong, "\n".join(sorted(wrong)[:20])
    # Samples of every such shader have padding and have none.
    there = {shader for shader, _ in seen}
    assert {"unary", "binary", "softmax", "layer_norm", "conv2d_depthwise_8"} <= there
    assert not [shader for shader in there if len({kind for s, kind in seen if s == shader}) < 2]


def test_operands_lie_in_their_storages():
    for name, work in command_lists():
        assert not outside(work), name
        for step in (s for s in work.steps if isinstance(s, Dispatch)):
            for operand in (*step.writes, *step.reads):
                assert work.storages[operand.storage.id] is operand.storage, name


def read_before_written(work: CommandList) -> list[str]:
    """What of a command list reads, or gives out, memory that nothing has written. Placeholders are
    only bound, and of an operand without elements nothing is read."""
    written = {prepack.target.storage.id for prepack in work.prepacks}
    written |= {operand.storage.id for operand in work.inputs if operand is not None}
    found = []
    for step in (s for s in work.steps if isinstance(s, Dispatch)):
        found += [f"{step.shader}: {operand}" for operand in step.reads
                  if operand.storage.id not in written and not operand.placeholder
                  and 0 not in operand.sizes]
        written |= {operand.storage.id for operand in step.writes}
    return found + [f"output {operand}" for operand in work.outputs
                    if operand.storage.id not in written and 0 not in operand.sizes]


def test_nothing_is_read_before_it_is_written():
    for name, work in command_lists():
        assert not read_before_written(work), name


def test_a_read_of_four_elements_nobody_wrote_would_show():
    """Sizes do not tell a placeholder from an operand."""
    work = lower(graph_of_node("aten.relu.default", Tensor((4,), "float32")), Target())
    assert not read_before_written(work)
    step = next(s for s in work.steps if isinstance(s, Dispatch) and s.shader.startswith("unary"))
    reads = tuple(replace(operand, storage=operand.storage._replace(id=len(work.storages)))
                  for operand in step.reads)
    steps = [replace(step, reads=reads) if other is step else other for other in work.steps]
    work = replace(work, steps=tuple(steps))
    assert len(read_before_written(work)) == 1


def test_header_lines_name_every_dtype_once():
    for path in SHADERS.rglob("*.comp"):
        dtypes = re.search(r"^//! dtypes: (.*)$", path.read_text(), re.MULTILINE)
        if dtypes:
            names = dtypes.group(1).split()
            assert len(names) == len(set(names)), path.name
