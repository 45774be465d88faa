"""Element types: the numbers of the two schemas, numpy-like names, sizes in bytes.

The program's tensors use PyTorch's ScalarType numbers; the delegate's use a shorter enumeration
of its own. Both become the same names here.
"""

from math import prod

from vkrt.pte.span import fail
from vkrt.work.tensor import ITEMSIZE

SCALAR_TYPES: dict[int, str] = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 12: "qint8",
    13: "quint8", 14: "qint32", 15: "bfloat16", 16: "quint4x2", 17: "quint2x4", 18: "bits1x8",
    19: "bits2x4", 20: "bits4x2", 21: "bits8", 22: "bits16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32",
    29: "uint64",
}

VK_DATATYPES: dict[int, str] = {
    0: "bool", 1: "uint8", 2: "int8", 3: "int32", 4: "float16", 5: "float32", 6: "float64",
    7: "int64",
}
VK_DATATYPE_UNSET = 127

# ExecuTorch's own limit; it also keeps the product of sizes a small number.
MAX_RANK = 16
MAX_NBYTES = (1 << 63) - 1


class Extent:
    """Elements and bytes of a tensor: the base of a dataclass that has sizes and a dtype."""

    __slots__ = ()
    dtype: str
    sizes: tuple[int, ...]

    @property
    def numel(self) -> int:
        return prod(self.sizes)

    @property
    def nbytes(self) -> int:
        return self.numel * ITEMSIZE[self.dtype]


def nbytes_of(dtype: str, sizes: tuple[int, ...], what: str, at: int) -> int:
    """Bytes of the contiguous tensor. Sizes that are negative, too many, or whose product does not
    fit 63 bits are a FormatError about the field `what` at file offset `at`."""
    if len(sizes) > MAX_RANK:
        fail(what, at, f"at most {MAX_RANK} dimensions", f"{len(sizes)} dimensions")
    if sizes and min(sizes) < 0:
        fail(what, at, "sizes that are not negative", sizes)
    nbytes = prod(sizes) * ITEMSIZE[dtype]
    if nbytes > MAX_NBYTES:
        fail(what, at, "a tensor of less than 2**63 bytes", f"{dtype}{list(sizes)}")
    return nbytes
