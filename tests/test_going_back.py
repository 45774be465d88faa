"""Going back in a text: states that have rows for its places, and those that keep one place."""

import numpy as np
import pytest
from support import graph_of_file, relative_l2
from test_language import PROMPT

from vkrt.lowering.lowering import lower
from vkrt.text.model import LanguageModel, Session
from vkrt.work.target import Target


def states_of(name):
    return [record.places for record in lower(graph_of_file(name), Target()).states]


def test_states_say_for_how_many_places_they_have_rows():
    assert states_of("llama") == states_of("llama_static") == [24] * 4
    assert states_of("kept") == [12]
    assert states_of("kept_attention") == [12] * 4
    assert states_of("kept_batch") == states_of("kept_ring") == [12] * 2
    # New values of all of the old one
    assert states_of("recurrent_text") == [0]
    assert set(states_of("buffers")) == set(states_of("recurrent")) == {0}


@pytest.fixture(params=["program", "cached plan", "compiled program"])
def load_as(request, load, compiled_of, tmp_path):
    """Loads a program from what has its graph, and from what has none."""
    def load_as(name):
        if request.param == "compiled program":
            return load(compiled_of(name))
        if request.param == "cached plan":
            load(name, plan_cache=tmp_path).close()
            assert list(tmp_path.iterdir())
            return load(name, plan_cache=tmp_path)
        return load(name, plan_cache="off")

    return load_as


def test_a_recurrent_model_goes_back_by_reading_anew(load_as):
    """Its state is that of the last token."""
    model = LanguageModel(load_as("recurrent_text"))
    assert not model.can_rewind
    session = Session(model)
    session.add(PROMPT)
    first = session.logits()
    session.add([5, 6])
    second = session.logits()
    for count, expected in ((len(PROMPT), first), (len(PROMPT) + 2, second)):
        session.rewind(4)
        assert session.position == 0
        session.add([*PROMPT, 5, 6][4:count])
        np.testing.assert_array_equal(session.logits(), expected)
    # What the state cannot go back from is another result.
    session.position -= 1
    assert relative_l2(session.logits(), second) > 1e-3


def test_a_cache_goes_back_without_reading(load_as):
    model = LanguageModel(load_as("llama_static"))
    assert model.can_rewind
    session = Session(model)
    session.add(PROMPT)
    expected = session.logits()
    session.add([5, 6])
    session.logits()
    session.rewind(len(PROMPT))
    assert session.position == len(PROMPT) - 1
    np.testing.assert_array_equal(session.logits(), expected)


def test_a_model_that_keeps_one_place_reads_anew(load):
    """As one with recurrent states, which are right for the last token that was read alone."""
    model = LanguageModel(load("llama"))
    assert model.can_rewind
    model.can_rewind = False
    session = Session(model)
    session.add(PROMPT)
    expected = session.logits()
    values = session.state.save()
    session.rewind(len(PROMPT))
    assert session.position == len(PROMPT)
    session.add([5, 6, 7])
    session.logits()
    session.rewind(len(PROMPT))
    assert session.position == 0 and not any(x.any() for x in session.state.save().values())
    np.testing.assert_array_equal(session.logits(), expected)
    session.restore([*PROMPT, 5], len(PROMPT), values)
    assert session.position == len(PROMPT)
    session.restore(PROMPT, len(PROMPT), values)
    assert session.position == 0


def test_going_back_in_a_session(load):
    session = Session(LanguageModel(load("llama")))
    session.add(PROMPT)
    expected = session.logits()
    session.add([5, 6, 7])
    session.logits()
    session.rewind(len(PROMPT))
    np.testing.assert_allclose(session.logits(), expected, rtol=1e-4, atol=1e-5)
