"""Language models as exporters write them.

The method `forward` takes tokens, int64 [1, T], and with a cache also their position, int64 [1] (of
the first token) or [T] (of each). It gives logits of the last token, [1, V], or of all tokens, [1,
T, V]. Methods without inputs give what a caller has to know ("get_max_seq_len").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkrt.errors import InputError, UnsupportedError
from vkrt.method.states import State
from vkrt.program.program import Program
from vkrt.text.shapes import CHUNK, is_text, sizes_of

# Methods that say how many tokens a cache holds; the first one that exists counts
CONTEXT = ("get_max_context_len", "get_max_seq_len")
END = ("get_eos_ids", "get_eos_id")
# The most tokens of a text, if neither the program nor the rows of a state limit them
UNLIMITED = 1 << 31


class LanguageModel:
    """A program with a method that turns tokens to logits.

    Attributes:
        has_cache: whether it keeps what it has read; then it takes a position with the tokens.
        longest: the most tokens of one run.
        counts: the numbers of tokens that a run can take, ascending; None for all up to `longest`.
        context: the most tokens of a text.
        ends: ids of the tokens that end a text, by the program; may be empty.
        can_rewind: whether it keeps nothing but rows for the places of the text, so that it can go
            on from an earlier place. States of recurrent layers, and caches with fewer rows than
            the context, belong to one place only.

    Raises:
        InputError: the method does not take tokens and give logits.
        UnsupportedError: it always takes the same number of tokens and has no cache.
    """

    def __init__(self, program: Program, method: str = "forward"):
        self.program = program
        self.method = method
        metadata = program.metadata(method)
        if not is_text(metadata):
            raise InputError(f"method '{method}': expected tokens int64[1,T], with a cache also a "
                             "position int64[1], and logits as the first output, got "
                             f"{metadata!r}")
        tokens = metadata.inputs[0]
        self.has_cache = len(metadata.inputs) == 2
        self.longest = tokens.sizes[1]
        is_dynamic = 1 in tokens.dynamic_dims
        if not self.has_cache and not is_dynamic:
            raise UnsupportedError(f"method '{method}' always takes {self.longest} tokens and "
                                   "keeps nothing; export it with a cache, or with a dynamic "
                                   "length")
        self._positions = self.has_cache and metadata.inputs[1].sizes[0]
        self.vocabulary = metadata.outputs[0].sizes[-1]
        self.ends = frozenset(int(end) for name in END for end in program.constants.get(name, ()))
        loaded = program.load_method(method)
        self.counts: tuple[int, ...] | None = None
        if loaded.shapes is not None:
            self.counts = tuple(sorted({shape.sizes[0][1] for shape in loaded.shapes}))
        elif not is_dynamic:
            self.counts = (self.longest,)
        places = [state.places for state in loaded.states]
        self.context = self._longest_text(places)
        self.can_rewind = all(count >= self.context for count in places)

    def _longest_text(self, places: Sequence[int]) -> int:
        """The most tokens of a text: what the program says, and what `places` of states hold."""
        constants = self.program.constants
        said = next((int(constants[name][0]) for name in CONTEXT if constants.get(name)), None)
        largest = self.program.load_method(self.method).largest
        most = [limit.high for limit in largest.limits]
        if most or not self.has_cache:
            held = largest.graph.inputs[0].sizes[1] + min(most, default=0)
            return min(said or held, held)
        return said or min(filter(None, places), default=UNLIMITED)

    def peak_of(self, chunk: int) -> int:
        """The most bytes on the device where at most `chunk` tokens are read in one run, with the
        states that there are now."""
        if not self.has_cache:
            return self.program.memory.planned_peak
        method = self.program.load_method(self.method)
        count = self.next_count(UNLIMITED, min(chunk, self.longest))
        return method.peak_at(sizes_of(method.metadata, count))

    def next_count(self, left: int, most: int) -> int:
        """How many of the `left` tokens the next run takes: `most`, if the program can take so few.
        Fewer are a power of two, so that a few shapes serve prompts of any length.

        Raises:
            UnsupportedError: the program takes more tokens at a time than are left.
        """
        if self.counts is None:
            return most if left >= most else 1 << left.bit_length() - 1
        fitting = [count for count in self.counts if count <= left]
        if not fitting:
            counts = " or ".join(map(str, self.counts))
            raise UnsupportedError(f"the program takes {counts} tokens at a time, and {left} are "
                                   "left; export it with a dynamic length, and compile it for "
                                   "single tokens, too")
        return max((count for count in fitting if count <= most), default=fitting[0])

    def run(self, ids: list[int], position: int, state: State | None = None) -> np.ndarray:
        """Logits, float32 [V], of the token after these (`longest` at most), the first of which is
        at `position`."""
        tokens = np.array([ids], np.int64)
        inputs: list[Any] = [tokens]
        if self.has_cache:
            count = len(ids) if self._positions != 1 else 1
            inputs.append(np.arange(position, position + count, dtype=np.int64))
        logits = self.program.run(*inputs, method=self.method, state=state)[0]
        return logits.reshape(-1, self.vocabulary)[-1].astype(np.float32, copy=False)


class Session:
    """A text in the making: the tokens that a model has read, over one state.

    Args:
        state: one of `Program.new_state`; by default the method's own (reset it before).
        chunk: the most tokens of a prompt that are read in one run. A long chunk takes more memory.

    Attributes:
        ids: the tokens so far; the model has read the first `position` of them.
    """

    def __init__(self, model: LanguageModel, state: State | None = None, chunk: int = CHUNK):
        if chunk < 1:
            raise InputError(f"chunk={chunk}: expected 1 or more tokens at a time")
        self.model = model
        self.state = state or model.program.load_method(model.method).state
        self.chunk = min(chunk, model.longest)
        self.ids: list[int] = []
        self.position = 0
        self._logits: np.ndarray | None = None  # of the last token that was read

    @property
    def room(self) -> int:
        return self.model.context - len(self.ids)

    def add(self, ids: list[int]) -> None:
        """Appends tokens, to be read at the next `logits` (InputError: there is no room for so
        many, or one is not a token of the model)."""
        if len(ids) > self.room:
            raise InputError(f"{len(ids)} tokens behind {len(self.ids)} others: the model has room "
                             f"for {self.model.context} altogether")
        wrong = [i for i in ids if not 0 <= i < self.model.vocabulary]
        if wrong:
            raise InputError(f"token {wrong[0]}: the model has {self.model.vocabulary}; is the "
                             "tokenizer another model's?")
        self.ids += ids

    def rewind(self, count: int) -> None:
        """Forgets all but the first `count` tokens. What a cache holds beyond these is overwritten
        before it is read. A model that cannot rewind reads the first tokens anew."""
        del self.ids[count:]
        if self.model.can_rewind:
            # The logits of the last one are needed again.
            self.position = max(0, min(self.position, count - 1))
        elif self.position > count:
            self._begin()

    def _begin(self) -> None:
        """Makes all tokens unread."""
        self.state.reset()
        self.position = 0

    def continue_with(self, ids: list[int]) -> None:
        """Makes these the tokens of the text; the beginning that both have in common is kept. If
        `add` refuses them, the text is empty."""
        same = common_prefix(self.ids, ids)
        self.rewind(same)
        try:
            self.add(ids[same:])
        except InputError:
            self.rewind(0)
            raise

    def restore(self, ids: list[int], position: int, values: Mapping[str, np.ndarray]) -> None:
        """Makes this another text, of which the model has read the first `position` tokens; its
        caches hold `values` (InputError: the tokens or values are not this model's)."""
        self.rewind(0)
        self.add(ids)
        if self.model.has_cache:
            self.state.load(values)
            if self.model.can_rewind:
                # The logits of the last one are needed again.
                self.position = max(0, min(position, len(ids) - 1))
            elif position < len(ids):
                self.position = position
            else:
                self._begin()

    @property
    def unread(self) -> int:
        """How many tokens the model has not read yet."""
        return len(self.ids) - self.position

    def read(self) -> None:
        """Reads some of the tokens that were added, in one run."""
        if not self.model.has_cache:
            self._logits = self.model.run(self.ids, 0, self.state)
            self.position = len(self.ids)
            return
        count = self.model.next_count(self.unread, self.chunk)
        self._logits = self.model.run(self.ids[self.position:self.position + count], self.position,
                                      self.state)
        self.position += count

    def logits(self) -> np.ndarray:
        """Reads the tokens that were added; returns logits, float32 [V], of the next token
        (InputError: there are no tokens)."""
        if not self.ids:
            raise InputError("a text begins with one token at least")
        while self.unread:
            self.read()
        assert self._logits is not None
        return self._logits


def common_prefix(ids: Sequence[int], others: Sequence[int]) -> int:
    """How many equal tokens two texts begin with."""
    return next((n for n, (a, b) in enumerate(zip(ids, others)) if a != b),
                min(len(ids), len(others)))
