"""Inputs that the exporter leaves out because the program overwrites them: which ones they are."""

from contextlib import closing

import numpy as np
import pytest
from support import MODELS, calls_of

from vkrt import pte
from vkrt.compiler.description import Description
from vkrt.errors import UnsupportedError
from vkrt.graph.overwrites import Overwrites

SIZES = (1, 4, 4)


def overwrites(*chain, written=(), operator="slice_scatter", sizes=SIZES):
    """Of a delegate with the inputs 0, 1 and 2 and the outputs 3 and 4, which the call passes as
    values 13 and 14. `chain` has the values of each operator, `written` pairs of values of the
    program, the second of which is written over the first."""
    values = (pte.VkTensor("float32", SIZES),) * 5 + (pte.ValueList((1, 2)),)
    calls = tuple(pte.OperatorCall(0, "op", args) for args in chain)
    blob = pte.VkGraph("0", values, calls, (0, 1, 2), (3, 4), ())
    metas = [pte.TensorMeta(6, "float32", SIZES, (0, 1, 2)) for _ in range(20)]
    metas[9] = pte.TensorMeta(6, "float32", sizes, (0, 1, 2))
    name = {"copy": "aten::copy_", "where.self": "aten::where.self_out"}.get(
        operator, f"aten::{operator}.out")
    # A `where` has the mask in front, and what is overwritten behind.
    arranged = [(16, *pair[::-1]) if operator == "where.self" else pair for pair in written]
    plan = pte.ExecutionPlan(
        name="forward", values=tuple(metas), inputs=(), outputs=(), operators=(name,),
        instructions=tuple(pte.KernelCall(0, (*pair, 15, 15)) for pair in arranged), delegates=(),
        buffer_sizes=())
    return Overwrites(blob, plan, [13, 14], [3, 4])


@pytest.mark.parametrize("operator", ["slice_scatter", "copy", "where.self"])
def test_the_copy_stands_in_front_of_what_follows(operator):
    """Value 3 is made before input 1 is read, and value 4 behind it."""
    found = overwrites((0, 3), (1, 4), (2, 6), written=[(9, 13), (8, 14)], operator=operator)
    assert found.may_lack(9, 1)
    assert not found.may_lack(8, 1)
    assert found.may_lack(8, 2)
    assert not found.may_lack(9, 0)
    # Nothing follows.
    assert found.may_lack(8, 3)
    # Nothing is written over it.
    assert not found.may_lack(7, 3)


def test_inputs_in_lists_are_read():
    assert not overwrites((5, 3), (1, 4), written=[(9, 13)]).may_lack(9, 1)


def test_other_writes_say_nothing():
    assert not overwrites((0, 3), (1, 4), written=[(9, 13)], operator="add").may_lack(9, 1)
    assert not overwrites((0, 3), (1, 4), written=[(9, 13)], sizes=(2, 4, 4)).may_lack(9, 1)
    assert not overwrites((0, 3), (1, 4), written=[(9, 12)]).may_lack(9, 1)


def test_a_program_that_does_not_say():
    data = (MODELS / "recurrent.pte").read_bytes()
    assert data.count(b"aten::slice_scatter") == 1
    data = data.replace(b"aten::slice_scatter", b"aten::slice_scattex")
    with closing(Description(data)) as description, pytest.raises(UnsupportedError, match=(
            r"it reads 4 of the 5 values .*in doubt: 1 float32\[1,4,4\], 2 float32\[1,4,4\]")):
        description.graph("forward")


@pytest.mark.parametrize("options", [{}, {"weights": "stream"}, {"storage": "texture3d"}])
def test_later_runs_are_right(load, options):
    program = load("recurrent", **options)
    for _ in range(2):
        for inputs, (expected,) in calls_of("recurrent", "step"):
            np.testing.assert_allclose(program.run(*inputs)[0], expected, rtol=1e-5, atol=1e-6)
        program.reset_state()
    assert program.memory.measured_peak == program.memory.planned_peak
