"""Which values are views of others, because these were written to the same memory."""

from types import SimpleNamespace

from vkrt.graph.views import Writes
from vkrt.pte import TensorMeta

# The first byte of each value; all have 16.
FIRST, SAME, ALSO, NEXT, ACROSS = range(5)
BYTES = [0, 0, 0, 16, 8]


def writes(*inputs: int, dynamism: int = 0) -> Writes:
    values = [TensorMeta(6, "float32", (4,), (0,), dynamism=dynamism, memory=(1, at))
              for at in BYTES]
    return Writes(SimpleNamespace(inputs=inputs, values=values))


def test_a_value_in_the_memory_of_another():
    done = writes()
    assert done.source_of(SAME) is None
    done.add(FIRST)
    done.add(NEXT)
    assert [done.source_of(value) for value in range(5)] == [None, FIRST, FIRST, None, None]
    done.add_view(SAME)
    assert [done.source_of(value) for value in (FIRST, SAME, ALSO)] == [None, None, FIRST]


def test_a_view_is_old_when_its_memory_is_written_again():
    done = writes()
    done.add(FIRST)
    done.add_view(SAME)
    before = done.copy()
    done.add(FIRST)
    assert done.source_of(SAME) == FIRST
    assert before.source_of(SAME) is None
    done.add(SAME)
    assert [done.source_of(value) for value in (FIRST, SAME, ALSO)] == [SAME, None, SAME]


def test_what_was_overwritten_in_part_is_no_view():
    done = writes()
    done.add(FIRST)
    done.add(ACROSS)
    assert done.source_of(SAME) is None


def test_inputs_and_states():
    done = writes(FIRST)
    assert [done.source_of(value) for value in (FIRST, SAME)] == [None, FIRST]
    done.add(SAME)
    assert [done.source_of(value) for value in (FIRST, ALSO)] == [None, SAME]
    done.add_first(NEXT)
    done.add_first(ALSO)
    assert [done.source_of(value) for value in (NEXT, ALSO)] == [None, SAME]


def test_dynamic_sizes_have_their_own_memory():
    done = writes(FIRST, dynamism=1)
    done.add(SAME)
    assert done.source_of(ALSO) is None
