"""Sampling: which token comes next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vkrt.errors import InputError


class Sampler:
    """Chooses tokens by their logits; called with logits and the tokens so far.

    Args:
        temperature: by which logits are divided; 0 takes the most likely token.
        top_k: of so many most likely tokens one is chosen; 0 for all.
        top_p: of the fewest most likely tokens whose probabilities add up to this.
        repetition_penalty: by which the logits of tokens that occurred are divided where positive,
            multiplied where negative; 1 for none.
        seed: of the random numbers; None takes another one every time.
    """

    def __init__(self, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
                 repetition_penalty: float = 1.0, seed: int | None = None):
        for name, value, fits in (("temperature", temperature, temperature >= 0),
                                  ("top_k", top_k, top_k >= 0), ("top_p", top_p, 0 < top_p <= 1),
                                  ("repetition_penalty", repetition_penalty,
                                   repetition_penalty > 0),
                                  ("seed", seed, seed is None or seed >= 0)):
            if not fits:
                raise InputError(f"{name}={value}: out of range; see vkrt.Sampler")
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.repetition_penalty = repetition_penalty
        self._random = np.random.default_rng(seed)

    def __call__(self, logits: np.ndarray, ids: Sequence[int]) -> int:
        logits = self._penalized(logits, ids)
        if self.temperature == 0:
            return int(np.argmax(logits))
        # The most likely first; those of equal logits in their order, so that a seed decides.
        order = np.argsort(-logits, kind="stable")
        if self.top_k:
            order = order[:self.top_k]
        likely = np.exp((logits[order].astype(np.float64) - logits[order[0]]) / self.temperature)
        likely /= likely.sum()
        if self.top_p < 1:
            count = int(np.searchsorted(likely.cumsum(), self.top_p)) + 1
            order, likely = order[:count], likely[:count]
            likely /= likely.sum()
        return int(self._random.choice(order, p=likely))

    def _penalized(self, logits: np.ndarray, ids: Sequence[int]) -> np.ndarray:
        if self.repetition_penalty == 1 or not ids:
            return logits
        seen = np.unique(np.asarray(ids, np.int64))
        result = logits.copy()
        values = logits[seen]
        result[seen] = np.where(values > 0, values / self.repetition_penalty,
                                values * self.repetition_penalty)
        return result
