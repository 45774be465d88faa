"""Where test programs are, what they run on, how far results are off, and what reaches beyond its
memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dealing import DEPTH, QUICK, STORAGES  # noqa: F401  for tests

MODELS = Path(__file__).parent / "models"
# How skips begin for want of a program; its name follows.
NOT_HERE = "not in VKRT_MODELS: "


def model_folders() -> list[Path]:
    """The programs in the repository and the folders of VKRT_MODELS (a path list).

    A folder that does not exist is an error: its tests would all be skipped for a mistyped name.
    """
    named = [Path(p) for p in os.environ.get("VKRT_MODELS", "").split(os.pathsep) if p]
    for folder in named:
        if not folder.is_dir():
            raise pytest.UsageError(f"VKRT_MODELS names {folder}, which is not a folder")
    return [MODELS, *named]


def find_model(name: str) -> Path | None:
    """Path of `name` (with its suffix) in the first folder that has it."""
    return next((folder / name for folder in model_folders() if (folder / name).is_file()), None)


def need_model(name: str) -> Path:
    """The same, and a skip that the end of the run counts where no folder has it."""
    path = find_model(name)
    if path is None:
        pytest.skip(NOT_HERE + name)
    return path


def relative_l2(result: np.ndarray, expected: np.ndarray) -> float:
    """|result - expected| / |expected|, in float64."""
    expected = expected.astype(np.float64)
    norm = np.linalg.norm(expected)
    return float(np.linalg.norm(result.astype(np.float64) - expected) / (norm or 1.0))


def outside(work: Any) -> list[str]:
    """The operands of a work list that do not lie within their storages, in words."""
    records = [(step, (*step.writes, *step.reads)) for step in work.steps]
    records += [(record, (record.target,)) for record in work.prepacks]
    records += [(record, (record.operand,)) for record in work.states]
    records += [("border", (operand,)) for operand in (*work.inputs, *work.outputs)
                if hasattr(operand, "storage")]
    found = []
    for record, operands in records:
        for operand in operands:
            storage = operand.storage
            if storage.is_image:
                fits = all(side <= most for side, most in zip(operand.grid, storage.extents))
            else:
                fits = 0 <= operand.offset <= storage.nbytes - operand.nbytes
            if not fits:
                found.append(f"{record}: {operand}")
    return found


@contextmanager
def ready_device() -> Iterator[Any]:
    """A device that has what it makes once and keeps: a sampler and a cache of pipelines.

    Devices that several tests use are opened so, and no test finds more of these objects behind it
    than before it.
    """
    import vkrt

    with vkrt.Device.open() as device:
        vkrt.load(MODELS / "mlp.pte", device, storage="texture3d").close()
        yield device


def need_one_memory(device: Any) -> None:
    """A skip on a device with memory of its own: a discrete GPU."""
    if not device.unified:
        pytest.skip("the device has memory of its own")


def need_imports(device: Any) -> None:
    """A skip where the driver says that it imports no host memory for buffers.

    SwiftShader says so, and does: nothing is tried there.
    """
    from vkrt.runtime.map_trial import why_none

    why = why_none(device, maps_files=False)
    if why:
        pytest.skip(why)


@contextmanager
def sorting_on_host() -> Iterator[None]:
    """Sorts and running sums of any size are done by numpy, in methods that are loaded within."""
    from vkrt.ops import registry

    names = ("aten::cumsum.out", "aten::sort.values")
    before = {name: registry.kernels()[name] for name in names}
    registry._KERNELS.update({name: replace(kernel, suits=lambda _args: False)
                              for name, kernel in before.items()})
    try:
        yield
    finally:
        registry._KERNELS.update(before)


def run_python(code: str, *arguments: str, **environment: str) -> str:
    """What a new interpreter prints that finds the tests' modules; its failure fails the test."""
    path = os.pathsep.join((str(MODELS.parent), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), *arguments], text=True,
                          env={**os.environ, "PYTHONPATH": path, **environment}, timeout=300,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same_bits(outputs, others) -> None:
    """Fails unless two lists of outputs are the same bits."""
    for a, b in zip(outputs, others, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def as_input(numbers: np.ndarray, info: Any) -> np.ndarray:
    """Numbers in the dtype of an input; whole ones are 0 or more, as they may be indices."""
    return (numbers if np.dtype(info.dtype).kind == "f" else np.abs(numbers)).astype(info.dtype)


def inputs_of(program) -> list[np.ndarray]:
    """Inputs of the largest sizes: the same numbers for the same program."""
    random = np.random.default_rng(3)
    return [as_input(random.standard_normal(i.sizes), i) for i in program.metadata().inputs]


def damaged(good: bytes, how: str) -> bytes:
    """A file's content, damaged.

    Args:
        how: "length" (cut off), "empty", "flip" (in the last byte), "header" (in the first), or the
            number of a byte.
    """
    bad = bytearray(good)
    if how == "length":
        del bad[-3:]
    elif how == "empty":
        bad.clear()
    else:
        bad[{"flip": -1, "header": 0}[how] if how in ("flip", "header") else int(how)] ^= 0xFF
    return bytes(bad)


def write_tokenizer(folder: Path) -> Path:
    """A tokenizer of 61 words "w0" to "w60", of which "w2" ends a turn, and a chat template beside
    it."""
    tokenizers = pytest.importorskip("tokenizers")
    words = {f"w{n}": n for n in range(61)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.decoder = tokenizers.decoders.WordPiece(prefix="##", cleanup=False)
    made.save(str(folder / "tokenizer.json"))
    template = ("{% for m in messages %}{% if m.role not in ['user', 'assistant', 'system'] %}"
                "{{ raise_exception('no such role') }}{% endif %}w1 {{ m.content }} "
                "{{ eos_token }} {% endfor %}w1")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": {"content": "w2"}, "chat_template": template}))
    return folder / "tokenizer.json"


# Characters that a JSON text of small words needs; there are as many tokens as in `llama.pte`.
LETTERS = '{}[]":,.- 0123456789' + "abcdefghijklmnopqrstuvwxyz" + "ABCDEFGHIJK"


def write_letters(folder: Path) -> Path:
    """A tokenizer of 61 tokens: four without a text, 2 and 3 end one, and 57 characters."""
    tokenizers = pytest.importorskip("tokenizers")
    special = ["<a>", "<b>", "<end>", "<over>"]
    words = {name: n for n, name in enumerate(special)}
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for letter in LETTERS:
        words[level.pre_tokenize_str(letter)[0][0]] = len(words)
    assert len(words) == 61
    made = tokenizers.Tokenizer(tokenizers.models.BPE(words, []))
    made.pre_tokenizer = level
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(special)
    made.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<end>"}))
    return folder / "tokenizer.json"
