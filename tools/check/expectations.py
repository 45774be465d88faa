"""Is what the tests expect of operators what PyTorch does?

    python tools/check/expectations.py [OPERATOR ...]

The tests of operators (tests/ops/samples) run without PyTorch: each sample says in numpy, or as
numbers, what comes out. This computes the same with PyTorch's operator of the same name, in double
precision, and prints every sample in which the two differ; it exits 1 if there is one. Operators
that PyTorch does not have, such as those of the Vulkan exporter, are left out, and samples that it
refuses (indices out of range, for which vkrt promises more) are counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

TESTS = Path(__file__).resolve().parent.parent.parent / "tests"
sys.path[:0] = [str(TESTS / "ops"), str(TESTS)]

from harness import doubled, each, samples  # noqa: E402

# Relative L2 error; samples give some numbers in single precision.
TOLERANCE = 1e-5

# Types of a schema that arrays and numbers are turned into
LISTS = ("List[int]", "List[SymInt]", "List[float]")


def main() -> int:
    wrong = 0
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    left_out: set[str] = set()
    for sample in samples():
        if sys.argv[1:] and not any(name in sample.op for name in sys.argv[1:]):
            continue
        operator = _operator(sample.op)
        if operator is None:
            left_out.add(sample.op)
            continue
        try:
            trouble = _differs(operator, sample)
        except (RuntimeError, IndexError):
            refused[sample.op] += 1
            continue
        counts[sample.op] += 1
        if trouble:
            wrong += 1
            print(f"{sample}: {trouble}")
    print(f"{sum(counts.values())} samples of {len(counts)} operators compared, {wrong} differ; "
          f"refused by PyTorch: {', '.join(f'{op} x{n}' for op, n in sorted(refused.items()))}; "
          f"without an operator there: {', '.join(sorted(left_out))}")
    return int(wrong > 0)


def _operator(name: str) -> Any:
    """PyTorch's operator of an exporter's name such as "aten.add.Tensor", or None."""
    if name.count(".") < 2:
        return None
    namespace, operator, overload = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return getattr(packet, overload, None)


def _differs(operator: Any, sample: Any) -> str:
    """What is wrong with a sample; "" if nothing."""
    args = each(doubled, sample.args)
    expected = sample.expect
    with np.errstate(all="ignore"):
        expected = expected(*args) if callable(expected) else expected
    expected = list(expected) if isinstance(expected, (list, tuple)) else [expected]
    results = _call(operator, args)
    for index, (wanted, given) in enumerate(zip(expected, results)):
        wanted, given = np.asarray(wanted), given.detach().numpy()
        if wanted.shape != given.shape:
            return f"result {index} is {list(wanted.shape)}, PyTorch's {list(given.shape)}"
        wanted, given = wanted.astype(np.float64), given.astype(np.float64)
        finite = np.isfinite(given)
        if not np.array_equal(wanted[~finite], given[~finite], equal_nan=True):
            return f"result {index} has other infinities or NaN"
        error = np.linalg.norm(wanted[finite] - given[finite])
        if error > TOLERANCE * (np.linalg.norm(given[finite]) or 1.0):
            return f"result {index} is off by {error:.2e}"
    return ""


def _call(operator: Any, args: list[Any]) -> list[Any]:
    """The operator's results; arguments that its schema takes by name only are given so."""
    places, names = [], {}
    for value, argument in zip(args, operator._schema.arguments):
        value = _converted(value, str(argument.type))
        if argument.kwarg_only:
            if value is not None:
                names[argument.name] = value
        else:
            places.append(value)
    results = operator(*places, **names)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _converted(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        if any(word in kind for word in LISTS) and not value and "Optional" in kind:
            return None
        return [_converted(item, kind) for item in value]
    if isinstance(value, np.ndarray):
        # Places are 64-bit numbers there.
        wide = value.astype(np.int64) if value.dtype == np.int32 else value
        return torch.from_numpy(np.ascontiguousarray(wide).reshape(value.shape))
    return value


if __name__ == "__main__":
    sys.exit(main())
