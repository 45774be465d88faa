"""Where test programs are, what they run on, how far results are off, what fails when a test wants
it, and what reaches beyond its memory."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
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


def path_of(program: str | Path) -> Path:
    """A program's path, by itself or by its name in tests/models."""
    return MODELS / f"{program}.pte" if isinstance(program, str) else program


def write_arrays(path: Path, arrays: Sequence[Any]) -> Path:
    """A file with the bytes of arrays, one behind the other."""
    path.write_bytes(b"".join(np.asarray(array).tobytes() for array in arrays))
    return path


def numbered(arrays: Mapping[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    """The arrays of an archive that are called `prefix` and 0, 1, .."""
    count = sum(key.startswith(prefix) and key[len(prefix):].isdigit() for key in arrays)
    return [arrays[f"{prefix}{number}"] for number in range(count)]


def reference_of(program: str | Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Inputs and outputs of eager PyTorch that lie beside a program, by its path or its name."""
    (inputs, outputs), = calls_of(program, "")
    return inputs, outputs


def mlp_arrays() -> tuple[np.ndarray, np.ndarray]:
    """The input of mlp.pte, and its output."""
    (x,), (y,) = reference_of("mlp")
    return x, y


def calls_of(program: str | Path, kind: str = "call"
             ) -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Inputs and outputs of several calls that lie beside a program: of the kind "call" each of
    which stands for itself, "step", which follow one another, or "" for the only one."""
    with np.load(path_of(program).with_suffix(".npz")) as archive:
        count = len({key.split("_")[0] for key in archive if key.startswith(kind)}) if kind else 1
        names = [f"{kind}{number}_" for number in range(count)] if kind else [""]
        return [(numbered(archive, f"{name}in"), numbered(archive, f"{name}out")) for name in names]


def graph_of_file(program: str | Path, method: str = "forward") -> Any:
    """The graph of a method of a program, by the program's path or name."""
    from vkrt.compiler.description import Description

    with closing(Description(path_of(program))) as description:
        return description.graph(method)


def relative_l2(result: np.ndarray, expected: np.ndarray) -> float:
    """|result - expected| / |expected|, in float64."""
    expected = expected.astype(np.float64)
    norm = np.linalg.norm(expected)
    return float(np.linalg.norm(result.astype(np.float64) - expected) / (norm or 1.0))


def close_to(results: Sequence[Any], expected: Sequence[np.ndarray], bound: float = 1e-5) -> None:
    """Fails unless results have these sizes and dtypes, and values: of floats those within a
    relative L2 distance, of others the same."""
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype), f"output {index}"
        if wanted.dtype.kind == "f":
            assert relative_l2(result, wanted) < bound, f"output {index}"
        else:
            np.testing.assert_array_equal(result, wanted)


def outside(work: Any) -> list[str]:
    """The operands of a command list that do not lie within their storages, in words."""
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


@contextmanager
def open_method(graph: Any, data: bytes, device: Any, **options: Any) -> Iterator[Any]:
    """The method of a graph whose constants are in `data`, loaded with these options."""
    import vkrt
    from vkrt.memory.source import Source

    with closing(vkrt.Method(graph, [Source.wrap(bytes(data))], device,
                             options=vkrt.LoadOptions(**options))) as method:
        yield method


def execute(graph: Any, data: bytes, inputs: Sequence[np.ndarray], device: Any,
            **options: Any) -> list[np.ndarray]:
    """The results of a graph whose constants are in `data`."""
    with open_method(graph, data, device, **options) as method:
        return method.execute(inputs)


def odd_bools(array: np.ndarray) -> np.ndarray:
    """The same bools in other bytes than 0 and 1; another array as it is."""
    return (array.astype(np.uint8) * 6).view(bool) if array.dtype == bool else array


@contextmanager
def failing(fail_after: Callable[[int], None], number: int) -> Iterator[None]:
    """Within, an allocation (`fail_allocation_after`) or a read (`fail_read_after`) fails: the one
    of this number."""
    fail_after(number)
    try:
        yield
    finally:
        fail_after(-1)


def raising(error: type[BaseException], *arguments: Any) -> Callable[..., Any]:
    """A function that raises such an error, whatever it is called with."""
    def fail(*_: Any, **__: Any) -> None:
        raise error(*arguments)

    return fail


def in_threads(*calls: Callable[[], Any], seconds: float = 300) -> None:
    """Makes calls at the same time, each in a thread of its own, which have to end within so many
    seconds; raises what one of them does."""
    errors: list[BaseException] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def need_command(*names: str) -> str:
    """The first of these commands that is here, or a skip."""
    for found in filter(None, map(shutil.which, names)):
        return found
    pytest.skip(f"none of these is installed: {', '.join(names)}")


def need_one_memory(device: Any) -> None:
    """A skip on a device with memory of its own: a discrete GPU."""
    if not device.unified:
        pytest.skip("the device has memory of its own")


def need_imports(device: Any) -> None:
    """A skip where the driver says that it imports no host memory for buffers.

    SwiftShader says so, and does: nothing is tried there.
    """
    from vkrt.runtime.map_probe import why_none

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


def python(*words: Any, cwd: Path | None = None, stdin: Any = None,
           **environment: str) -> subprocess.CompletedProcess[str]:
    """A new interpreter that finds the tests' modules, with these words on its command line, at its
    end."""
    path = os.pathsep.join((str(MODELS.parent), os.environ.get("PYTHONPATH", "")))
    return subprocess.run([sys.executable, *map(str, words)], text=True, capture_output=True,
                          env={**os.environ, "PYTHONPATH": path, **environment}, timeout=300,
                          cwd=cwd, stdin=stdin)


def run_python(code: str, *arguments: Any, **environment: str) -> str:
    """What code prints in such an interpreter; its failure fails the test."""
    done = python("-c", textwrap.dedent(code), *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def parser_of(command: str) -> argparse.ArgumentParser:
    """The options of a command, as `vkrt COMMAND --help` knows them."""
    parser = argparse.ArgumentParser()
    importlib.import_module(f"vkrt.cli.{command}").add_arguments(parser)
    return parser


def on_small_file_system(script: str, folder: Path, *arguments: Any
                         ) -> subprocess.CompletedProcess[str]:
    """Runs a script of bash, which may mount a file system of memory at `folder`, its first
    argument, that no other process sees; a skip where that is not allowed.

    Mesa keeps a cache of its own, whose index it maps without having the space: off here.
    """
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", folder],
                      capture_output=True).returncode:
        pytest.skip("this process may not mount a file system")
    return subprocess.run(["unshare", "-m", "bash", "-c", script, "bash", folder,
                           *map(str, arguments)], text=True, capture_output=True, timeout=300,
                          env={**os.environ, "MESA_SHADER_CACHE_DISABLE": "true",
                               "MESA_GLSL_CACHE_DISABLE": "true"})


def same_bits(outputs, others) -> None:
    """Fails unless two lists of outputs are the same bits."""
    for a, b in zip(outputs, others, strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def as_input(numbers: np.ndarray, info: Any) -> np.ndarray:
    """Numbers in the dtype of an input; whole ones are 0 or more, as they may be indices."""
    return np.asarray(numbers if np.dtype(info.dtype).kind == "f" else np.abs(numbers), info.dtype)


def examples_of(program: Any, method: str = "forward") -> list[Any]:
    """An example of each input of a method."""
    return [info.example() for info in program.metadata(method).inputs]


def inputs_of(program: Any, method: str = "forward") -> list[np.ndarray]:
    """Inputs of the largest sizes: the same numbers for the same program."""
    random = np.random.default_rng(3)
    return [as_input(random.standard_normal(i.sizes), i) for i in program.metadata(method).inputs]


def damaged(good: bytes, how: str) -> bytes:
    """A file's content, damaged: "length" cuts bytes off its end, "empty" leaves none, "flip"
    inverts the last byte, "header" the first one, and a number the byte at that place."""
    bad = bytearray(good)
    if how == "length":
        del bad[-3:]
    elif how == "empty":
        bad.clear()
    else:
        bad[int({"flip": -1, "header": 0}.get(how, how))] ^= 0xFF
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
