"""Numbers, None and lists among the arguments and results of methods; integers of 64 bits."""

import numpy as np
import pytest
from support import MODELS, examples_of

from vkrt.errors import InputError
from vkrt.graph.constants import check_wide
from vkrt.graph.graph import Graph, Node
from vkrt.work.tensor import Constant, Tensor

# Behind the pair of tensors and the count: the factor, whether to negate, and None
FIXED = (1.5, True, None)


@pytest.fixture
def program(load):
    return load("numbers")


def test_results(program):
    with np.load(MODELS / "numbers.npz") as data:
        for call in range(3):
            a, b, count = (data[f"call{call}_in{i}"] for i in range(3))
            y, nothing, sums, more, number, yes = program.run(a, b, count, *FIXED)
            np.testing.assert_allclose(y, data[f"call{call}_out0"], rtol=1e-6)
            np.testing.assert_allclose(sums, data[f"call{call}_out2"], rtol=1e-5, atol=1e-6)
            assert (nothing, more, number, yes) == (None, int(count) + 1, 2.5, True)
            np.testing.assert_array_equal(program.run(a, b, int(count), *FIXED)[0], y)


def test_what_arguments_are(program):
    infos = program.metadata().inputs
    assert [(i.sizes, i.dtype, i.fixed) for i in infos[2:]] == [
        ((), "int64", ()), ((), "float64", (1.5,)), ((), "bool", (True,)), ((), "none", (None,))]
    assert str(infos[3]) == "float64, always 1.5"
    assert [o.dtype for o in program.metadata().outputs] == [
        "float32", "none", "float32", "int64", "float64", "bool"]
    assert examples_of(program)[3:] == list(FIXED)


@pytest.mark.parametrize("place, value, message", [
    (3, 2.5, "exported with 1.5 in its place and takes nothing else; got 2.5"),
    (4, False, "exported with True"), (4, 1, "expected bool, always True, got 1"),
    (5, np.zeros(2), "expected none, always None"), (3, np.zeros(0), "expected float64"),
    (5, 0, "expected none"),
    (3, None, "exported with 1.5"), (2, 2.0, r"expected int64\[\], got 2.0"),
    (2, 1 << 70, r"expected int64\[\]"), (0, 3.0, r"expected float32\[2,3\], got 3.0")])
def test_other_values_are_refused(place, value, message, program):
    arguments = [np.zeros((2, 3), np.float32), np.zeros((2, 4), np.float32), 2, *FIXED]
    arguments[place] = value
    with pytest.raises(InputError, match=message):
        program.run(*arguments)


def test_integers_that_do_not_fit(load):
    """Integers are of 64 bits in the program and 32 bits wide on the device."""
    program = load("views")
    inputs = examples_of(program)
    assert inputs[1].dtype == np.int64
    inputs[1].flat[0] = 1 << 31
    with pytest.raises(InputError, match="input 1: it holds 2147483648; integers have 32 bits"):
        program.run(*inputs)


@pytest.mark.parametrize("value, refused", [(1 << 31, True), ((1 << 31) - 1, False),
                                            (-1 << 31, False), ((-1 << 31) - 1, True)])
def test_constants_that_do_not_fit(value, refused):
    data = np.array([7, 0, value], np.int64).tobytes()
    table = Tensor((2,), "int32", "int64", Constant(8, 16, "int64"), "table")
    out = Tensor((2,), "int32", "int64")
    graph = Graph("forward", [], [out], [Node("aten.neg.default", (table,), (out,))]).finish()
    check_wide(graph, [data])
    assert list(graph.unsupported) == ["integers beyond 32 bits in the constant table"] * refused
