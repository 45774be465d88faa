"""`vkrt generate`: writes text with a language model, once or in a conversation."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from vkrt.cli import common
from vkrt.cli.process import take_interrupts
from vkrt.cli.progress import add_progress, progress_of
from vkrt.errors import InputError, VkrtError
from vkrt.program.program import Program
from vkrt.text.answer import Answer
from vkrt.text.generate import ChooseToken
from vkrt.text.grammar import Grammars
from vkrt.text.model import LanguageModel, Session
from vkrt.text.sampling import Sampler
from vkrt.text.saved import check_session_file, load_session, save_session
from vkrt.text.shapes import CHUNK
from vkrt.text.tokenizer import Tokenizer

COMMANDS = "/bye ends, /clear begins anew, /save FILE saves, /stats shows rates and memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_model(parser)
    common.add_method(parser)
    add_tokenizer(parser)
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="TEXT",
                        help="what the text begins with, or with --chat the first turn (default: "
                             "what standard input has)")
    prompt.add_argument("-f", "--file", metavar="FILE",
                        help="the same, from a file; - for standard input (default: none)")
    common.add_flag(parser, "--chat", "a conversation: turns are lines of standard input, put as "
                    f"the chat template beside the tokenizer says; {COMMANDS}")
    parser.add_argument("--system", metavar="TEXT",
                        help="what a conversation begins with (default: nothing)")
    add_value = partial(common.add_value, parser)
    add_value("--max-tokens", default=256, metavar="N", what="tokens of an answer at most")
    parser.add_argument("--stop", action="append", default=[], metavar="TEXT",
                        help="the text ends before this, once per text (default: none)")
    add_value("--temperature", "--temp", default=0.0, metavar="T",
              what="0 takes the most likely token")
    add_value("--top-k", default=0, metavar="N", what="choose among so many tokens; 0 for all")
    add_value("--top-p", default=1.0, metavar="P",
              what="choose among the fewest tokens that are so likely")
    add_value("--min-p", default=0.0, metavar="P",
              what="choose among tokens that are so many times as likely as the most likely one; 0 "
                   "for all")
    add_value("--repetition-penalty", "--repeat-penalty", default=1.0, metavar="X",
              what="makes tokens that occurred less likely; 1 for no change")
    add_value("--repeat-last-n", default=64, metavar="N",
              what="the last tokens that the penalty looks at; -1 for all")
    parser.add_argument("--seed", type=int, help="of the choices (default: another every time)")
    grammar = parser.add_mutually_exclusive_group()
    grammar.add_argument("--json-schema", metavar="FILE",
                         help="answers are JSON of this schema (default: any text)")
    grammar.add_argument("--grammar", metavar="FILE",
                         help="answers keep to this grammar, GBNF (default: any text)")
    parser.add_argument("--load-session", metavar="FILE",
                        help="go on with a text or a conversation that was saved (default: none)")
    parser.add_argument("--save-session", metavar="FILE",
                        help="save the text or the conversation at the end, with what the model's "
                             "caches hold of it (default: no)")
    add_prefill(parser)
    common.add_flag(parser, "--stats", "at the end, print rates and the memory table on stderr")
    common.add_load_options(parser)
    add_progress(parser)
    common.add_json(parser)


def add_tokenizer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tokenizer", metavar="FILE",
                        help="tokenizer.json or a sentencepiece model, or the folder that has one "
                             "(default: the one beside the program)")


def add_prefill(parser: argparse.ArgumentParser) -> None:
    common.add_value(parser, "--prefill", default=CHUNK, metavar="N",
                     what="tokens of a prompt that are read at a time; more take more memory")


def execute(options: argparse.Namespace) -> int:
    if options.max_tokens < 1:
        raise InputError(f"--max-tokens {options.max_tokens}: expected 1 or more")
    if "" in options.stop:
        raise InputError("--stop: expected a text that is not empty")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # the tokenizer says that it is no text
    prompt = _prompt(options)
    if options.save_session:
        check_session_file(options.save_session, "--save-session")
    tokenizer = Tokenizer(options.tokenizer or Path(options.model).parent)
    if options.chat:  # a template that cannot be used is better found before the load
        tokenizer.chat([*_system(options), {"role": "user", "content": "Hello"}])
    sampler = Sampler(options.temperature, options.top_k, options.top_p,
                      options.repetition_penalty, options.seed, options.min_p,
                      options.repeat_last_n)
    with load_shown(options) as program:
        writer = _Writer(options, tokenizer, sampler, program)
        take_interrupts()  # Ctrl-C ends an answer, and not the command
        if options.chat:
            writer.converse(_turns(prompt))
        else:
            writer.write(prompt)
        if options.save_session:
            writer.save(options.save_session)
        if options.json:
            common.show(options, writer.as_dict(), "")
        elif options.stats:
            sys.stdout.flush()
            print(writer.stats(), file=sys.stderr)
    return 0


def load_shown(options: argparse.Namespace) -> Program:
    with progress_of(options) as progress:
        progress.say(f"loading {options.model} ..")
        return Program(options.model, common.device_of(options.device),
                       common.load_options(options), options.data_path, progress.on_progress)


def _prompt(options: argparse.Namespace) -> str | None:
    """What the text begins with, or the first turn; None if there is none yet.

    Raises:
        InputError: there is no prompt, or it is empty.
        OSError, InputError: the file cannot be read, or is no text.
    """
    name, text = options.file, options.prompt
    if name is None and text is None and not options.chat:
        if options.load_session:
            return None
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("expected --prompt TEXT, -f FILE, a text on standard input, or --chat")
        name = "-"
    if name is not None:
        text = sys.stdin.read() if name == "-" else _text_of(name)
        text = text.removesuffix("\n")
    if text == "" and not options.chat:
        raise InputError("the prompt is empty; expected a text")
    return text


def _system(options: argparse.Namespace) -> list[dict[str, str]]:
    """The messages that a conversation begins with."""
    return [{"role": "system", "content": options.system}] if options.system else []


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not a text in UTF-8 ({error})") from error


def _turns(prompt: str | None) -> Iterator[str]:
    """What the user says, turn by turn; a prompt is the first."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        print(COMMANDS, file=sys.stderr)
    if prompt is not None:
        yield prompt
        if not is_terminal:
            return
    while True:
        if is_terminal:
            print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            return
        if line.strip():
            yield line.strip()


class _Writer:
    """Continues the text of a session with answers, and shows them as they come."""

    def __init__(self, options: argparse.Namespace, tokenizer: Tokenizer, sampler: Sampler,
                 program: Program):
        self.options, self.tokenizer = options, tokenizer
        self.program, self.sampler = program, sampler
        model = LanguageModel(program, options.method)
        self.session = Session(model, chunk=options.prefill)
        self.grammars = Grammars(model, tokenizer)
        self.kind = "gbnf" if options.grammar else "json_schema"
        name = options.grammar or options.json_schema
        self.grammar = _text_of(name) if name else None
        self.choice()  # raises if the grammar is wrong
        self.messages: list[dict[str, str]] = []
        self.answers: list[tuple[str, Answer]] = []
        if options.load_session:
            self.messages = load_session(options.load_session, self.session)
            if options.chat and not self.messages:
                raise InputError(f"--load-session {options.load_session}: a text, not a "
                                 "conversation; leave out --chat")
        elif options.chat:
            self.clear()

    def choice(self) -> ChooseToken:
        """What chooses the tokens of one answer."""
        if self.grammar is None:
            return self.sampler
        return self.grammars.constrained(self.sampler, self.kind, self.grammar)

    def write(self, prompt: str | None) -> None:
        """Continues the text of the session, after adding the prompt if there is one."""
        if prompt is not None:
            self.session.add(self.tokenizer.encode(prompt, special=not self.session.ids))
        self._answer(prompt or "")

    def converse(self, turns: Iterator[str]) -> None:
        for said in turns:
            command, _, argument = said.partition(" ")
            if command == "/bye":
                return
            if command.startswith("/") and command[1:].isalpha():
                self._command(command, argument.strip())
                continue
            messages = [*self.messages, {"role": "user", "content": said}]
            # The template already writes the tokens at the start.
            ids = self.tokenizer.encode(self.tokenizer.chat(messages), special=False)
            try:
                self.session.continue_with(ids)
            except InputError as error:
                if not sys.stdin.isatty():
                    raise
                print(f"vkrt: {error}; /clear begins anew", file=sys.stderr)
                continue
            self.messages = [*messages, {"role": "assistant", "content": self._answer()}]

    def clear(self) -> None:
        self.messages = _system(self.options)

    def save(self, name: str) -> None:
        save_session(name, self.session, self.messages)

    def _command(self, command: str, argument: str) -> None:
        if command == "/clear":
            self.clear()
        elif command == "/stats":
            print(self.stats(), file=sys.stderr)
        elif command == "/save" and argument:
            try:
                self.save(argument)
            except (OSError, VkrtError) as error:  # the conversation goes on
                print(f"vkrt: {error}", file=sys.stderr)
            else:
                print(f"wrote {argument}", file=sys.stderr)
        else:
            print(COMMANDS, file=sys.stderr)

    def _answer(self, shown: str = "") -> str:
        """The text that follows the session's tokens; Ctrl-C ends it."""
        answer = Answer(self.session, self.tokenizer, self.choice(), self.options.max_tokens,
                        self.options.stop, continues=not self.options.chat)
        self._show(shown)
        pieces: list[str] = []
        try:
            for piece in answer:
                pieces.append(piece)
                self._show(piece)
        except KeyboardInterrupt:
            pass  # the text ends here
        self._show("\n")
        self.answers.append(("".join(pieces), answer))
        return self.answers[-1][0]

    def _show(self, text: str) -> None:
        if text and not self.options.json:
            sys.stdout.write(text)
            sys.stdout.flush()

    def as_dict(self) -> dict[str, Any]:
        memory = self.program.memory
        return {"device": self.program.device.info.name,
                "turns": [_figures(text, answer) for text, answer in self.answers],
                "memory": {"planned_peak": memory.planned_peak,
                           "measured_peak": memory.measured_peak,
                           "prefill_peak": self._prefill_peak()}}

    def _prefill_peak(self) -> int:
        """The most bytes on the device with `--prefill` tokens of a prompt at a time."""
        return self.session.model.peak_of(self.session.chunk)

    def stats(self) -> str:
        return "\n".join(["", *(_line(answer) for _, answer in self.answers),
                          f"with {self.session.chunk} tokens of a prompt at a time: "
                          f"{self._prefill_peak():,} B on the device at most", "",
                          self.program.memory.table()])


def _figures(text: str, answer: Answer) -> dict[str, Any]:
    """The figures of an answer, for JSON; rates are tokens per second."""
    return {"text": text, "ended": answer.reason or "interrupted",
            "prompt_tokens": answer.prompt_tokens - answer.cached_tokens,
            "cached_tokens": answer.cached_tokens,
            "prompt_ms": round(answer.prompt_seconds * 1e3, 2),
            "prompt_rate": answer.prompt_rate and round(answer.prompt_rate, 2),
            "tokens": answer.tokens, "ms": round(answer.seconds * 1e3, 2),
            "rate": answer.rate and round(answer.rate, 2)}


def _line(answer: Answer) -> str:
    read = answer.prompt_tokens - answer.cached_tokens
    prompt, rate = ("" if value is None else f", {value:,.1f} a second"
                    for value in (answer.prompt_rate, answer.rate))
    return (f"prompt: {read} tokens in {answer.prompt_seconds * 1e3:,.0f} ms{prompt}; "
            f"text: {answer.tokens} tokens{rate}")
