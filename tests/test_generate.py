"""`vkrt generate`: prompts, output, what ends a text, sessions, conversations, grammars."""

import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from support import MODELS, python, write_letters, write_tokenizer

import vkrt
from vkrt.cli.main import main
from vkrt.program.program import Program
from vkrt.text import answer, saved
from vkrt.text.grammar import Grammars
from vkrt.text.model import LanguageModel, Session

pytestmark = pytest.mark.driver
MODEL = str(MODELS / "llama.pte")
PROMPT = "w7 w33 w20"


@pytest.fixture
def words(tmp_path):
    """A command line without a prompt."""
    return ["generate", MODEL, "--tokenizer", str(write_tokenizer(tmp_path)), "--max-tokens", "6"]


@pytest.fixture
def session(load):
    """A text of three tokens."""
    begun = Session(LanguageModel(load("llama")))
    begun.add([1, 2, 3])
    return begun


def turns_of(result):
    code, out, err = result
    assert code == 0 and err == ""
    return json.loads(out)["turns"]


def test_where_a_prompt_comes_from(words, run_vkrt, error_of, tmp_path):
    """Each way gives the same text, and nothing else on either stream."""
    file = tmp_path / "prompt.txt"
    file.write_text(PROMPT + "\n")
    expected = run_vkrt(*words, "--prompt", PROMPT)
    assert expected[0] == 0 and expected[1].startswith(PROMPT) and expected[2] == ""
    assert run_vkrt(*words, stdin=PROMPT + "\n") == expected
    assert run_vkrt(*words, "-f", file) == run_vkrt(*words, "--file", "-", stdin=PROMPT) == expected
    assert run_vkrt(*words, stdin="")[0] == run_vkrt(*words, "--prompt", "")[0] == 2
    assert run_vkrt(*words, "-f", tmp_path / "nothing")[0] == 1
    file.write_bytes(b"\xff\xfe")
    assert "prompt.txt: not a text in UTF-8" in error_of(2, *words, "-f", file)
    for chat in ([], ["--chat"]):
        with open(file, "rb") as stdin:
            done = python("-m", "vkrt", *words, *chat, stdin=stdin)
        assert done.returncode == 2 and "vkrt: not a text" in done.stderr, done.stderr


def at_terminal(words, typed=""):
    """The command with a terminal as its standard input, and something typed there."""
    main_end, other_end = pty.openpty()
    try:
        os.write(main_end, typed.encode())
        return python("-m", "vkrt", *words, stdin=other_end)
    finally:
        os.close(main_end)
        os.close(other_end)


def test_a_terminal_is_not_read_as_a_prompt(words):
    closed = subprocess.run(["bash", "-c", 'exec "$@" <&-', "bash", sys.executable, "-m", "vkrt",
                             *words], text=True, capture_output=True, timeout=120)
    for done in (at_terminal(words), closed):
        assert done.returncode == 2
        assert "-f FILE, a text on standard input, or --chat" in done.stderr


def test_a_tokenizer_that_is_not_there_names_the_option(error_of, tmp_path):
    for where in ([], ["--tokenizer", tmp_path]):
        err = error_of(2, "generate", MODEL, *where, "--prompt", PROMPT)
        assert err.endswith("is there; name one with --tokenizer FILE\n")


def test_figures_where_they_are_asked_for(words, run_vkrt):
    code, out, err = run_vkrt(*words, "--prompt", PROMPT, "--stats")
    assert code == 0 and out.startswith(PROMPT)
    assert "prompt: 3 tokens" in err and "state" in err and "measured peak" in err
    _, out, _ = run_vkrt(*words, "--prompt", PROMPT, "--json")
    data = json.loads(out)
    assert len(out.splitlines()) <= 30
    turn, = data["turns"]
    assert turn["prompt_tokens"] == 3 and 1 <= turn["tokens"] <= 6 and turn["rate"] > 0
    assert turn["ended"] in ("stop", "length")
    # Planned for the longest prompt, and for one of 64 tokens at a time, which is longer than this
    planned, measured, at_a_time = data["memory"].values()
    assert planned >= at_a_time >= measured > 0
    assert f"tokens of a prompt at a time: {at_a_time:,} B on the device" in err


def test_no_rate_is_infinite(words, run_vkrt, monkeypatch):
    """The clock may stand still between two tokens."""
    monkeypatch.setattr(answer, "perf_counter", lambda: 5.0)
    turn, = turns_of(run_vkrt(*words, "--prompt", PROMPT, "--json"))
    assert turn["rate"] is None and turn["prompt_rate"] is None
    _, _, err = run_vkrt(*words, "--prompt", PROMPT, "--stats")
    assert "prompt: 3 tokens in 0 ms; text: " in err and "a second" not in err


def test_strings_that_end_a_text(words, run_vkrt, error_of):
    whole, = turns_of(run_vkrt(*words, "--prompt", PROMPT, "--json"))
    pieces = whole["text"].split()
    assert len(pieces) == 6
    # One in the middle of a token, one over two tokens, and one that only begins
    cut = f"{pieces[2]} {pieces[3][:1]}"
    stopped, = turns_of(run_vkrt(*words, "--prompt", PROMPT, "--json", "--stop", "nothing",
                                 "--stop", cut))
    assert stopped["text"] == whole["text"].split(cut)[0] and stopped["ended"] == "stop"
    assert stopped["tokens"] < whole["tokens"]
    begun, = turns_of(run_vkrt(*words, "--prompt", PROMPT, "--json", "--stop",
                               whole["text"][-2:] + "and more"))
    assert begun["text"] == whole["text"]
    assert "--stop" in error_of(2, *words, "--prompt", PROMPT, "--stop", "")


def test_choices_have_llama_cpps_names(words, run_vkrt, error_of):
    options = ["--prompt", PROMPT, "--json", "--temp", "3", "--top-k", "30", "--top-p", "0.99",
               "--min-p", "0.01", "--repeat-penalty", "1.1", "--repeat-last-n", "5"]
    one, other, third = (turns_of(run_vkrt(*words, *options, "--seed", seed))[0]["text"]
                         for seed in ("4", "4", "5"))
    assert one == other != third
    assert "min_p=2.0" in error_of(2, *words, "--prompt", PROMPT, "--min-p", "2")


# Sessions


def test_a_saved_text_goes_on(words, run_vkrt, tmp_path):
    file = tmp_path / "text.session"
    whole, = turns_of(run_vkrt(*words[:-1], "12", "--prompt", PROMPT, "--json"))
    first, = turns_of(run_vkrt(*words, "--prompt", PROMPT, "--save-session", file, "--json"))
    second, = turns_of(run_vkrt(*words, "--load-session", file, "--save-session", file, "--json"))
    assert first["text"] + second["text"] == whole["text"] and second["tokens"] == 6
    # All but the last token, which was chosen but not read, is in the caches.
    assert second["prompt_tokens"] == 1 and second["cached_tokens"] == 8
    more, = turns_of(run_vkrt(*words, "--load-session", file, "--prompt", "w9 w9", "--json"))
    assert more["prompt_tokens"] == 3 and more["cached_tokens"] == 14
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".vkrt")]


def test_a_saved_conversation_goes_on(words, run_vkrt, error_of, tmp_path):
    file, plain = tmp_path / "chat.session", tmp_path / "text.session"
    chat = [*words[:-1], "3", "--chat", "--json"]
    _, second = turns_of(run_vkrt(*chat, stdin="w9\nw10\n"))
    turns_of(run_vkrt(*chat, "--save-session", file, stdin="w9\n"))
    again, = turns_of(run_vkrt(*chat, "--load-session", file, stdin="w10\n"))
    assert again["text"] == second["text"] and again["cached_tokens"] == second["cached_tokens"] > 0
    run_vkrt(*words, "--prompt", PROMPT, "--save-session", plain)
    assert "a text, not a conversation" in error_of(2, *chat, "--load-session", plain)


def test_other_files_are_neither_read_nor_written_over(words, error_of, tmp_path):
    other = tmp_path / "arrays.npz"
    np.savez(other, x=np.zeros(3))
    before = other.read_bytes()
    for option, message in (("--save-session", "is not a saved session"),
                            ("--load-session", "not a session that vkrt has saved")):
        assert message in error_of(2, *words, "--prompt", PROMPT, option, other)
    assert other.read_bytes() == before
    loading = (*words, "--prompt", PROMPT, "--load-session")
    assert "not a session" in error_of(2, *loading, tmp_path / "tokenizer.json")
    error_of(1, *loading, tmp_path / "nothing")


def test_a_session_of_another_model(session, tmp_path):
    file = tmp_path / "a.session"
    session.logits()
    saved.save_session(file, session)
    with np.load(file) as content:
        arrays = dict(content)
    for key, value in (("ids", np.array([1, 99])), ("vkrt_session", np.array([2, 0])),
                       (next(key for key in arrays if key.startswith("state.")), np.zeros(3)),
                       ("messages", np.array("["))):
        np.savez(tmp_path / "other.npz", **{**arrays, key: value})
        with pytest.raises(vkrt.InputError, match=r"other\.npz: "):
            saved.load_session(tmp_path / "other.npz", session)


def test_a_session_is_its_owners_alone(session, tmp_path):
    """A conversation is nothing for others, unless the owner has said so of the file."""
    file, link = tmp_path / "a.session", tmp_path / "link"
    link.symlink_to(file)
    saved.save_session(link, session)
    assert link.is_symlink() and file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    saved.save_session(file, session)
    assert file.stat().st_mode & 0o777 == 0o640 and len(list(tmp_path.iterdir())) == 2


def test_what_was_saved_stays_where_saving_fails(session, tmp_path, monkeypatch):
    file = tmp_path / "a.session"
    saved.save_session(file, session)
    before = file.read_bytes()

    def fail(file, **_arrays):
        file.write(b"begun")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez", fail)
    with pytest.raises(OSError, match="full"):
        saved.save_session(file, session)
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


# Conversations


def test_turns_read_only_what_is_new(words, run_vkrt):
    turns = turns_of(run_vkrt(*words, "--chat", "--json", "--seed", "3", "--temperature", "0.8",
                              stdin="w9\n\nw10 w11\n"))
    assert len(turns) == 2
    assert turns[1]["prompt_tokens"] < turns[0]["prompt_tokens"] + turns[0]["tokens"] + 6


@pytest.mark.parametrize(("template", "said"), [
    (None, "no chat template; expected chat_template.jinja"),
    ("{% for m in", "the chat template says: "),
    ("{{ raise_exception('only for tools') }}", "the chat template says: only for tools"),
    ("{{ messages[0].role | no_such_filter }}", "the chat template says: No filter named"),
])
def test_a_template_that_cannot_be_used_is_refused_before_the_load(
        words, run_vkrt, tmp_path, monkeypatch, template, said):
    (tmp_path / "tokenizer_config.json").unlink()
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    monkeypatch.setattr(Program, "__init__", lambda *_: pytest.fail("it is loaded"))
    code, out, err = run_vkrt(*words, "--chat", stdin="w7\n")
    assert (code, out, err.count("\n")) == (2, "", 1) and f"vkrt: {tmp_path}: {said}" in err


def test_a_template_that_takes_no_system_message(words, run_vkrt, tmp_path, monkeypatch):
    """It is refused where there is one, and only then."""
    (tmp_path / "chat_template.jinja").write_text(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}w1")
    turns_of(run_vkrt(*words, "--chat", "--json", stdin="w7\n"))
    monkeypatch.setattr(Program, "__init__", lambda *_: pytest.fail("it is loaded"))
    assert run_vkrt(*words, "--chat", "--system", "w3", stdin="w7\n")[0] == 2


def test_commands_of_a_conversation(words, run_vkrt, tmp_path):
    file = tmp_path / "a.session"
    code, out, err = run_vkrt(*words[:-1], "3", "--chat", stdin=(
        f"w9\n/stats\n/save {file}\n/save {tmp_path / 'tokenizer.json'}\n/what\n/clear\nw9\n/bye\n"
        "w10\n"))
    first, second = out.splitlines()
    assert code == 0 and first == second
    assert "prompt: " in err and "measured peak" in err and f"wrote {file}" in err
    assert "is not a saved session" in err and "/clear begins anew" in err
    assert file.exists()
    # What only looks like a command is said to the model.
    said, = turns_of(run_vkrt(*words, "--chat", "--json", stdin="/w9/w10 w3\n"))
    assert said["prompt_tokens"] == 5


def test_a_conversation_longer_than_the_context(words):
    """Somebody at a terminal is told, and may begin anew."""
    long = " ".join(["w9"] * 30)
    done = at_terminal([*words, "--chat"], f"{long}\n/clear\nw9\n/bye\n")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    assert "room for 24 altogether; /clear begins anew" in done.stderr
    assert main([*words, "--chat", "--prompt", long]) == 2


# Grammars


@pytest.fixture
def letters(tmp_path):
    pytest.importorskip("llguidance")
    return ["generate", MODEL, "--tokenizer", str(write_letters(tmp_path)), "--max-tokens", "23",
            "--prompt", "a", "--json"]


def test_an_answer_of_a_schema(letters, run_vkrt, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps({
        "type": "object", "additionalProperties": False, "required": ["w", "n"],
        "properties": {"w": {"enum": ["yes", "no"]}, "n": {"type": "integer", "minimum": 10,
                                                           "maximum": 99}}}))
    plain, = turns_of(run_vkrt(*letters))
    for seed in range(3):
        turn, = turns_of(run_vkrt(*letters, "--json-schema", file, "--temperature", "1.5", "--seed",
                                  seed))
        found = json.loads(turn["text"])
        assert set(found) == {"w", "n"} and found["w"] in ("yes", "no") and 10 <= found["n"] <= 99
        assert turn["ended"] == "stop" and turn["text"] != plain["text"]


def test_an_answer_of_a_grammar(letters, run_vkrt, error_of, tmp_path):
    file = tmp_path / "grammar.gbnf"
    file.write_text('root ::= [a-c]{2} "-" number\nnumber ::= [0-9] [0-9]?\n')
    turn, = turns_of(run_vkrt(*letters, "--grammar", file))
    assert re.fullmatch("[a-c]{2}-[0-9]{1,2}", turn["text"]) and turn["ended"] == "stop"
    for text, option, message in (('root ::= ("a"', "--grammar", "gbnf"),
                                  ("root ::= other", "--grammar", "gbnf"),
                                  ('{"type": "nothing"}', "--json-schema", "json_schema: ")):
        file.write_text(text)
        assert message in error_of(2, *letters, option, file)
    # The prompt is not of the grammar; each turn of a conversation begins it anew.
    (tmp_path / "chat_template.jinja").write_text("{{ messages[-1].content }}")
    file.write_text('root ::= "no" | "yes"')
    turns = turns_of(run_vkrt(*letters[:-3], "--json", "--chat", "--grammar", file, stdin="a\nb\n"))
    assert {turn["text"] for turn in turns} <= {"yes", "no"} and len(turns) == 2


def test_what_grammars_need(load, tmp_path, monkeypatch):
    pytest.importorskip("llguidance")
    tokenizer = vkrt.Tokenizer(write_tokenizer(tmp_path))  # whose tokens are words, not bytes
    grammars = Grammars(LanguageModel(load("llama")), tokenizer)
    with pytest.raises(vkrt.InputError, match="grammars over these tokens"):
        grammars.constrained(vkrt.Sampler(), "gbnf", 'root ::= "a"')
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(vkrt.VkrtError, match=r"llguidance, .*: pip install '\.\[grammar\]'"):
        grammars.constrained(vkrt.Sampler(), "gbnf", 'root ::= "a"')


@pytest.mark.parametrize("package", ["tokenizers", "jinja2"])
def test_a_missing_package_is_named(words, error_of, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    err = error_of(1, *words, "--chat", stdin="w9\n")
    assert f"needs the package {package}, " in err and "pip install '.[text]'" in err
