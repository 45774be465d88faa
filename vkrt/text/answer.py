"""An answer: the text that follows a prompt, in pieces as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from vkrt.text.generate import ChooseToken, continued
from vkrt.text.model import Session
from vkrt.text.tokenizer import TextStream, Tokenizer

# So many last tokens of a prompt are more than enough to decide the text of the next token
CONTEXT = 8


class Answer:
    """The text that follows the tokens of a session; iterating over it makes it, once.

    Args:
        session: a text that ends with the prompt.
        stop: strings before which the text ends.
        continues: whether the text goes on where the prompt ends, which decides about a space
            between them. Else it stands by itself, as a turn of a conversation does.

    Attributes:
        prompt_tokens: tokens of the session before the answer.
        cached_tokens: how many of the prompt's tokens the model had read before.
        tokens: how many were chosen, the one that ends the text included.
        reason: why the text ended: "stop" (by a token or a string), "length" (`max_tokens`, or the
            model's context is full), or "" if it has not ended or somebody stopped iterating.
        prompt_seconds: until the first token.
        seconds: for the other tokens.
    """

    def __init__(self, session: Session, tokenizer: Tokenizer, choose: ChooseToken, max_tokens: int,
                 stop: Sequence[str] = (), continues: bool = False):
        self.prompt_tokens = len(session.ids)
        self.cached_tokens = session.position
        self.tokens = 0
        self.reason = ""
        self.prompt_seconds = self.seconds = 0.0
        self._session = session
        self._ends = session.model.ends | tokenizer.ends
        self._text = TextStream(tokenizer, session.ids[-CONTEXT:] if continues else ())
        self._stops = _StopStrings(stop)
        self._choose, self._max_tokens = choose, max_tokens

    @property
    def rate(self) -> float | None:
        """Tokens per second after the first one; None if no time was measured."""
        return (self.tokens - 1) / self.seconds if self.tokens > 1 and self.seconds > 0 else None

    @property
    def prompt_rate(self) -> float | None:
        """Tokens of the prompt read per second; None if no time was measured."""
        read = self.prompt_tokens - self.cached_tokens
        return read / self.prompt_seconds if self.prompt_seconds > 0 else None

    def __iter__(self) -> Iterator[str]:
        """Yields, after each run of the model, the text that it adds, which may be ""."""
        start = perf_counter()
        while self._session.unread:
            self._session.read()
            yield ""
        for token in continued(self._session, self._choose, self._max_tokens, self._ends):
            now = perf_counter()
            if not self.tokens:
                self.prompt_seconds = now - start
            self.tokens += 1
            self.seconds = now - start - self.prompt_seconds
            if token in self._ends:
                self.reason = "stop"
                break
            yield self._stops.add(self._text.add(token))
            if self._stops.found:
                self.reason = "stop"
                return
        rest = self._stops.add(self._text.end())
        self.reason = self.reason or ("stop" if self._stops.found else "length")
        yield rest + self._stops.held


class _StopStrings:
    """Holds text back as long as it may be the beginning of a string that ends the text.

    Attributes:
        held: what is held back.
        found: whether there was such a string. The text ends before the first one.
    """

    def __init__(self, strings: Sequence[str]):
        self._strings = strings
        self.held = ""
        self.found = False

    def add(self, piece: str) -> str:
        """The text that can be shown once this piece has come."""
        text = self.held + piece
        first = min((at for string in self._strings if (at := text.find(string)) >= 0), default=-1)
        if first >= 0:
            self.found, self.held = True, ""
            return text[:first]
        kept = max((count for string in self._strings
                    for count in range(1, min(len(string), len(text) + 1))
                    if text.endswith(string[:count])), default=0)
        self.held = text[len(text) - kept:]
        return text[:len(text) - kept]
