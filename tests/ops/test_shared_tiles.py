"""Products and convolutions whose workgroups share tiles: the choice, the larger tile, for which
few samples of test_sharing.py are large enough, slices.
"""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from harness import Variant, check, check_each, make_case, merged, normal, variants
from samples import matmul
from small_graphs import shaders_of
from support import STORAGES, execute, open_method
from test_sharing import DEFAULT, graphs_of, offered, run, sharing

from vkrt.device.policy import overridden, policy_of
from vkrt.graph.graph import Graph
from vkrt.lowering.lowering import lower
from vkrt.ops.shared_tiles import slices_for
from vkrt.work.target import Target

OPS = ("aten.linear.default", "aten.mm.default", "aten.bmm.default", "aten.addmm.default",
       "aten.convolution.default", "et_vk.conv_with_clamp.default", "et_vk.q8ta_conv2d.default",
       "et_vk.q8ta_conv2d_pw.default", "et_vk.conv2d_q8ta_q8csw.default",
       "et_vk.q8ta_linear.default", "et_vk.linear_q8ta_q8csw.default",
       "et_vk.linear_q4gsw.default")
FEW_LANES = replace(DEFAULT.tuning, lanes=1)


@cache
def plain() -> list[tuple[Variant, Graph]]:
    """The samples of these operators as they lie, with their programs."""
    return [(variant, variant.case().graph) for variant in variants()
            if variant.sample.op in OPS and variant.layout == "plain"]


def kernels(graph: Graph, tuning, storage: str = "texel", features=()) -> set[str]:
    """The names of a program's shaders."""
    target = Target(storage=storage, max_texels=1 << 26, tuning=tuning,
                    features=frozenset(features))
    return set(shaders_of(lower(graph, target)))


@cache
def with_large_tiles(half: bool, op: str = "") -> list[Variant]:
    """The samples (of one operator) that have the larger tile where there are few lanes."""
    return [variant for variant, graph in plain()
            if variant.half == half and op in ("", variant.sample.op)
            and any("_shared_64." in name for name in kernels(graph, FEW_LANES))]


def of_product(rows: int, inner: int, columns: int) -> Variant:
    args = [normal(rows, inner), normal(columns, inner, seed=1), None]
    sample = next(matmul_sample for matmul_sample in matmul.SAMPLES
                  if matmul_sample.op == "aten.linear.default")
    return Variant(replace(sample, args=args, constants=(1,)), False, "plain")


@pytest.mark.parametrize(("rows", "columns", "expected"), [
    (16, 512, "matmul_2x4"), (17, 17, "matmul_shared_32"), (512, 16, "matmul_"),
    (64, 64, "matmul_shared_32"), (512, 512, "matmul_shared_64"), (4096, 32, "matmul_shared_32"),
    (1, 512, "gemv")])
def test_choice(rows, columns, expected):
    found = kernels(of_product(rows, 8, columns).case().graph, DEFAULT.tuning)
    (name,) = (name for name in found if name.startswith(("matmul", "gemv")))
    assert name.startswith(expected)
    assert ("shared" in name) == ("shared" in expected)


def test_cpu_drivers_have_none():
    for _, graph in plain():
        names = kernels(graph, replace(DEFAULT.tuning, shares=False))
        assert not any("_shared_" in name for name in names)


def test_variants_of_features():
    """Of every dtype and storage that has one: halves have "float16", 8 bits have "dot"."""
    found = {name for _, graph in plain() for storage in STORAGES
             for tuning in (DEFAULT.tuning, FEW_LANES)
             for name in kernels(graph, tuning, storage, ("float16", "dot"))
             if "_shared_" in name}
    for name in found:
        dtype = name.split(".")[2]
        feature = {"f32": "", "f16": ".float16"}.get(dtype, ".dot")
        assert name.endswith(f".{dtype}{feature}"), name
    shapes = {re.match(r"\w+_shared_\d+\.\w+\.\w+", name)[0] for name in found}
    for op in ("matmul", "conv2d"):
        for storage in STORAGES:
            words = () if storage == "texture3d" else ("i32_i8",)
            for dtype in ("f32", "f16", "i8", "i8_f32", *words):
                assert f"{op}_shared_32.{storage}.{dtype}" in shapes
            for dtype in ("f32", "f16", *words):
                assert f"{op}_shared_64.{storage}.{dtype}" in shapes
    for storage in STORAGES:
        for dtype in ("f32", "f16"):
            assert f"linear_q4_shared_32.{storage}.{dtype}" in shapes


@pytest.mark.parametrize(("groups", "texels", "part", "changes", "slices"), [
    (1, 1024, 4, {}, 4),
    # Lanes: so many that some would be idle, as many as there are, and one group more.
    (16, 1024, 4, {}, 4), (17, 1024, 4, {}, 2), (32, 1024, 4, {}, 2), (33, 1024, 4, {}, 1),
    # Texels of the summed dimension: each slice has a part at least.
    (1, 32, 4, {}, 4), (1, 31, 4, {}, 2), (1, 16, 4, {}, 2), (1, 15, 4, {}, 1),
    # Invocations of a group, and bytes that they share
    (1, 1024, 4, {"max_invocations": 255}, 2), (1, 1024, 4, {"max_invocations": 127}, 1),
    (1, 1024, 16, {}, 2), (1, 1024, 16, {"max_shared": 49152}, 4),
    (1, 1024, 16, {"max_shared": 16384}, 1), (1, 1024, 8, {"max_shared": 16384}, 2)])
def test_slices(groups, texels, part, changes, slices):
    target = replace(Target(tuning=replace(DEFAULT.tuning, lanes=4096), max_invocations=1024,
                            max_shared=32768), **changes)
    assert slices_for(target, groups, texels, part) == slices


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.parametrize("texels", [16, 32, 33, 64, 77, 150])
def test_slices_have_every_texel_once(texels, half, storage, device):
    """Parts of the last round are those of some slices only."""
    case = replace(of_product(33, 4 * texels, 40), half=half).case()
    policy = sharing(policy_of(device.info), ("float16",) if half else ())
    with overridden(replace(policy, tuning=replace(policy.tuning, lanes=1 << 20))), \
            open_method(case.graph, case.data, device, storage=storage) as method:
        sizes = [step.local_size for step in method.work.steps
                 if "_shared_32" in getattr(step, "shader", "")]
        check(method.execute(case.inputs), case)
    limits = device.info.limits
    if limits["maxComputeSharedMemorySize"] >= 32768 \
            and limits["maxComputeWorkGroupInvocations"] >= 256:
        assert sizes in ([128], [256])


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
@pytest.mark.usefixtures("apart")
def test_large_tiles(half, storage, device):
    own = {(), ("float16",) if half else ("dot",)}
    members = with_large_tiles(half)
    assert {variant.sample.op for variant in members} >= {
        "aten.linear.default", "aten.addmm.default", "aten.convolution.default"}
    graphs, ran = graphs_of(members), set()
    for features in [f for f in offered(device) if f in own]:
        policy = replace(sharing(policy_of(device.info), features), tuning=FEW_LANES)
        with overridden(policy):
            run(members, graphs, half, storage, device, features, ran)


def test_sizes_compiled_in(device):
    """As on a driver whose row says so."""
    members = [*with_large_tiles(False, "aten.linear.default")[:2],
               *with_large_tiles(False, "aten.convolution.default")[:2]]
    for tuning in (DEFAULT.tuning, FEW_LANES):
        with overridden(replace(sharing(policy_of(device.info)), tuning=tuning)):
            cases = [variant.case() for variant in members]
            check_each(members, cases, execute(*merged(cases), device, specialize="all"))


def test_rows_and_columns_of_nothing_finite(device):
    """An infinity or a NaN stays in its row or column: what is beyond the ends of tiles and steps
    is zero on both sides."""
    x, weight = normal(40, 21), normal(35, 21, seed=1)
    x[3, 20], x[39, 0], weight[34, 20] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64) @ weight.T.astype(np.float64)
    sample = replace(of_product(1, 4, 1).sample, args=[x, weight, None], rtol=2e-6,
                     expect=[expected.astype(np.float32)])
    case = make_case(sample)
    with overridden(sharing(policy_of(device.info))):
        check(execute(*case.program, device), case)
