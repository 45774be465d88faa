"""Language models: caches on the device, positions that kernels read, states, generated text."""

import numpy as np
import pytest
from support import (
    MODELS,
    QUICK,
    calls_of,
    failing,
    graph_of_file,
    in_threads,
    need_model,
    relative_l2,
)

import vkrt
from vkrt.graph.graph import Graph, Node
from vkrt.graph.symbols import RuntimeScalar
from vkrt.lowering.lowering import lower
from vkrt.memory.reader import fail_read_after
from vkrt.text.model import LanguageModel, Session
from vkrt.vk import live_objects
from vkrt.work.limits import Read
from vkrt.work.records import Dispatch
from vkrt.work.target import Target
from vkrt.work.tensor import Tensor

PROMPT = [1, 7, 33, 20, 9, 4, 58, 11, 2, 40, 17]


def follow(program, steps, bound=1e-5):
    """Runs one after another, whose logits are those of PyTorch."""
    for inputs, (expected,) in steps:
        result, = program.run(*inputs)
        assert relative_l2(result, expected) <= bound


@pytest.fixture
def load(load):
    return lambda name="llama", **options: load(name, **options)


@pytest.fixture(scope="module")
def steps():
    return calls_of("llama", "step")


# Graphs, without a driver


@pytest.mark.parametrize("name", ["llama", "llama_static"])
def test_positions_are_no_part_of_a_shape(name):
    graph = graph_of_file(name)
    assert not graph.reads
    assert graph.is_dynamic == (name == "llama")
    late = {arg.read for node in graph.nodes for arg in node.args if isinstance(arg, RuntimeScalar)}
    assert late == {Read(1, 0)}


def test_caches_are_states_changed_in_place():
    graph = graph_of_file("llama")
    assert len(graph.states) == 4
    # The file has their bytes, which nobody has to read.
    assert all(state.initial.zeros for state in graph.states)
    work = lower(graph, Target())
    caches = {state.operand.storage.id for state in work.states}
    writes = [step for step in work.steps for operand in step.writes
              if operand.storage.id in caches]
    assert {step.shader.split(".")[0] for step in writes} == {"rotary_into"}
    assert len(writes) == 4


def test_a_cache_that_is_read_afterwards_is_copied():
    rows = Tensor((1, 2, 3, 4), "float32")
    cache = Tensor((1, 5, 3, 4), "float32")
    changed, stands_for = Tensor(cache.sizes, "float32"), Tensor((1,), "float32")
    after = Tensor(cache.sizes, "float32")
    nodes = [Node("update_cache.default", (rows, cache, 1), (stands_for, changed)),
             Node("aten.relu.default", (cache,), (after,))]
    work = lower(Graph("m", [rows, cache], [changed, after], nodes).finish(), Target())
    into, = (step for step in work.steps
             if isinstance(step, Dispatch) and step.shader.startswith("rows_into"))
    assert into.writes[0].storage is not work.inputs[1].storage


# Runs


@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_runs(storage, weights, load, steps):
    program = load(storage=storage, weights=weights)
    follow(program, steps)
    program.reset_state()
    follow(program, steps)


def test_one_token_a_run(storage, load):
    program = load("llama_static", storage=storage)
    follow(program, calls_of("llama_static", "step"))
    assert program.memory.measured_peak == program.memory.planned_peak


@pytest.mark.parametrize("name, bound", [
    ("llama_mini-base", 1e-5), ("llama_mini_4w-base", 1e-4), ("llama_mini_4w_emb4-base", 1e-4),
    ("llama_mini_8da4w-base", 1.5e-2)])
def test_larger_ones(name, bound, storage, load):
    path = need_model(f"{name}.pte")
    follow(load(path, storage=storage), calls_of(path, "step"), bound)


# A real model: 12 tokens of text, at any budget and with the prompt in pieces.
REAL = "smollm2-135m-4w.pte"


@pytest.mark.parametrize("options", [
    {}, {"storage": "buffer"}, {"weights": "stream", "memory_budget": "60MB"},
    {"weights": "stream", "memory_budget": "smallest"}][:1 if QUICK else None], ids=str)
def test_a_real_model(options, load):
    path = need_model(REAL)
    program = load(path, **options)
    with np.load(path.with_suffix(".reference.npz")) as archive:
        session = Session(LanguageModel(program))
        session.add(archive["prompt"].tolist())
        for token, expected in zip(archive["greedy"], archive["logits"], strict=False):
            logits = session.logits()
            assert relative_l2(logits, expected) <= 1e-4
            assert logits.argmax() == token
            session.add([int(token)])
    assert bool(program.memory.streamed) == ("weights" in options)


def test_on_a_device_with_memory_of_its_own(discrete, load, steps):
    for weights in ("auto", "stream"):
        program = load(device=discrete, weights=weights)
        follow(program, steps[:2])
        saved = program.save_state()
        program.reset_state()
        assert not any(array.any() for array in program.save_state().values())
        program.load_state(saved)
        follow(program, steps[2:])


@pytest.mark.parametrize("cache", ["float", "int8"])
def test_a_budget_changes_no_bit(cache, load, steps):
    with load(weights="direct", cache=cache) as program:
        expected = [program.run(*inputs)[0] for inputs, _ in steps]
    program = load(weights="stream", memory_budget="smallest", cache=cache)
    assert program.memory.streamed
    for (inputs, _), logits in zip(steps, expected, strict=True):
        np.testing.assert_array_equal(program.run(*inputs)[0], logits)


def test_a_step_at_another_position_makes_nothing(load, monkeypatch):
    program = load()
    program.run(np.array([PROMPT[:8]]), np.array([0]))
    program.run(np.array([[3]]), np.array([8]))
    there = program.memory.shapes
    objects = live_objects()
    monkeypatch.setattr("vkrt.lowering.lowering.lower", None)
    monkeypatch.setattr("vkrt.method.loaded.ComputeGraph", None)
    for position in range(9, 24):
        program.run(np.array([[position]]), np.array([position]))
    assert live_objects() == objects
    assert program.memory.shapes == there


def test_positions_beyond_the_cache(load, steps):
    program = load()
    follow(program, steps[:1])
    for tokens, position in (([[1, 2, 3]], 22), ([[1]], 24), ([[1]], -1)):
        with pytest.raises(vkrt.InputError, match=r"element 0 of it has to be 0 to 2[13]"):
            program.run(np.array(tokens), np.array([position]))
    follow(program, steps[1:])


# States


def test_further_states(load, steps, exact_sizes):
    program = load()
    follow(program, steps[:2])
    before = program.memory.state
    with program.new_state() as other:
        assert other.nbytes == before == 4 * 24 * 2 * 8 * 4
        assert program.memory.state == 2 * before
        for inputs, (expected,) in steps:
            result, = program.run(*inputs, state=other)
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
        follow(program, steps[2:])
        saved = other.save()
        other.reset()
        assert not any(array.any() for array in other.save().values())
        other.load(saved)
        for name, array in other.save().items():
            np.testing.assert_array_equal(array, saved[name])
    assert program.memory.state == before
    with pytest.raises(vkrt.InputError, match="state is closed"):
        program.run(*steps[0][0], state=other)
    other.close()
    program.reset_state()
    follow(program, steps)


def test_states_in_threads(load, steps):
    program = load()

    def work():
        with program.new_state() as state:
            for inputs, (expected,) in steps:
                result, = program.run(*inputs, state=state)
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)

    in_threads(*[work] * 4)


def test_saved_values_fit_another_load(load, steps):
    program = load()
    follow(program, steps[:3])
    saved = program.save_state()
    program = load(storage="buffer")
    program.load_state(saved)
    follow(program, steps[3:])
    name = next(iter(saved))
    for wrong, text in (({}, "expected values of"), ({**saved, "x": saved[name]}, "values of"),
                        ({**saved, name: saved[name][:, 1:]}, "expected float32"),
                        ({**saved, name: saved[name].astype(np.float64)}, "got float64")):
        with pytest.raises(vkrt.InputError, match=text):
            program.load_state(wrong)


def test_a_run_that_fails_half_way_says_so(load, steps):
    program = load(weights="stream")
    follow(program, steps[:2])
    saved = program.save_state()
    with failing(fail_read_after, 3), pytest.raises(OSError):
        program.run(*steps[2][0])
    with pytest.raises(vkrt.StateError, match="reset_state"):
        program.run(*steps[2][0])
    program.load_state(saved)
    follow(program, steps[2:])


# Text


@pytest.mark.parametrize("name", ["llama", "llama_static"])
def test_chunks_of_a_prompt_are_as_good_as_one(name, load):
    program = load(name)
    model = LanguageModel(program)
    found = []
    for chunk in (64, 4, 1):
        program.reset_state()
        session = Session(model, chunk=chunk)
        session.add(PROMPT)
        found.append((session.logits(), program.save_state()))
        assert session.position == len(PROMPT)
    for logits, state in found[1:]:
        np.testing.assert_allclose(logits, found[0][0], rtol=1e-4, atol=1e-5)
        for key, array in state.items():
            np.testing.assert_allclose(array, found[0][1][key], rtol=1e-4, atol=1e-5)


def test_generate(load):
    program = load()
    assert program.constants["get_eos_ids"] == (2, 3)
    all_at_once = list(vkrt.generate(program, PROMPT, max_tokens=8, ends=()))
    assert len(all_at_once) == 8
    ids = list(PROMPT)
    for token in all_at_once:
        program.reset_state()
        logits, = program.run(np.array([ids]), np.array([0]))
        assert token == logits.argmax()
        ids.append(token)
    # The end of the context, and one of the tokens that end a text
    assert len(list(vkrt.generate(program, PROMPT, ends=()))) == 24 - len(PROMPT) + 1
    ended = list(vkrt.generate(program, PROMPT, ends={all_at_once[2]}))
    assert ended == all_at_once[:all_at_once.index(all_at_once[2]) + 1]
    assert list(vkrt.generate(program, PROMPT, max_tokens=5, sampler=lambda _l, ids: len(ids),
                              ends=())) == [11, 12, 13, 14, 15]
    with pytest.raises(vkrt.InputError, match="room for 24 altogether"):
        vkrt.generate(program, PROMPT * 3)
    with pytest.raises(vkrt.InputError, match="token 61"):
        vkrt.generate(program, [61])
    with pytest.raises(vkrt.InputError, match="at least one"):
        vkrt.generate(program, [])
    with pytest.raises(vkrt.InputError, match="expected tokens"):
        vkrt.generate(load("mlp"), PROMPT)


def test_a_compiled_model_reads_as_many_tokens_as_it_has_shapes_for(load, tmp_path):
    out = tmp_path / "llama.vkx"
    vkrt.compile(MODELS / "llama.pte", out, shapes=[[(1, count), (1,)] for count in (3, 1)])
    with vkrt.load(out) as program:
        model = LanguageModel(program)
        assert model.counts == (1, 3)
        assert [model.next_count(left, 64) for left in (1, 2, 3, 11)] == [1, 1, 3, 3]
        assert model.next_count(11, 2) == 1
        found, expected = Session(model), Session(LanguageModel(load("llama")))
        for session in (found, expected):
            session.add(PROMPT)
        assert relative_l2(found.logits(), expected.logits()) <= 1e-5
    vkrt.compile(MODELS / "llama.pte", out, shapes=[[(1, 3), (1,)]])
    with vkrt.load(out) as program:
        session = Session(LanguageModel(program))
        session.add(PROMPT)
        with pytest.raises(vkrt.UnsupportedError, match="takes 3 tokens at a time, and 2 are left"):
            session.logits()
