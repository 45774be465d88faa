"""Operators, shaders and samples agree; no driver is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from harness import samples, variants

from vkrt.errors import UnsupportedError
from vkrt.graph.records import Dispatch, WorkList
from vkrt.graph.target import Target
from vkrt.ops.lowering import lower
from vkrt.ops.registry import supported
from vkrt.shader import catalog

SHADERS = Path(__file__).parents[2] / "shaders"
STORAGES = ("texel", "buffer", "texture3d")

# Specialization constants that the runtime sets by itself.
LOCAL_SIZE = 100


@cache
def work_lists() -> list[tuple[str, WorkList]]:
    """(name, work list) of every sample in every storage."""
    result = []
    for variant in variants():
        for storage in STORAGES:
            target = Target(storage=storage, max_texels=1 << 26, max_image_extent=16384,
                            scratch="any")
            result.append((f"{variant}-{storage}", lower(variant.case().graph, target)))
    return result


def dispatches() -> Iterator[tuple[str, Dispatch]]:
    for name, work in work_lists():
        for step in work.steps:
            if isinstance(step, Dispatch):
                yield name, step


def built_catalog():
    try:
        return catalog()
    except UnsupportedError:
        pytest.skip("vkrt is not built")


def test_every_operator_has_a_sample():
    missing = set(supported()) - {sample.op for sample in samples()}
    assert not missing, f"operators without a sample: {sorted(missing)}"


def test_every_sample_is_of_an_operator():
    unknown = {sample.op for sample in samples()} - set(supported())
    assert not unknown, f"samples of operators that vkrt does not declare: {sorted(unknown)}"


def test_every_shader_is_used():
    used = {step.shader.split(".")[0] for _, step in dispatches()}
    used |= {prepack.shader.split(".")[0] for _, work in work_lists() for prepack in work.prepacks}
    there = {path.stem for path in SHADERS.glob("*.comp")}
    assert not there - used, f"shaders that no sample runs: {sorted(there - used)}"


def test_dispatches_fit_their_shaders():
    """Bindings and parameters of each dispatch are those in the shader's own SPIR-V."""
    shaders = built_catalog()
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
                  if spec.id != LOCAL_SIZE and spec.id >= len(step.params)]
        if beyond:
            wrong.add(f"{step.shader} ({name}): no parameter for {beyond}")
    assert not wrong, "\n".join(sorted(wrong)[:20])


def test_operands_lie_in_their_storages():
    for name, work in work_lists():
        for step in (s for s in work.steps if isinstance(s, Dispatch)):
            for operand in (*step.writes, *step.reads):
                storage = operand.storage
                assert work.storages[storage.id] is storage, name
                if storage.is_image:
                    grid = tuple(max(side, 1) for side in operand.grid)
                    assert grid == storage.extents, f"{name}: {operand}"
                else:
                    assert operand.offset + operand.nbytes <= storage.nbytes, f"{name}: {operand}"


def test_nothing_is_read_before_it_is_written():
    for name, work in work_lists():
        written = {prepack.target.storage.id for prepack in work.prepacks}
        written |= {operand.storage.id for operand in work.inputs if operand is not None}
        for step in (s for s in work.steps if isinstance(s, Dispatch)):
            for operand in step.reads:
                placeholder = operand.sizes == (4,) or 0 in operand.sizes
                assert operand.storage.id in written or placeholder, f"{name}: {step.shader}"
            written |= {operand.storage.id for operand in step.writes}
        for operand in (o for o in work.outputs if 0 not in o.sizes):
            assert operand.storage.id in written, f"{name}: an output that nothing writes"


def test_header_lines_name_every_dtype_once():
    for path in SHADERS.glob("*.comp"):
        dtypes = re.search(r"^//! dtypes: (.*)$", path.read_text(), re.MULTILINE)
        if dtypes:
            names = dtypes.group(1).split()
            assert len(names) == len(set(names)), path.name
