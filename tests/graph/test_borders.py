"""Which of a call's values are which of a delegate's: all ways to choose, and what messages say."""

import itertools
import random
from contextlib import closing

import pytest
from pte import pte_writer as w

from vkrt.compiler.description import Description
from vkrt.errors import UnsupportedError
from vkrt.graph.borders import choices, match_inputs, match_outputs
from vkrt.graph.symbols import Symbol
from vkrt.work.tensor import Constant, Tensor


def t(*sizes: int, dtype: str = "float32", device: str = "") -> Tensor:
    return Tensor(sizes, device or dtype, dtype)


def gathered(outputs) -> list[int]:
    """The outputs as the exporter lists them: each once, where it occurs first."""
    return list(dict.fromkeys(outputs))


@pytest.mark.parametrize("seed", range(60))
def test_choices_are_those_of_all_ways(seed):
    """Against a try of every assignment: in first-use order for outputs, in order for inputs."""
    rng = random.Random(seed)
    inner = [rng.randrange(2) for _ in range(rng.randint(1, 4))]
    outer = [rng.randrange(2) for _ in range(rng.randint(len(inner), 6))]

    def fit(i, o):
        return inner[i] == outer[o]

    count = range(len(inner))
    ways = [way for way in itertools.product(count, repeat=len(outer))
            if gathered(way) == list(count) and all(fit(i, o) for o, i in enumerate(way))]
    assert choices(len(inner), len(outer), fit, lambda used, _: range(used)) == [
        {way[o] for way in ways} for o in range(len(outer))]
    ways = [tuple(places.index(o) if o in places else None for o in range(len(outer)))
            for places in itertools.combinations(range(len(outer)), len(inner))
            if all(fit(i, o) for i, o in enumerate(places))]
    assert choices(len(inner), len(outer), fit, lambda *_: (None,)) == [
        {way[o] for way in ways} for o in range(len(outer))]


@pytest.mark.parametrize(("inner", "outer", "expected"), [
    # All are one value.
    ([t(2, 3)], [t(2, 3)] * 3, [0, 0, 0]),
    # First, middle and last places; sizes decide, then dtypes, then the order.
    ([t(2, 3), t(2)], [t(2, 3), t(2, 3), t(2)], [0, 0, 1]),
    ([t(2), t(2, 3), t(4)], [t(2), t(2, 3), t(2, 3), t(4)], [0, 1, 1, 2]),
    ([t(2), t(2, 3)], [t(2), t(2, 3), t(2), t(2, 3)], [0, 1, 0, 1]),
    ([t(6), t(6, dtype="bool")], [t(6), t(6, dtype="bool"), t(6)], [0, 1, 0]),
    # 64 bits are 32 in the delegate.
    ([t(6, dtype="int32"), t(6)], [t(6, dtype="int64"), t(6), t(6, dtype="int64")], [0, 1, 0]),
    # An input that the delegate hands on, which is as the program has it.
    ([t(6), t(6, dtype="int64", device="int32")], [t(6), t(6), t(6, dtype="int64")], [0, 0, 1]),
    # Of one element, whatever the rank.
    ([t(), t(3)], [t(1), t(), t(3)], [0, 0, 1]),
    # Symbolic integers.
    ([Symbol("read", (), 0), t(3)], [t(1, dtype="int64"), t(3), t(3)], [0, 1, 1]),
    ([Tensor((3,), "float16", "float16", Constant(0, 6, "float16")), t(2)],
     [t(3), t(2), t(3)], [0, 1, 0]),
])
def test_outputs(inner, outer, expected):
    assert match_outputs(inner, outer, "here") == expected


def test_outputs_in_doubt():
    """Where the second may be a copy of the first, or the third one of the second."""
    with pytest.raises(UnsupportedError, match=(
            r"^here: .*takes 4 .*has 3: .*doubt: 1 int64\[2,3\], 2 int64\[2,3\]\);.*\+ 0")):
        match_outputs([t(2, 3, dtype="int32"), t(2, 3, dtype="int32"), t(2)],
                      [t(2, 3, dtype="int64")] * 3 + [t(2)], "here")
    with pytest.raises(UnsupportedError, match=r"no choice fits sizes and dtypes"):
        match_outputs([t(2, 3)], [t(2, 3), t(4)], "here")


def test_inputs():
    assert match_inputs([t(3, 2)], [t(2, 3), t(3, 2)], "here") == [1]
    assert match_inputs([t(1), t(2)], [t(1), t(3), t(2)], "here") == [0, 2]
    # What can only be left out needs no reason, where another value has one.
    assert match_inputs([t(2)], [t(3), t(2), t(2)], "here", lambda place, _read: place == 1) == [2]
    with pytest.raises(UnsupportedError, match=r"it reads 1 of the 2 .*0 float32\[2\]"):
        match_inputs([t(2)], [t(2), t(2)], "here")


def test_what_is_overwritten_ends_a_doubt():
    inner, outer = [t(3), t(2), t(2)], [t(3), t(2), t(2), t(2)]
    assert match_inputs(inner, outer, "here", lambda place, read: (place, read) == (2, 2)) \
        == [0, 1, 3]
    assert match_inputs(inner, outer, "here", lambda place, _read: place == 1) == [0, 2, 3]
    for may_lack in (lambda place, _read: place in (1, 3),
                     lambda place, read: (place, read) == (2, 1)):
        with pytest.raises(UnsupportedError, match="1 float32.*2 float32.*3 float32"):
            match_inputs(inner, outer, "here", may_lack)
    # Sizes say more: what is left out needs no reason, and is no other value for a reason.
    assert match_inputs([t(3), t(2)], [t(3), t(4), t(2)], "here") == [0, 2]
    assert match_inputs([t(3), t(2)], [t(3), t(4), t(2)], "here",
                        lambda place, _read: place == 2) == [0, 2]


def test_dtypes_that_numpy_does_not_have_are_refused():
    values = [w.tensor([2], scalar_type=number) for number in (12, 15, 23)]
    program = w.program([w.plan(values, inputs=[0, 1], outputs=[2])])
    with closing(Description(program)) as description:
        assert list(description.graph("forward").unsupported) == [
            "input or output of qint8", "input or output of float8_e5m2"]
