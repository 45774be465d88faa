"""Sessions in files: the tokens of a text and what the model's caches hold of it."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vkrt.errors import InputError
from vkrt.files.replaceable import check_replaceable, replacing
from vkrt.text.model import Session

# The first array in the file, which says what it is and in which version
HEADER = "vkrt_session"
VERSION = 1
STATE = "state."
# A new file is the user's alone: it has a conversation.
MODE = 0o600


def check_session_file(path: str | os.PathLike[str], option: str = "") -> None:
    """Refuses a file that is not a session; see `vkrt.files.replaceable.check_replaceable`."""
    check_replaceable(path, lambda head: head[:2] == b"PK" and HEADER.encode() in head[30:60],
                      "a saved session", option)


def save_session(path: str | os.PathLike[str], session: Session,
                 messages: Sequence[Mapping[str, str]] = ()) -> None:
    """Saves a session as an .npz file, with its conversation if it has one.

    Raises:
        InputError: another kind of file is there.
        OSError: the file cannot be written; the one that was there is left as it is.
    """
    check_session_file(path)
    values: dict[str, Any] = session.state.save() if session.model.has_cache else {}
    with replacing(path, MODE) as file:
        np.savez(file, **{
            HEADER: np.array([VERSION, session.position]), "ids": np.array(session.ids),
            "messages": np.array(json.dumps(list(messages))),
            **{STATE + key: value for key, value in values.items()}})


def load_session(path: str | os.PathLike[str], session: Session) -> list[dict[str, str]]:
    """Restores a session that `save_session` saved; returns its conversation, which may be empty.

    Raises:
        OSError: the file cannot be read.
        InputError: it is no saved session, or one of another model.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            version, position = map(int, file[HEADER])
            if version != VERSION:
                raise InputError(f"{path}: a session of version {version}; this vkrt reads "
                                 f"version {VERSION}")
            ids = [int(token) for token in file["ids"]]
            messages = json.loads(str(file["messages"]))
            values = {key[len(STATE):]: file[key] for key in file.files if key.startswith(STATE)}
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: not a session that vkrt has saved ({error})") from error
    try:
        session.restore(ids, position, values)
    except InputError as error:
        raise InputError(f"{path}: a session of another model: {error}") from error
    return messages
