"""Text: which token comes next, and tokenizers with the files beside them."""

import json
from collections import Counter

import numpy as np
import pytest
from support import write_tokenizer

import vkrt
from vkrt.text.tokenizer import ENDS, TextStream


@pytest.fixture(scope="module")
def logits():
    return np.random.default_rng(5).normal(size=50).astype(np.float32) * 3


@pytest.fixture
def tokenizer(tmp_path):
    return vkrt.Tokenizer(write_tokenizer(tmp_path))


def drawn(logits, count=4000, **options):
    """How often each token is chosen."""
    sampler = vkrt.Sampler(seed=1, **options)
    return Counter(sampler(logits, []) for _ in range(count))


def test_the_most_likely(logits):
    assert vkrt.Sampler()(logits, []) == logits.argmax()
    assert drawn(logits, 20, temperature=1.0, top_k=1) == {logits.argmax(): 20}
    assert drawn(logits, 20, temperature=1.0, top_p=1e-9) == {logits.argmax(): 20}


def test_frequencies_are_the_probabilities(logits):
    for temperature in (0.5, 1.0, 2.0):
        wanted = np.exp(logits.astype(np.float64) / temperature)
        wanted /= wanted.sum()
        found = drawn(logits, temperature=temperature)
        for token, share in enumerate(wanted):
            # Five standard deviations of a count, and one more
            assert abs(found[token] - 4000 * share) <= 5 * np.sqrt(4000 * share) + 1


def test_few_tokens(logits):
    order = np.argsort(-logits)
    assert set(drawn(logits, temperature=3.0, top_k=4)) == set(order[:4])
    shares = np.sort(np.exp(logits.astype(np.float64)))[::-1]
    count = int(np.searchsorted(np.cumsum(shares / shares.sum()), 0.9)) + 1
    assert set(drawn(logits, temperature=1.0, top_p=0.9)) <= set(order[:count])


def test_tokens_that_are_likely_beside_the_most_likely_one(logits):
    shares = np.exp(logits.astype(np.float64) - logits.max())
    likely = set(np.flatnonzero(shares >= 0.05))
    assert 1 < len(likely) < 20
    assert set(drawn(logits, temperature=5.0, min_p=0.05)) == likely
    assert drawn(logits, 20, temperature=5.0, min_p=1.0) == {logits.argmax(): 20}


def test_the_temperature_comes_last():
    """As in llama.cpp: which tokens are left does not depend on it."""
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    for options, left in (({"top_p": 0.79}, {0, 1}), ({"top_p": 0.81}, {0, 1, 2}),
                          ({"min_p": 0.5}, {0, 1}), ({"top_k": 3, "top_p": 0.84}, {0, 1}),
                          ({"top_k": 2, "min_p": 0.05}, {0, 1})):
        for temperature in (0.7, 1.0, 100.0):
            assert set(drawn(logits, temperature=temperature, **options)) == left


def test_tokens_that_are_not_allowed_are_not_chosen(logits):
    """A grammar leaves them no chance: their logits are -inf."""
    masked = np.full_like(logits, -np.inf)
    masked[[3, 8]] = logits[[3, 8]]
    for options in ({}, {"temperature": 9.0}, {"temperature": 9.0, "top_p": 0.999, "min_p": 1e-9,
                                               "repetition_penalty": 2.0}):
        sampler = vkrt.Sampler(seed=2, **options)
        assert {sampler(masked, [3, 4, 5]) for _ in range(200)} <= {3, 8}


def test_a_seed_repeats(logits):
    first, again, other = ([sampler(logits, []) for _ in range(30)] for sampler in (
        vkrt.Sampler(temperature=1.0, seed=seed) for seed in (7, 7, 8)))
    assert first == again != other


def test_repetitions_cost():
    sampler = vkrt.Sampler(repetition_penalty=2.0)
    logits = np.array([1.0, 1.5, -1.0, -1.5], np.float32)
    assert sampler(logits, [1, 1]) == 0
    np.testing.assert_array_equal(logits, [1.0, 1.5, -1.0, -1.5])
    assert sampler(np.array([-1.0, -1.5], np.float32), [0]) == 1
    # Of the last 64 tokens, of others, of all
    ids = [1, *[2] * 64]
    assert sampler(logits, ids) == 1 and sampler(logits, ids[:-1]) == 0
    for count, chosen in ((0, 1), (64, 1), (65, 0), (-1, 0)):
        assert vkrt.Sampler(repetition_penalty=2.0, repeat_last_n=count)(logits, ids) == chosen


@pytest.mark.parametrize("options", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0},
                                     {"top_p": 1.5}, {"repetition_penalty": 0}, {"seed": -1},
                                     {"min_p": -0.1}, {"min_p": 1.1}, {"repeat_last_n": -2},
                                     {"temperature": float("nan")}])
def test_wrong_options(options):
    with pytest.raises(vkrt.InputError, match="out of range"):
        vkrt.Sampler(**options)


def test_tokens_and_text(tmp_path, tokenizer):
    assert tokenizer.encode("w3 w5") == [3, 5]
    assert tokenizer.decode([3, 5]) == "w3 w5"
    assert "".join(tokenizer.stream(iter([3, 5, 9, 9]))) == "w3 w5 w9 w9"
    assert tokenizer.ends == {2}
    # The folder will do, and what generation_config.json says counts.
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [8, 9]}))
    assert vkrt.Tokenizer(tmp_path).ends == {2, 8, 9}


def test_pieces_are_whole_characters(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(
        {letter: n for n, letter in enumerate(tokenizers.pre_tokenizers.ByteLevel.alphabet())}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.save(str(tmp_path / "tokenizer.json"))
    tokenizer = vkrt.Tokenizer(tmp_path)
    ids = tokenizer.encode("zw\u00f6lf \u4f60\u597d \U0001f600!")
    pieces = list(tokenizer.stream(iter(ids)))
    assert "".join(pieces) == "zw\u00f6lf \u4f60\u597d \U0001f600!"
    assert "\ufffd" not in "".join(pieces) and len(pieces) > 10
    # A text that ends in the middle of a character
    assert "".join(tokenizer.stream(iter(ids[:3]))) == "zw\ufffd"
    assert tokenizer.ends == frozenset()
    assert ENDS


def test_conversations(tmp_path, tokenizer):
    messages = [{"role": "user", "content": "w3 w4"}, {"role": "assistant", "content": "w5"},
                {"role": "user", "content": "w6"}]
    assert tokenizer.chat(messages) == "w1 w3 w4 w2 w1 w5 w2 w1 w6 w2 w1"
    with pytest.raises(vkrt.InputError, match="chat template says: no such role"):
        tokenizer.chat([{"role": "owl", "content": ""}])
    (tmp_path / "tokenizer_config.json").unlink()
    with pytest.raises(vkrt.InputError, match="no chat template; expected chat_template.jinja"):
        vkrt.Tokenizer(tmp_path).chat(messages)
    (tmp_path / "chat_template.jinja").write_text("{{ messages | length }}")
    assert vkrt.Tokenizer(tmp_path).chat(messages) == "3"


def test_what_templates_use(tmp_path):
    """What transformers offers them: templates of Llama 3, Qwen and others use it."""
    write_tokenizer(tmp_path)
    file = tmp_path / "chat_template.jinja"
    messages = [{"role": "user", "content": "<\u00e4>"}, {"role": "user", "content": "b"}]
    file.write_text("{% for m in messages %}{{ m | tojson }}{% break %}{% endfor %}"
                    "{{ strftime_now('%Y') | length }}{{ tools is none }}{{ documents is none }}")
    text = vkrt.Tokenizer(tmp_path).chat(messages)
    assert text == '{"role": "user", "content": "<\u00e4>"}4TrueTrue'


@pytest.mark.parametrize(("template", "message"), [
    ("{{ messages.__class__.__mro__ }}", "unsafe"), ("{{ messages.append(1) }}", "unsafe"),
    ("{{ 1 + 'a' }}", "unsupported operand"), ("{% for %}", "Expected"),
    ("{{ range(10 ** 9) | list | length }}", "Range too big")])
def test_templates_cannot_reach_the_system(tmp_path, template, message):
    write_tokenizer(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(vkrt.InputError, match=f"chat template says: .*{message}"):
        vkrt.Tokenizer(tmp_path).chat([])


def test_a_text_that_goes_on_keeps_its_spaces(tokenizer):
    assert TextStream(tokenizer).add(5) == "w5"
    assert TextStream(tokenizer, [3]).add(5) == " w5"


def test_what_is_no_tokenizer(tmp_path):
    with pytest.raises(vkrt.InputError, match="neither tokenizer.json nor"):
        vkrt.Tokenizer(tmp_path)
    for name in ("tokenizer.json", "tokenizer.model"):
        (tmp_path / name).write_text("{}")
        with pytest.raises(vkrt.InputError, match="not a tokenizer"):
            vkrt.Tokenizer(tmp_path / name)
    with pytest.raises(OSError):
        vkrt.Tokenizer(tmp_path / "other.json")
