// Windows over up to three spatial dimensions (z, y, x): of one size, a stride apart, or such that
// together they just cover the source ("adaptive"). Rows of a tensor are (image, z, y).
#include "tensor.glsl"
#include "params.glsl"

PARAM(0, X)
PARAM(1, H)
PARAM(2, D)
PARAM(3, Z)
PARAM(4, out_X)
PARAM(5, out_H)
PARAM(6, out_D)
PARAM(7, out_Y)
PARAM(8, channels)
CASE(9, is_adaptive)
PARAM(10, kernel_x)
PARAM(11, kernel_y)
PARAM(12, kernel_z)
PARAM(13, stride_x)
PARAM(14, stride_y)
PARAM(15, stride_z)
PARAM(16, padding_x)
PARAM(17, padding_y)
PARAM(18, padding_z)
PARAM(19, dilation_x)
PARAM(20, dilation_y)
PARAM(21, dilation_z)

// What a texel of the result is made of: where it is, the first row of its image in the source, and
// along each side the first and behind the last element of its window, which may begin before the
// source and end behind it.
struct Window { int column, row, z, image; ivec3 first, end; };

// first = floor(place * size / out_size), end = ceil((place + 1) * size / out_size)
#define ADAPTIVE(place, size, out_size) \
  ivec2(divided_exactly((place) * size, out_size, IS_CONSTANT(out_size)).x, \
        divided_exactly((place) * size + size + out_size - 1, out_size, IS_CONSTANT(out_size)).x)
#define STRIDED(place, side) \
  ivec2((place) * stride_##side - padding_##side, \
        (place) * stride_##side - padding_##side + (kernel_##side - 1) * dilation_##side + 1)

Window window_of(int i) {
  ivec2 outer = DIVIDED(i, Z), pixel = DIVIDED(outer.x, out_X);
  ivec2 slice = DIVIDED(pixel.x, out_H), image = DIVIDED(slice.x, out_D);
  ivec2 x, y, z;
  if (is_adaptive != 0) {
    x = ADAPTIVE(pixel.y, X, out_X);
    y = ADAPTIVE(slice.y, H, out_H);
    z = ADAPTIVE(image.y, D, out_D);
  } else {
    x = STRIDED(pixel.y, x);
    y = STRIDED(slice.y, y);
    z = STRIDED(image.y, z);
  }
  return Window(pixel.y, pixel.x, outer.y, image.x * D * H, ivec3(x.x, y.x, z.x),
                ivec3(x.y, y.y, z.y));
}
#define PIXEL(w, x, y, z) AT(x, (w).image + (z) * H + (y), (w).z, X, Z)
#define RESULT(w) AT((w).column, (w).row, (w).z, out_X, Z)
