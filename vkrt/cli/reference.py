"""A reference to compare with: a module of PyTorch, run eagerly in this process.

PyTorch is no requirement of vkrt; it is imported when a reference is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vkrt.errors import InputError, missing_package

FORMS = "torch:MODEL.pt2, torch:FILE.py:FUNCTION or torch:MODULE:FUNCTION"


def load_reference(text: str) -> Callable[..., list[np.ndarray]]:
    """What a text such as "torch:nets.py:resnet" names, as a function of arrays.

    A `.pt2` file is a program that `torch.export.save` wrote. A FUNCTION, in a file or in a module
    that can be imported, is called without arguments and returns the `torch.nn.Module`; its class
    or the module itself will do as well. It runs in evaluation mode, without gradients, on the CPU.

    Raises:
        InputError: the text is none of these, or what it names is not there.
        PackageError: PyTorch is not installed.
    """
    kind, _, rest = text.partition(":")
    if kind != "torch" or not rest:
        raise InputError(f"{text!r}: expected {FORMS}")
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise missing_package("torch", f"{text!r}: comparing with PyTorch") from error
    if rest.endswith(".pt2"):
        module = _exported(torch, rest)
    else:
        module = _called(text, *_split(text, rest))
        if isinstance(module, torch.nn.Module):
            module.eval()
    if not callable(module):
        raise InputError(f"{text!r} is no module of PyTorch but {type(module).__name__}")

    def run(*inputs: np.ndarray) -> list[np.ndarray]:
        with torch.no_grad():
            outputs = module(*(torch.from_numpy(array) for array in inputs))
        outputs = outputs if isinstance(outputs, (list, tuple)) else (outputs,)
        return [output.numpy() if isinstance(output, torch.Tensor) else np.asarray(output)
                for output in outputs]

    return run


def _exported(torch: Any, name: str) -> Any:
    if not Path(name).is_file():
        raise InputError(f"{name}: no such file")
    try:
        return torch.export.load(name).module()
    except Exception as error:  # whatever a damaged file makes of the reader
        raise InputError(f"{name}: torch.export.load failed: {error}") from error


def _split(text: str, rest: str) -> tuple[str, str]:
    module, _, function = rest.rpartition(":")
    if not module or not function:
        raise InputError(f"{text!r}: expected {FORMS}")
    return module, function


def _called(text: str, module: str, function: str) -> Any:
    if module.endswith(".py"):
        if not Path(module).is_file():
            raise InputError(f"{module}: no such file")
        spec = importlib.util.spec_from_file_location(Path(module).stem, module)
        assert spec is not None and spec.loader is not None  # by the ending .py
        found = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(found)
        except Exception as error:  # whatever a user's file raises
            raise InputError(f"{module}: {type(error).__name__}: {error}") from error
    else:
        try:
            found = importlib.import_module(module)
        except ImportError as error:
            raise InputError(f"{text!r}: {error}") from error
    try:
        made = getattr(found, function)
    except AttributeError as error:
        raise InputError(f"{text!r}: {error}") from error
    is_class = isinstance(made, type)
    return made() if callable(made) and (is_class or not hasattr(made, "forward")) else made
