"""What products of quantized tensors have in common: their parameters, checks and epilogue."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from vkrt.ops.attributes import REQUANTIZATION
from vkrt.ops.dtypes import ONE_FLOAT, DtypeRule
from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.quantization import RANGES, need_scale, need_zero, quantize_into
from vkrt.ops.sizes import Sizes, fail, unsupported
from vkrt.work.tensor import Operand, Tensor, round_up

# The parameters that all products have: source, weight and result
SOURCE = "x:T.int8 input_scale:f input_zero_point:i"
WEIGHT = "weights:T.int8 weight_sums:T.int32 weight_scales:T.float32|float16"
RESULT = "output_scale:f output_zero_point:i bias:T.float32|float16?"

# The rule of products of real numbers, which are quantized first
REAL = DtypeRule(lambda args: ONE_FLOAT.allowed(args[:1]))

# The most products in a sum of 31 bits: each is at most 255 (|q - zero|) times 128 (|weight|).
LONGEST = ((1 << 31) - 1) // (255 * 128)

# The most products whose sum a float holds exactly.
LONGEST_IN_FLOATS = (1 << 24) // (255 * 128)

# The registers that kernels of words need (Mali has 64). On V3D, which has 32, these kernels do not
# compile or spill.
WORDS_REGISTERS = 64

LOWEST = {"none": -math.inf, "relu": 0.0}


def need_step(scale: float, zero: int, name: str) -> None:
    """Refuses a scale or a zero of the tensor `name` that kernels cannot take."""
    need_scale(scale, f"{name}_scale")
    need_zero(zero, f"{name}_zero_point")


def need_padded(sizes: Sequence[int] | None, expected: Sequence[int], name: str) -> None:
    """Refuses a constant of other sizes than expected, the last of which may be padded to whole
    texels; None passes."""
    padded = (*expected[:-1], round_up(expected[-1], 4))
    if sizes is not None and tuple(sizes) not in (tuple(expected), padded):
        either = "" if padded == tuple(expected) else f" or {list(padded)}"
        fail(name, f"expected sizes {list(expected)}{either}, got {list(sizes)}")


def need_vectors(channels: int, sums: Sizes, scales: Sizes, bias: Sizes | None) -> None:
    """Refuses vectors that do not have a number for each channel of the result."""
    for sizes, name in ((sums, "weight_sums"), (scales, "weight_scales"), (bias, "bias")):
        need_padded(sizes, (channels,), name)


def need_exact(length: int) -> None:
    """Refuses sums of so many products that 32 bits may not hold them."""
    if length > LONGEST:
        unsupported("weights", f"sums of {length:,} products; vkrt adds up to {LONGEST:,} of 8 "
                    "bits in 32")


def need_activation(name: str) -> None:
    """Refuses an activation that kernels do not have."""
    if name not in LOWEST:
        unsupported("activation", f"{name!r}; vkrt has {' and '.join(LOWEST)}")


def quantized_epilogue(cx, source: tuple[float, int], scales: Tensor, bias: Tensor | None,
           result: tuple[float, int] = (1.0, 0), activation: str = "none",
           added: int = 4) -> EpilogueArgs:
    """The epilogue of a product of the current node, see shaders/common/epilogue_q8.glsl.

    Args:
        source, result: scale and zero of each; not given for a result that stays real.
        scales: of the weight's rows.
        added: how many products a kernel adds up before the sum is an integer.
    """
    vectors = _view(cx, scales), _view(cx, bias)
    scale, zero = result
    then = cx.attribute(REQUANTIZATION)
    as_floats = cx.target.tuning.float_products and added <= LONGEST_IN_FLOATS
    last = ((False, 1.0, 0.0, 0.0, 1.0, 0) if then is None else
            (True, then.scale, then.low, then.high, 1 / then.new_scale, then.new_zero))
    return EpilogueArgs(vectors, (bias is not None, *source, LOWEST[activation], 1 / scale, zero,
                                  *last, as_floats))


def _view(cx, vector: Tensor | None) -> Operand:
    return cx.check_view(cx.vector(vector, "float32"))


def quantized(cx, real: Operand, sizes: Sizes, scale: float, zero: int) -> Operand:
    """Floats of these sizes, quantized by the current node, in the same order."""
    result = cx.temporary(sizes, "int8", real.order)
    quantize_into(cx, result, real, scale, zero, *RANGES["int8"])
    return result


def in_words(cx, shader: str, source: Operand, matrix: Operand) -> tuple[Operand, Operand]:
    """The operands of a product as words of 4 numbers, so that a load brings 16 (words.glsl). They
    stay as they are in images, and where the rows of either are no multiple of 16.

    Args:
        shader: whose register tiles multiply, "matmul" or "conv2d"; the operands also stay as they
            are where the driver compiles none of these tiles for words.
    """
    if (cx.storage == "texture3d" or matrix.packed % 16 or source.packed % 16
            or cx.target.tuning.registers < WORDS_REGISTERS):
        return source, matrix
    words = words_of(source), words_of(matrix)
    least = min(tile for tile, _ in cx.target.tuning.tiles if shader != "matmul" or tile[0] > 1)
    if least in cx.refused_tiles(shader, words, "i32_i8"):
        return source, matrix
    return words


def words_of(operand: Operand) -> Operand:
    """Numbers of 8 bits seen as words of 4, along a packed dimension that is a multiple of 16."""
    inner = operand.order[-1]
    sizes = tuple(size // 4 if d == inner else size for d, size in enumerate(operand.sizes))
    return replace(operand, sizes=sizes, dtype="int32")
