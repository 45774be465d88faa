// Largest element of windows; WITH_INDICES also writes where it lies in its image, as y * X + x.

#include "tensor.glsl"
#include "params.glsl"

#define LEAST_i8 -128
#define LEAST_u8 0u
#define LEAST_i32 int(0x80000000)
#if defined(DTYPE_i8) || defined(DTYPE_u8) || defined(DTYPE_i32)
#define LEAST T4(PASTE(LEAST_, DTYPE))
#define IS_NAN(v) false
#else
#define LEAST T4(uintBitsToFloat(0xff800000u))  // -infinity
#define IS_NAN(v) isnan(v)
#endif

OUT(0, result)
#ifdef WITH_INDICES
OUT_AS(1, indices, i32)
IN(2, source)
#else
IN(1, source)
#endif
// So that the loop over it unrolls: programs have few kinds of windows.
#define KERNEL_X_IS_CASE
#include "windows.glsl"
PARAM(13, dilation_x)
PARAM(14, dilation_y)

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  int left = column * stride_x - padding_x;
  ivec2 image_row = image_of(row);
  int top = image_row.y * stride_y - padding_y;
  int image = image_row.x * H;
  T4 best = LEAST;
  // Where all are the least torch names the window's first element inside the image.
  int skip_x = EXACT_QUOTIENT(max(-left, 0) + dilation_x - 1, dilation_x);
  int skip_y = EXACT_QUOTIENT(max(-top, 0) + dilation_y - 1, dilation_y);
  ivec4 index = ivec4((top + skip_y * dilation_y) * X + left + skip_x * dilation_x);
  for (int ky = 0; ky < kernel_y; ky++) {
    int y = top + ky * dilation_y;
    for (int kx = 0; kx < kernel_x; kx++) {
      int x = left + kx * dilation_x;
      bool inside = uint(x) < uint(X) && uint(y) < uint(H);
      T4 v = LOAD(source, AT(clamp(x, 0, X - 1), image + clamp(y, 0, H - 1), z, X, Z));
      bvec4 better = greaterThan(v, best);
      // NaN wins and stays.
      for (int k = 0; k < 4; k++) better[k] = inside && (better[k] || IS_NAN(v[k]));
      best = mix(best, v, better);
      index = ivec4(better) * (y * X + x) + ivec4(not(better)) * index;
    }
  }
  int valid = VALID(z, channels);
  STORE(result, AT(column, row, z, out_X, Z), mask_padding(best, valid));
#ifdef WITH_INDICES
  STORE_AS(indices, AT(column, row, z, out_X, Z), mask_padding(index, valid), i32);
#endif
}
