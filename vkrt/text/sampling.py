"""Sampling: which token comes next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vkrt.errors import InputError


class Sampler:
    """Chooses tokens by their logits; called with logits and the tokens so far.

    The steps are those of llama.cpp, in its order: repetition penalty, top-k, top-p, min-p,
    temperature.

    Args:
        temperature: divides the logits of the tokens that are left; 0 takes the most likely token.
        top_k: chooses among so many of the most likely tokens; 0 for all.
        top_p: chooses among the fewest most likely tokens whose probabilities add up to this.
        repetition_penalty: divides positive logits of tokens that occurred, and multiplies negative
            ones; 1 for no penalty.
        seed: of the random numbers; None takes another one every time.
        min_p: chooses among tokens at least `min_p` times as likely as the most likely one.
        repeat_last_n: the last tokens that the penalty looks at; 0 for none, -1 for all.
    """

    def __init__(self, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
                 repetition_penalty: float = 1.0, seed: int | None = None, min_p: float = 0.0,
                 repeat_last_n: int = 64):
        for name, value, fits in (("temperature", temperature, 0 <= temperature < np.inf),
                                  ("top_k", top_k, top_k >= 0), ("top_p", top_p, 0 < top_p <= 1),
                                  ("repetition_penalty", repetition_penalty,
                                   0 < repetition_penalty < np.inf),
                                  ("seed", seed, seed is None or seed >= 0),
                                  ("min_p", min_p, 0 <= min_p <= 1),
                                  ("repeat_last_n", repeat_last_n, repeat_last_n >= -1)):
            if not fits:
                raise InputError(f"{name}={value}: out of range; see vkrt.Sampler")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.min_p = min_p
        self.repetition_penalty = repetition_penalty
        self.repeat_last_n = repeat_last_n
        self._random = np.random.default_rng(seed)

    def __call__(self, logits: np.ndarray, ids: Sequence[int]) -> int:
        logits = self._penalized(logits, ids)
        if self.temperature == 0:
            return int(np.argmax(logits))
        # The most likely first. Tokens with equal logits keep their order, so that a seed decides.
        order = np.argsort(-logits, kind="stable")
        if self.top_k:
            order = order[:self.top_k]
        scores = logits[order].astype(np.float64) - logits[order[0]]
        likely = np.exp(scores)
        count = len(order)
        if self.top_p < 1:
            count = int(np.searchsorted(likely.cumsum(), self.top_p * likely.sum())) + 1
        # `likely` is 1 for the most likely token.
        count = min(count, int(np.count_nonzero(likely >= self.min_p)))
        chances = np.exp(scores[:count] / self.temperature)
        return int(self._random.choice(order[:count], p=chances / chances.sum()))

    def _penalized(self, logits: np.ndarray, ids: Sequence[int]) -> np.ndarray:
        seen = ids if self.repeat_last_n < 0 else ids[max(0, len(ids) - self.repeat_last_n):]
        if self.repetition_penalty == 1 or not seen:
            return logits
        tokens = np.unique(np.asarray(seen, np.int64))
        result = logits.copy()
        values = logits[tokens]
        result[tokens] = np.where(values > 0, values / self.repetition_penalty,
                                  values * self.repetition_penalty)
        return result
