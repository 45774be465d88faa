// Convolution with a register tile: one invocation computes TILE_X pixels along x times TILE_O
// texels (4 channels each) of the result. The including shader defines both; beyond 64 sums the
// Mesa compilers keep them in memory (measured: 10 times slower).
//
// Weights are a matrix: row = output channel, columns = (ky, kx, texel of input channels of the
// group), so a loaded texel is 4 input channels of one output channel.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"
#include "neighbours.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
FLAT(3, bias)
#if defined(STORAGE_TEXTURE3D)
// The address `texels` further on along the packed dimension.
#define STEP_Z(at, texels) ivec3((at).xy, (at).z + (texels))
#else
#define STEP_Z(at, texels) ((at) + (texels))
#endif
PARAM(0, X)
PARAM(1, H)
PARAM(2, Z)
PARAM(3, out_X)
PARAM(4, out_H)
PARAM(5, out_Y)
PARAM(6, channels)
PARAM(7, kernel_x)
PARAM(8, kernel_y)
PARAM(9, stride_x)
PARAM(10, stride_y)
PARAM(11, padding_x)
PARAM(12, padding_y)
PARAM(13, dilation_x)
PARAM(14, dilation_y)
// Of one group: texels of input channels and channels of output.
PARAM(15, group_texels)
PARAM(16, group_channels)
CASE(17, has_bias)
CASE(18, has_clamp)
PARAM_FLOAT(19, low)
PARAM_FLOAT(20, high)

void main() {
  int i = invocation();
  int tiles = (out_X + TILE_X - 1) / TILE_X;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  int groups = channels / group_channels;
  if (i >= tiles * out_Y * blocks * groups) return;
  int each = tiles * out_Y * blocks;
  int group = i / each;
  ivec2 place = neighbours(i % each, tiles * out_Y, blocks);
  int first = place.x % tiles * TILE_X;
  int row = place.x / tiles;
  int z = place.y * TILE_O;
  int out_z = group * group_channels / 4 + z;

  int left = first * stride_x - padding_x;
  int top = row % out_H * stride_y - padding_y;
  int image = row / out_H * H;
  // Kernel rows inside the image.
  int ky = top < 0 ? (-top + dilation_y - 1) / dilation_y : 0;
  int ky_end = min(kernel_y, (H - top + dilation_y - 1) / dilation_y);
  int columns = kernel_y * kernel_x * group_texels;

  vec4 sum[TILE_X * TILE_O];
  [[unroll]] for (int k = 0; k < TILE_X * TILE_O; k++) sum[k] = vec4(0);
  int rows[4 * TILE_O];
  [[unroll]] for (int k = 0; k < 4 * TILE_O; k++)
    rows[k] = group * group_channels + min(4 * z + k, group_channels - 1);

  for (; ky < ky_end; ky++) {
    int y = image + top + ky * dilation_y;
    for (int kx = 0; kx < kernel_x; kx++) {
      POSITION from[TILE_X];
      bool inside[TILE_X];
      [[unroll]] for (int p = 0; p < TILE_X; p++) {
        int x = left + p * stride_x + kx * dilation_x;
        inside[p] = padding_x == 0 || uint(x) < uint(X);
        from[p] = AT(clamp(x, 0, X - 1), y, group * group_texels, X, Z);
      }
      int column = (ky * kernel_x + kx) * group_texels;
      for (int c = 0; c < group_texels; c++) {
        vec4 v[TILE_X];
        [[unroll]] for (int p = 0; p < TILE_X; p++) {
          v[p] = LOAD(source, STEP_Z(from[p], c));
          if (!inside[p]) v[p] = vec4(0);
        }
        [[unroll]] for (int o = 0; o < TILE_O; o++) {
          [[unroll]] for (int k = 0; k < 4; k++) {
            vec4 w = LOAD_WEIGHT(weight, WEIGHT_AT(rows[4 * o + k], column + c, columns));
            [[unroll]] for (int p = 0; p < TILE_X; p++) sum[p * TILE_O + o][k] += dot(v[p], w);
          }
        }
      }
    }
  }

  [[unroll]] for (int o = 0; o < TILE_O; o++) {
    if (4 * (z + o) >= group_channels) break;
    vec4 offset = has_bias != 0 ? LOAD_FLAT(bias, out_z + o) : vec4(0);
    [[unroll]] for (int p = 0; p < TILE_X; p++) {
      if (first + p >= out_X) break;
      vec4 v = sum[p * TILE_O + o] + offset;
      if (has_clamp != 0) v = clamp(v, low, high);
      STORE(result, AT(first + p, row, out_z + o, out_X, (channels + 3) / 4),
            mask_padding(v, VALID(out_z + o, channels)));
    }
  }
}
