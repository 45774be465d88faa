"""Conversations: the states of a language model in which texts are made."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from time import monotonic

from vkrt.errors import VkrtError
from vkrt.program.program import Program
from vkrt.text.answer import Answer
from vkrt.text.generate import ChooseToken
from vkrt.text.model import LanguageModel, Session, common_prefix
from vkrt.text.tokenizer import Tokenizer


class Conversations:
    """Several texts at a time over one set of weights, in `count` states with caches of their own.
    One thread uses them.

    Attributes:
        totals: the figures of all answers so far, by name.
    """

    def __init__(self, program: Program, method: str, tokenizer: Tokenizer, count: int,
                 chunk: int):
        self.model = LanguageModel(program, method)
        self.tokenizer = tokenizer
        # The first state is the method's own. A model without caches keeps nothing.
        states = [program.new_state(method) if n and self.model.has_cache else None
                  for n in range(count)]
        # Sessions in which no answer is made now, the most recently used one at the end
        self._free = [Session(self.model, state, chunk) for state in states]
        self.totals = dict.fromkeys(("prompt_tokens", "cached_tokens", "tokens", "prompt_seconds",
                                     "seconds"), 0.0)

    def answer(self, ids: list[int], choose: ChooseToken, max_tokens: int, stop: Sequence[str],
               deadline: float, continues: bool) -> Generator[Answer | str, None, None]:
        """The steps of an answer to the prompt `ids`: yields the `Answer`, which gets figures, then
        pieces of text, until `deadline` by `time.monotonic`."""
        session = self._take(ids)
        answer = None
        try:
            session.continue_with(ids)
            answer = Answer(session, self.tokenizer, choose, max_tokens, stop, continues)
            yield answer
            for piece in answer:
                yield piece
                if monotonic() > deadline:
                    answer.reason = answer.reason or "length"
                    return
        except VkrtError:
            # The run may have left the state half changed.
            session.rewind(0)
            if self.model.has_cache:
                with suppress(VkrtError):
                    session.state.reset()
            raise
        finally:
            self._free.append(session)
            for name in self.totals if answer is not None else ():
                self.totals[name] += getattr(answer, name)

    def _take(self, ids: list[int]) -> Session:
        """The session that has the longest beginning in common with the prompt, if that is at least
        half of the prompt; else the least recently used one."""
        best = max(self._free, key=lambda session: common_prefix(session.ids, ids))
        if 2 * common_prefix(best.ids, ids) < len(ids):
            best = self._free[0]
        self._free.remove(best)
        return best
