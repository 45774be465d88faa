"""Portable kernels that only the host does, in numpy, each declared as operators are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["np"]

if TYPE_CHECKING:
    import numpy as np
else:
    class _Numpy:
        """numpy, imported when a kernel runs: planning does without it."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            return getattr(numpy, name)

    np = _Numpy()
