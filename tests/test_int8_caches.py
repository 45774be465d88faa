"""Language models with caches in 8 bits (`cache="int8"`): results, bytes, states."""

import numpy as np
import pytest
from support import MODELS, QUICK, calls_of, graph_of_file, need_model, relative_l2, same_bits
from test_language import PROMPT, REAL

import vkrt
from vkrt.graph import constants
from vkrt.runtime.handles import requirements_of
from vkrt.text.model import LanguageModel, Session
from vkrt.text.tokenizer import Tokenizer
from vkrt.work.tensor import Storage, round_up


@pytest.fixture
def load(load):
    return lambda name="llama", cache="int8", **options: load(name, cache=cache, **options)


def follow(program, steps, bound=0.02):
    """Runs one after another, with logits that are nearly those of caches in floats."""
    for inputs, (expected,) in steps:
        result, = program.run(*inputs)
        assert 1e-5 < relative_l2(result, expected) <= bound


@pytest.fixture(scope="module")
def steps():
    return calls_of("llama", "step")


@pytest.mark.parametrize("weights", ["auto", "copy", "stream"])
def test_prompts_and_steps(storage, weights, device, load, steps, exact_sizes):
    program = load(storage=storage, weights=weights)
    assert program.memory.notes[0] == "4 of 4 states are caches in 8 bits"
    for _ in range(2):
        follow(program, steps)
        program.reset_state()
    # 24 rows of 2 heads of 8 elements, and 4 bytes beside these
    kept = 24 * 2 * (8 + 4)
    _, alignment, _ = requirements_of(device)(Storage(0, "state", kept, "int8"))
    assert program.memory.state == 3 * round_up(kept, alignment) + kept
    assert {array.nbytes for array in program.save_state().values()} == {kept}


@pytest.mark.parametrize(("name", "bound"), [
    ("llama_static", 0.02), ("kept_attention", 0.05), ("kept_ring", 0.05)])
def test_planned_is_measured(name, bound, storage, load):
    """Programs of fixed sizes: attention of one token, and caches outside of delegates."""
    program, floats = load(name, storage=storage), load(name, cache="float")
    for inputs, _ in calls_of(name, "step"):
        for result, wanted in zip(program.run(*inputs), floats.run(*inputs), strict=True):
            assert relative_l2(result, wanted) <= bound
    assert program.memory.measured_peak == program.memory.planned_peak
    assert program.memory.notes[0].startswith(("4 of 4 states", "2 of 2 states"))
    assert program.memory.state < floats.memory.state


@pytest.mark.parametrize(("name", "bound"), [
    ("llama_mini-base", 0.02), ("llama_mini_4w-base", 0.02), ("llama_mini_8da4w-base", 0.03)])
def test_larger_ones(name, bound, load):
    path = need_model(f"{name}.pte")
    follow(load(path), calls_of(path, "step"), bound)


@pytest.mark.parametrize("options", [{}, {"memory_budget": "smallest"}][:1 if QUICK else None],
                         ids=str)
def test_a_real_model_writes_the_same_text(options, load):
    path = need_model(REAL)
    tokenizer = Tokenizer(need_model("smollm2-135m.tokenizer.json"))
    prompt = tokenizer.encode("Once upon a time")
    texts, nbytes = [], []
    for cache in ("float", "int8"):
        with load(path, cache=cache, **options) as program:
            texts.append(tokenizer.decode(list(vkrt.generate(program, prompt, max_tokens=24))))
            nbytes.append(program.memory.state)
            assert program.memory.measured_peak <= program.memory.planned_peak
    assert texts[0] == texts[1]
    assert nbytes[1] < 0.27 * nbytes[0]


def test_a_prompt_in_pieces_leaves_the_same_caches(load):
    """To the rounding of the numbers that are quantized."""
    program, found = load(), []
    model = LanguageModel(program)
    for chunk in (64, 4, 1):
        program.reset_state()
        session = Session(model, chunk=chunk)
        session.add(PROMPT)
        found.append(session.logits())
    for logits in found[1:]:
        assert relative_l2(logits, found[0]) <= 0.02


# States


def test_saved_states_are_what_is_kept(load, steps):
    program = load()
    with program.new_state() as other:
        follow(program, steps[:2])
        saved = program.save_state()
        assert {array.dtype.name for array in saved.values()} == {"int8"}
        expected = [program.run(*inputs)[0] for inputs, _ in steps[2:]]
        other.load(saved)
        same_bits([program.run(*inputs, state=other)[0] for inputs, _ in steps[2:]], expected)
        program.load_state(saved)
        for name, array in program.save_state().items():
            np.testing.assert_array_equal(array, saved[name])
        same_bits([program.run(*inputs)[0] for inputs, _ in steps[2:]], expected)
        program.reset_state()
        assert not any(array.any() for array in program.save_state().values())


def test_a_state_of_the_other_precision_is_refused(load):
    program, floats = load(), load(cache="float")
    for one, other, text in ((program, floats, r"expected float32\[1, 24, 2, 8\], got int8"),
                             (floats, program, r"expected int8\[1, 24, 2, 12\], got float")):
        with pytest.raises(vkrt.InputError, match=text):
            other.load_state(one.save_state())


def test_on_a_device_with_memory_of_its_own(discrete, load, steps):
    program = load(device=discrete)
    follow(program, steps[:2])
    saved = program.save_state()
    program.reset_state()
    program.load_state(saved)
    follow(program, steps[2:])


def test_caches_that_begin_with_something_stay_as_they_are(load, steps, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "is_zero", lambda *_args: False)
    initial = graph_of_file("llama").states[0].initial
    monkeypatch.undo()
    data = bytearray((MODELS / "llama.pte").read_bytes())
    assert not any(data[initial.offset:initial.offset + initial.nbytes])
    data[initial.offset + 3] = 0x3f
    path = tmp_path / "llama.pte"
    path.write_bytes(data)
    program = load(path)
    assert program.memory.notes[0] == "0 of 4 states are caches in 8 bits"
    assert any(array.flat[0] == 0.5 for array in program.save_state().values())
    (inputs, (expected,)), *_ = steps
    result, = program.run(*inputs)
    assert relative_l2(result, expected) <= 1e-5


# Files


@pytest.mark.usefixtures("any_age")
def test_compiled_programs_and_cached_plans_keep_them_so(device, tmp_path):
    path, out = MODELS / "kept_attention.pte", tmp_path / "net.vkx"
    vkrt.compile(path, out, device=device, cache="int8")
    inputs = [inputs for inputs, _ in calls_of(path, "step")]
    options = {"cache": "int8", "plan_cache": tmp_path / "plans"}
    found = []
    # A plan for floats is another plan.
    vkrt.load(path, device, plan_cache=tmp_path / "plans").close()
    for name, given in ((path, {"cache": "int8"}), (out, {}), (path, options), (path, options)):
        with vkrt.load(name, device, **given) as program:
            results = [array for one in inputs for array in program.run(*one)]
            found.append([*results, *program.save_state().values()])
            assert program.memory.measured_peak == program.memory.planned_peak
    for other in found[1:]:
        same_bits(other, found[0])
    assert len(list((tmp_path / "plans").glob("*.vkplan"))) == 2
    with pytest.raises(vkrt.InputError, match="cache='int8'.*decided when it was compiled"):
        vkrt.load(out, device, cache="int8")
