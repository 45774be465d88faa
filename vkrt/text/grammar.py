"""Grammars that a text keeps to: JSON schemas and GBNF, by the package `llguidance`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from vkrt.errors import InputError, missing_package
from vkrt.text.generate import ChooseToken
from vkrt.text.model import LanguageModel
from vkrt.text.tokenizer import Tokenizer


class Grammars:
    """Makes the choices of a model's tokens keep to grammars.

    Reading the tokenizer takes a part of a second, so one object serves many texts.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer):
        self._model, self._tokenizer = model, tokenizer

    def constrained(self, choose: ChooseToken, kind: Any, text: str) -> ChooseToken:
        """A `ChooseToken` for one text, which chooses only tokens that the grammar allows next.

        Args:
            choose: chooses among these tokens; the logits of all others are -inf.
            kind: "json_schema" or "gbnf" (grammars as llama.cpp has them, from the rule "root").
            text: the schema or the grammar.

        Raises:
            InputError: the text is no such grammar or too complex, or the tokens allow no grammar.
            UnsupportedError: the tokenizer is not a `tokenizer.json`.
            PackageError: the package `llguidance` is not installed.
        """
        tokens = self._tokens
        from llguidance import LLMatcher, grammar_from

        try:
            matcher = LLMatcher(tokens, grammar_from(kind, text), log_level=0)
        except ValueError as error:
            raise InputError(f"{kind}: {error}") from error
        _check(matcher, kind)

        def choose_allowed(logits: np.ndarray, ids: Sequence[int]) -> int:
            allowed = np.frombuffer(matcher.compute_logit_bias(), np.uint8)[:len(logits)] != 0
            _check(matcher, kind)
            token = choose(np.where(allowed, logits, np.float32(-np.inf)), ids)
            matcher.consume_token(token)
            return token

        return choose_allowed

    @cached_property
    def _tokens(self) -> Any:
        try:
            from llguidance import LLTokenizer
        except ImportError as error:
            raise missing_package("llguidance", "a grammar", "grammar") from error
        ends = sorted(self._model.ends | self._tokenizer.ends)
        if not ends:
            raise InputError("neither the program nor the tokenizer's files name a token that ends "
                             "a text, which a grammar needs")
        try:
            return LLTokenizer(self._tokenizer.as_json(), n_vocab=self._model.vocabulary,
                               eos_token=ends)
        except ValueError as error:
            raise InputError(f"grammars over these tokens: {error}") from error


def _check(matcher: Any, kind: str) -> None:
    if matcher.is_error():
        raise InputError(f"{kind}: {matcher.get_error().partition('<state>')[0].strip()}")
