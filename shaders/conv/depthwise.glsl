// Depthwise convolution: one filter per channel. One invocation computes TILE_X pixels of one texel
// of channels: along x, or, with `is_tall`, half of them in each of two rows, for kernels of few
// taps: the rows share what they load, and nothing loops.
//
// Weights are a matrix: row = ky, columns = (kx, texel of channels).

#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
#include "image_sides.glsl"
PARAM(6, channels)
// Cases, so that the loops over taps unroll and compilers see which pixels share loads (measured:
// as fast as sharing by hand). Lowering takes other kernels for more taps than the loops have
// (vkrt/ops/convolution_kernels.py); a compiled file may say anything, and compilers would unroll
// that until memory ends.
#define MOST_X 15
#define MOST_TALL_Y 3
CASE(7, kernel_x)
CASE(8, stride_x)
CASE(9, dilation_x)
CASE(10, kernel_y)
CASE(11, stride_y)
CASE(12, dilation_y)
PARAM(13, padding_x)
PARAM(14, padding_y)
CASE(15, is_tall)
#define VECTORS 3
#define ENDS 16
#include "epilogue.glsl"

T4 sum[TILE_X];
#if defined(DTYPE_i8)
// Where numbers of 8 bits are multiplied as floats, the sums are floats up to the end.
vec4 float_sum[TILE_X];
#define ADD(p, v, w) \
  if (as_floats != 0) float_sum[p] += vec4(v) * vec4(w); \
  else sum[p] += (v) * (w);
#else
#define ADD(p, v, w) sum[p] += (v) * (w);
#endif
// Where place p of the tile is in it.
int column_of(int p) { return is_tall != 0 ? p % (TILE_X / 2) : p; }
int row_of(int p) { return is_tall != 0 ? p / (TILE_X / 2) : 0; }

// Adds the products of a row of the kernel. `top` is the row of the image that the tile's first one
// meets under it, `image` the first row of the image in the source.
void add_row(int ky, int left, int top, int image, int z) {
  [[unroll]] for (int kx = 0; kx < min(kernel_x, MOST_X); kx++) {
    T4 w = LOAD_WEIGHT(weight, WEIGHT_AT(ky, kx * Z + z, kernel_x * Z));
    [[unroll]] for (int p = 0; p < TILE_X; p++) {
      int x = left + (column_of(p) * stride_x + kx * dilation_x);
      int y = top + row_of(p) * stride_y;
      bool is_outside = uint(x) >= uint(X);
      if (is_tall != 0) {
        is_outside = is_outside || uint(y) >= uint(H);
        y = clamp(y, 0, H - 1);
      }
      T4 v = source_of(LOAD(source, AT(clamp(x, 0, X - 1), image + y, z, X, Z)));
      if (is_outside) v = T4(0);
      ADD(p, v, w)
    }
  }
}

void main() {
  int i = invocation();
  int width = is_tall != 0 ? TILE_X / 2 : TILE_X, height = is_tall != 0 ? 2 : 1;
  int tiles_x = (out_X + width - 1) / width, tiles_y = (out_H + height - 1) / height;
  if (i >= tiles_x * tiles_y * QUOTIENT(out_Y, out_H) * Z) return;
  ivec2 outer = DIVIDED(i, Z);
  ivec2 row_tile = divided(outer.x, tiles_x, IS_CONSTANT(out_X));
  ivec2 image_row = divided(row_tile.x, tiles_y, IS_CONSTANT(out_H));
  int z = outer.y, column = row_tile.y * width, row = image_row.y * height;
  int left = column * stride_x - padding_x;
  int top = row * stride_y - padding_y;
  int image = image_row.x * H;

  [[unroll]] for (int p = 0; p < TILE_X; p++) {
    sum[p] = T4(0);
#if defined(DTYPE_i8)
    float_sum[p] = vec4(0);
#endif
  }
  if (is_tall != 0) {
    [[unroll]] for (int ky = 0; ky < min(kernel_y, MOST_TALL_Y); ky++)
      add_row(ky, left, top + ky * dilation_y, image, z);
  } else {
    // Kernel rows inside the image.
    int ky = (max(-top, 0) + dilation_y - 1) / dilation_y;
    int ky_end = min(kernel_y, (max(H - top, 0) + dilation_y - 1) / dilation_y);
    for (; ky < ky_end; ky++) add_row(ky, left, top + ky * dilation_y, image, z);
  }

#if defined(DTYPE_i8)
  [[unroll]] for (int p = 0; p < TILE_X; p++)
    if (as_floats != 0) sum[p] = ivec4(float_sum[p]);
#endif
  EPILOGUE epilogue = epilogue_at(z);
  int result_row = image_row.x * out_H + row;
  [[unroll]] for (int p = 0; p < TILE_X; p++) {
    bool is_beyond = column + column_of(p) >= out_X;
    if (is_tall == 0 ? is_beyond : row + row_of(p) >= out_H) break;
    if (is_tall == 0 || !is_beyond)
      STORE(result, AT(column + column_of(p), result_row + row_of(p), z, out_X, Z),
            MASKED(ended(sum[p], epilogue), z, channels));
  }
}
