"""Generating: token after token until the text ends."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np

from vkrt.errors import InputError
from vkrt.method.states import State
from vkrt.program.program import Program
from vkrt.text.model import LanguageModel, Session
from vkrt.text.sampling import Sampler
from vkrt.text.shapes import CHUNK

# Gets logits, float32 [V], and the tokens so far; returns the next token
ChooseToken = Callable[[np.ndarray, Sequence[int]], int]


def continued(session: Session, choose: ChooseToken, max_tokens: int,
              ends: Container[int]) -> Iterator[int]:
    """Yields the tokens that follow those of a session, and adds them to it.

    Ends after a token of `ends`, after `max_tokens`, or where the model has no room for more.
    """
    for _ in range(max_tokens):
        chosen = choose(session.logits(), session.ids)
        has_room = session.room > 0
        if has_room:
            session.add([chosen])
        yield chosen
        if chosen in ends or not has_room:
            return


def generate(program: Program, ids: Sequence[int], *, max_tokens: int = 256,
             sampler: ChooseToken | None = None, ends: Container[int] | None = None,
             state: State | None = None, method: str = "forward", chunk: int = CHUNK
             ) -> Iterator[int]:
    """Yields the tokens with which a language model continues a text.

    The model's cache is reset at the start. Stopping early is fine: nothing runs ahead.

    Args:
        program: a loaded program with a language model, see `vkrt.text.model`.
        ids: the tokens of the prompt, at least one.
        max_tokens: at most so many are yielded.
        sampler: gets the logits, float32 [V], and all tokens so far, and returns the next one; by
            default the most likely one. `vkrt.Sampler` makes others.
        ends: tokens that end the text, and are yielded too; by default the program's own.
        state: one of `Program.new_state`; by default the method's own.
        method: of the program.
        chunk: the most tokens of the prompt that are read in one run: more take more memory.

    Raises:
        InputError: the prompt is empty or longer than the model's context, or the program is no
            language model.
    """
    model = LanguageModel(program, method)
    if max_tokens < 1:
        raise InputError(f"max_tokens={max_tokens}: expected 1 or more")
    session = Session(model, state, chunk)
    if not ids:
        raise InputError("the prompt has no tokens; expected at least one")
    session.add(list(map(int, ids)))
    if model.has_cache:
        session.state.reset()
    return continued(session, sampler or Sampler(), max_tokens,
                     model.ends if ends is None else ends)
