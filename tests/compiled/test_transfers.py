"""Weights that need more memory than they have are refused."""

import pytest

from vkrt.compiled.weights import transfer_of
from vkrt.errors import FormatError
from vkrt.executable.weights import StridedCopy, WeightRead
from vkrt.ops.strided_copy import params
from vkrt.work.tensor import Operand, Storage

# 6 rows of 5 floats become 6 rows of 2 texels.
OPERAND = Operand(Storage(0, "weight", 192, "float32"), (6, 5), "float32", (0, 1))
COPY = StridedCopy(tuple(params(OPERAND, None, [(6, 5), (5, 1)])), 4, 6)
PACKED = WeightRead(0, 0, 0, 120, 0, COPY, "w")
PLAIN = WeightRead(0, 0, 0, 192, 0, None, "w")
ADDRESS = 1 << 20


@pytest.mark.parametrize("read", [PACKED, PLAIN], ids=["packed", "plain"])
def test_a_whole_weight(read):
    transfer_of(read, ADDRESS, 192)
    with pytest.raises(FormatError, match="w: 192 bytes of it, expected 191 at most"):
        transfer_of(read, ADDRESS, 191)
