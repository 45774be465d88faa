"""Tokenizers: text to tokens and back, by what a model's files say.

`tokenizer.json` is read by the package `tokenizers`, `tokenizer.model` by `sentencepiece`. Beside
them may lie `tokenizer_config.json`, `generation_config.json` and `chat_template.jinja`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

from vkrt.errors import InputError, UnsupportedError, VkrtError, missing_package

# Names of tokens that end a text or a turn, where no file beside the tokenizer says it
ENDS = ("</s>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<eos>",
        "<end_of_turn>")


class Tokenizer:
    """The tokenizer of a model, and what the files beside it say.

    Args:
        path: of `tokenizer.json` or a sentencepiece model, or of the folder that has one.

    Attributes:
        ends: ids of the tokens that end a text or a turn.

    Raises:
        OSError: a file cannot be read.
        InputError: the file is not a tokenizer.
        PackageError: the package that reads it is not installed.
    """

    def __init__(self, path: str | os.PathLike[str]):
        file = _file_of(Path(path))
        self._codec = _Json(file) if file.suffix == ".json" else _SentencePiece(file)
        self._folder = file.parent
        self._config = _json_of(self._folder / "tokenizer_config.json")
        self.ends = frozenset(self._find_ends())

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The tokens of a text; if `special`, with those that the model wants at its start.

        Raises:
            InputError: the text has surrogates, which stand for bytes that are no text or are half
                a character.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"not a text: {error}") from error
        return self._codec.encode(text, special)

    def as_json(self) -> str:
        """The content of `tokenizer.json`, without what the package leaves out.

        Raises:
            UnsupportedError: it is a sentencepiece model.
        """
        return self._codec.as_json()

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens; special ones are left out."""
        return self._codec.decode(ids)

    def stream(self, ids: Iterator[int]) -> Iterator[str]:
        """The text of tokens as it comes, in pieces of whole characters."""
        text = TextStream(self)
        for token in ids:
            if piece := text.add(token):
                yield piece
        if piece := text.end():
            yield piece

    def chat(self, messages: Sequence[Mapping[str, str]]) -> str:
        """A conversation as the model has learned to read it, up to the model's next turn.

        Args:
            messages: each with "role" ("system", "user", "assistant") and "content".

        Raises:
            InputError: there is no template beside the tokenizer, or it is invalid, or it refuses
                the messages.
            PackageError: `jinja2` is missing.
        """
        try:
            return self._template.render(
                messages=list(messages), tools=None, documents=None, add_generation_prompt=True,
                **self._special_names())
        except VkrtError:
            raise
        except Exception as error:  # a template's code, in which anything may go wrong
            raise InputError(f"{self._folder}: the chat template says: {error}") from error

    @cached_property
    def _template(self) -> Any:
        text = self._template_text()
        if text is None:
            raise InputError(
                f"{self._folder}: no chat template; expected chat_template.jinja beside the "
                "tokenizer, or chat_template in tokenizer_config.json")
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise missing_package("jinja2", "text", "text") from error

        def refuse(message: str) -> NoReturn:
            raise TemplateError(message)

        # What templates may use: the same that transformers offers them.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                    extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = partial(json.dumps, ensure_ascii=False)
        environment.globals |= {"raise_exception": refuse, "strftime_now": time.strftime}
        return environment.from_string(text)

    def _template_text(self) -> str | None:
        file = self._folder / "chat_template.jinja"
        if file.exists():
            return file.read_text(encoding="utf-8")
        found = self._config.get("chat_template")
        if isinstance(found, list):  # several by name
            found = next((entry.get("template") for entry in found
                          if entry.get("name") == "default"), None)
        return found if isinstance(found, str) else None

    def _special_names(self) -> dict[str, str]:
        return {key: _content(value) for key, value in self._config.items()
                if key.endswith("_token") and _content(value)}

    def _find_ends(self) -> Iterator[int]:
        named = _content(self._config.get("eos_token"))
        ids = _json_of(self._folder / "generation_config.json").get("eos_token_id")
        found = [token for token in (ids if isinstance(ids, list) else [ids])
                 if isinstance(token, int)]
        yield from found
        for name in (named,) if named else () if found else ENDS:
            token = self._codec.token(name)
            if token is not None:
                yield token


class TextStream:
    """The text of tokens as they come, in pieces of whole characters.

    Args:
        before: tokens before them, whose text is there already.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = ()):
        self._decode = tokenizer.decode
        # The last piece is decoded again: the text of a token depends on the tokens before.
        self._last = list(before)
        self._new: list[int] = []

    def add(self, token: int) -> str:
        """What one more token adds; "" in the middle of a character."""
        self._new.append(token)
        before, text = self._decode(self._last), self._decode(self._last + self._new)
        # The bytes of a character may be several tokens: till the last, U+FFFD stands in its place.
        if len(text) <= len(before) or text.endswith("\ufffd"):
            return ""
        self._last, self._new = self._new, []
        return text[len(before):]

    def end(self) -> str:
        """The rest of a text that ends in the middle of a character."""
        return self._decode(self._last + self._new)[len(self._decode(self._last)):]


def _content(value: Any) -> str:
    """The text of a special token, which is a string or an object with one."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _file_of(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in ("tokenizer.json", "tokenizer.model"):
        if (path / name).exists():
            return path / name
    raise InputError(f"{path}: neither tokenizer.json nor tokenizer.model is there")


def _json_of(path: Path) -> dict[str, Any]:
    """An object in a file beside the tokenizer; an empty one where there is no file."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    return found if isinstance(found, dict) else {}


class _Json:
    """`tokenizer.json`."""

    def __init__(self, path: Path):
        try:
            from tokenizers import Tokenizer as Reader
        except ImportError as error:
            raise missing_package("tokenizers", "text", "text") from error
        text = path.read_text(encoding="utf-8")
        try:
            self._reader = Reader.from_str(text)
        except Exception as error:  # the package raises nothing narrower
            raise InputError(f"{path}: not a tokenizer ({error})") from error

    def as_json(self) -> str:
        return self._reader.to_str()

    def encode(self, text: str, special: bool) -> list[int]:
        return self._reader.encode(text, add_special_tokens=special).ids

    def decode(self, ids: Sequence[int]) -> str:
        return self._reader.decode(list(ids))

    def token(self, name: str) -> int | None:
        return self._reader.token_to_id(name)


class _SentencePiece:
    """A sentencepiece model."""

    def __init__(self, path: Path):
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise missing_package("sentencepiece", "text", "text") from error
        data = path.read_bytes()
        self._reader = SentencePieceProcessor()
        try:
            self._reader.LoadFromSerializedProto(data)
        except RuntimeError as error:
            raise InputError(f"{path}: not a tokenizer ({error})") from error

    def as_json(self) -> str:
        raise UnsupportedError("this needs the model's tokenizer.json, not a sentencepiece model")

    def encode(self, text: str, special: bool) -> list[int]:
        return self._reader.EncodeAsIds(text) if not special else [
            *((self._reader.bos_id(),) if self._reader.bos_id() >= 0 else ()),
            *self._reader.EncodeAsIds(text)]

    def decode(self, ids: Sequence[int]) -> str:
        return self._reader.DecodeIds(list(ids))

    def token(self, name: str) -> int | None:
        found = self._reader.PieceToId(name)
        return found if found != self._reader.unk_id() else None
