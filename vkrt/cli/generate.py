"""`vkrt generate`: writes text with a language model, once or in a conversation."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from vkrt.cli import common
from vkrt.cli.progress import add_progress, progress_of
from vkrt.dataclass import dataclass
from vkrt.errors import InputError
from vkrt.hints import Any, TextIO
from vkrt.program import Program
from vkrt.text.generate import continued
from vkrt.text.model import LanguageModel, Session
from vkrt.text.sampling import Sampler
from vkrt.text.tokenizer import Tokenizer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    common.add_model(parser)
    common.add_method(parser)
    parser.add_argument("--tokenizer", metavar="FILE",
                        help="tokenizer.json or a sentencepiece model, or the folder that has one "
                             "(default: the one beside the program)")
    parser.add_argument("--prompt", metavar="TEXT",
                        help="what the text begins with, or with --chat the first turn (default: "
                             "with --chat it is read from standard input)")
    parser.add_argument("--chat", action="store_true",
                        help="a conversation: turns are read from standard input, and put as the "
                             "chat template beside the tokenizer says (default: no)")
    parser.add_argument("--system", metavar="TEXT",
                        help="what a conversation begins with (default: nothing)")
    parser.add_argument("--max-tokens", type=int, default=256, metavar="N",
                        help="tokens of an answer at most (default: 256)")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T",
                        help="0 takes the most likely token (default: 0)")
    parser.add_argument("--top-k", type=int, default=0, metavar="N",
                        help="choose among so many tokens; 0 for all (default: 0)")
    parser.add_argument("--top-p", type=float, default=1.0, metavar="P",
                        help="choose among the fewest tokens that are so likely (default: 1)")
    parser.add_argument("--repetition-penalty", type=float, default=1.0, metavar="X",
                        help="makes tokens that occurred less likely; 1 for no change (default: 1)")
    parser.add_argument("--seed", type=int, help="of the choices (default: another every time)")
    parser.add_argument("--prefill", type=int, default=64, metavar="N",
                        help="tokens of a prompt that are read at a time; more take more memory "
                             "(default: 64)")
    common.add_load_options(parser)
    add_progress(parser)
    common.add_json(parser)


def execute(options: argparse.Namespace) -> int:
    """Does what the command says; returns its exit code."""
    if options.prompt is None and not options.chat:
        raise InputError("--prompt: expected a text, or --chat")
    if options.max_tokens < 1:
        raise InputError(f"--max-tokens {options.max_tokens}: expected 1 or more")
    tokenizer = Tokenizer(options.tokenizer or Path(options.model).parent)
    sampler = Sampler(options.temperature, options.top_k, options.top_p,
                      options.repetition_penalty, options.seed)
    with progress_of(options) as progress:
        progress.say(f"loading {options.model} ..")
        loaded = Program(options.model, common.device_of(options), common.load_options(options),
                         options.data_path, progress.on_progress)
    with loaded as program:
        session = Session(LanguageModel(program, options.method), chunk=options.prefill)
        writer = _Writer(options, tokenizer, sampler, session)
        if options.chat:
            _converse(options, tokenizer, writer)
        else:
            writer.answer(tokenizer.encode(options.prompt), options.prompt)
        data = {"device": program.device.info.name, "turns": [t.as_dict() for t in writer.turns],
                "memory": program.memory.as_dict()}
        if options.json:
            common.show(options, data, "")
        else:
            sys.stdout.flush()
            print("\n".join(["", *(turn.line() for turn in writer.turns), "",
                             program.memory.table()]), file=sys.stderr)
    return 0


def _converse(options: argparse.Namespace, tokenizer: Tokenizer, writer: _Writer) -> None:
    """Takes turns until standard input ends, or a prompt was given and answered."""
    messages = [{"role": "system", "content": options.system}] if options.system else []
    for said in _turns(options.prompt):
        messages.append({"role": "user", "content": said})
        # The template writes the tokens at the start too.
        answer = writer.answer(tokenizer.encode(tokenizer.chat(messages), special=False))
        messages.append({"role": "assistant", "content": answer})


def _turns(prompt: str | None) -> Iterator[str]:
    """What the user says, turn by turn; a prompt is the first."""
    is_terminal = sys.stdin.isatty()
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


@dataclass(frozen=True)
class _Turn:
    """What an answer took: tokens, and seconds until the first and for the others."""

    text: str
    prompt_tokens: int
    prompt_seconds: float
    tokens: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        return {"text": self.text, "prompt_tokens": self.prompt_tokens,
                "prompt_ms": round(self.prompt_seconds * 1e3, 2), "tokens": self.tokens,
                "ms": round(self.seconds * 1e3, 2)}

    def line(self) -> str:
        text = (f"prompt: {self.prompt_tokens} tokens in {self.prompt_seconds * 1e3:,.0f} ms, "
                f"{self.prompt_tokens / max(self.prompt_seconds, 1e-9):,.1f} a second; ")
        rate = max(self.tokens - 1, 0) / max(self.seconds, 1e-9)
        return f"{text}text: {self.tokens} tokens" + (
            f", {rate:,.1f} a second" if self.tokens > 1 else "")


class _Writer:
    """Answers: continues the text of a session, and shows it as it comes."""

    def __init__(self, options: argparse.Namespace, tokenizer: Tokenizer, sampler: Sampler,
                 session: Session):
        self.options = options
        self.tokenizer = tokenizer
        self.sampler = sampler
        self.session = session
        self.turns: list[_Turn] = []
        self.out: TextIO | None = None if options.json else sys.stdout

    def answer(self, ids: list[int], shown: str = "") -> str:
        """The text that follows these tokens, all that there are so far; Ctrl-C ends it."""
        session = self.session
        same = 0
        while same < min(len(ids), len(session.ids)) and ids[same] == session.ids[same]:
            same += 1
        session.rewind(same)
        session.add(ids[same:])
        unread = len(session.ids) - session.position
        self._show(shown)
        times = [time.perf_counter()]
        pieces: list[str] = []
        try:
            for piece in self.tokenizer.stream(self._tokens(times)):
                pieces.append(piece)
                self._show(piece)
        except KeyboardInterrupt:
            pass  # the text ends here
        self._note(unread, times, pieces)
        self._show("\n")
        return "".join(pieces)

    def _tokens(self, times: list[float]) -> Iterator[int]:
        """The tokens, without the last one where that only says that the text ends."""
        ends = self.session.model.ends | self.tokenizer.ends
        for token in continued(self.session, self.sampler, self.options.max_tokens, ends):
            times.append(time.perf_counter())
            if token not in ends:
                yield token

    def _note(self, unread: int, times: list[float], pieces: list[str]) -> None:
        start, first, *_ = *times, times[-1]
        self.turns.append(_Turn("".join(pieces), unread, first - start, len(times) - 1,
                                times[-1] - first))

    def _show(self, text: str) -> None:
        if self.out is not None and text:
            self.out.write(text)
            self.out.flush()
