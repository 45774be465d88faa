"""Convolutions over three spatial dimensions whose kernel is more than one slice deep.

Kernels see a volume [N, C, D, H, W] as images, its slices, channels-last. A convolution whose
kernel is one slice deep is a convolution of these images. Others sum over the slices that their
kernel meets (shaders/conv/volume.glsl).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from vkrt.ops import tiles
from vkrt.ops.convolution_kernels import Convolution
from vkrt.ops.epilogue import EpilogueArgs
from vkrt.ops.sizes import Sizes
from vkrt.work.tensor import Tensor, channels_last, short_name

# Register tiles that conv3d.glsl is compiled for: pixels and channels
TILES = ((4, 8), (1, 4))


@dataclass(frozen=True)
class Depth:
    """A convolution along the slices: sizes of source and result, and the kernel's numbers."""

    size: int
    out: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    @classmethod
    def of(cls, x: Tensor, out: Tensor, weight: Tensor, stride: Sizes, padding: Sizes,
           dilation: Sizes) -> Depth | None:
        """The depth of a convolution of volumes; None for other convolutions."""
        if x.rank != 5:
            return None
        return cls(x.sizes[2], out.sizes[2], weight.sizes[2], stride[0], padding[0], dilation[0])

    @property
    def is_trivial(self) -> bool:
        """Whether every slice of the result is made of the same one of the source."""
        return self.kernel == self.stride == 1 and self.size == self.out

    def params(self, rows: int) -> list[int]:
        """The parameters of volume.glsl; `rows` are those of a slice of the kernel."""
        return [self.size, self.out, self.kernel, self.stride, self.padding, self.dilation, rows]


def convolve(cx, conv: Convolution, depth: Depth, weight: Tensor, epilogue: EpilogueArgs,
             transposed: bool) -> None:
    """Adds the dispatch; `conv` is the convolution within a slice."""
    source = cx.read(conv.x, channels_last(5))
    result = cx.write(conv.out, source.order)
    rows = conv.kernel[0]
    conv = replace(conv, kernel=(depth.kernel * rows, conv.kernel[1]))
    width, height, texels = result.grid
    count, group_inputs = width * height * texels, conv.group_inputs
    steps = [stride // math.gcd(stride, dilation)
             for stride, dilation in zip((depth.stride, *conv.stride),
                                         (depth.dilation, *conv.dilation))]
    further = depth.params(rows)
    work = 1
    # Iterations: of a tap for each channel of a texel, and of what is left out.
    loops = sum(steps) + conv.taps * (2 + 4 * (1 + group_inputs))
    if transposed:
        # [I, O / g, kd, kh, kw] is g, I / g, O / g, kd, kh, kw -> g, O / g | kd, kh, kw, I / g
        split = (conv.groups, group_inputs, *weight.sizes[1:])
        matrix = cx.matrix(weight, (0, *range(2, len(split)), 1), 2, split)
        shader = "deconv3d"
        further.append(steps[0])
    else:
        matrix = cx.matrix(weight, source.order, 1)
        shader = "conv3d_grouped"
        if conv.has_whole_texels:
            group_inputs = -(-group_inputs // 4)
            refused = cx.refused_tiles("conv3d", [source, matrix, *epilogue.vectors],
                                       short_name(result.dtype))
            tile = tiles.choose(cx.target.tuning, width, conv.group_channels, height * conv.groups,
                                allowed=TILES, refused=refused)
            shader = f"conv3d_{tile[0]}x{tile[1]}"
            count = tiles.invocations(tile, width, conv.group_channels, height * conv.groups)
            loops = conv.taps * (2 + group_inputs)
            work = math.prod(tile)
    params = conv.params(source, result, group_inputs, epilogue, (steps[1], steps[2]))
    cx.dispatch(shader, [*params, *further], [result], [source, matrix, *epilogue.vectors], count,
                loops=loops, work=work)
