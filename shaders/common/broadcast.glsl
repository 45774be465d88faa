// Where a texel of the result finds its texels in operands that are broadcast to it.
//
// Outside of Z the result has `outer_dims` dimensions, up to 3 (of the sizes `size_0` innermost,
// `size_1`, and whatever is left); OPERAND(first, name) takes 7 parameters: the kind of its broadcast, its strides
// over those dimensions in texels, and its own grid. OPERAND_TEXEL(name, i, spot, dtype) is its texel
// for texel i of the result, which is at spot_of(i).

#include "params.glsl"

PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, size_0)
PARAM(5, size_1)
CASE(6, outer_dims)

// The kind is ALONG (texel z of the place that the strides lead to), SPLAT (one element there, for
// all of the packed dimension) or SAME (nothing is broadcast: the texel of the same number).
#define OPERAND(first, name) \
  CASE(first, name##_kind) \
  PARAM(first + 1, name##_0) \
  PARAM(first + 2, name##_1) \
  PARAM(first + 3, name##_2) \
  PARAM(first + 4, name##_X) \
  PARAM(first + 5, name##_Y) \
  PARAM(first + 6, name##_Z)

// The places of a texel in the 3 dimensions outside of Z, innermost first, and in Z.
ivec4 spot_of(int i) {
  ivec2 row = DIVIDED(i, Z);
  if (outer_dims < 2) return ivec4(row.x, 0, 0, row.y);
  ivec2 outer = DIVIDED(row.x, size_0);
  if (outer_dims == 2) return ivec4(outer.yx, 0, row.y);
  ivec2 rest = DIVIDED(outer.x, size_1);
  return ivec4(outer.y, rest.yx, row.y);
}

#define OPERAND_NUMBER(name, i, spot) \
  (name##_kind == SAME ? (i) \
   : (outer_dims == 0 ? 0 : spot.x * name##_0 + spot.y * name##_1 + spot.z * name##_2) \
     + (name##_kind == ALONG ? spot.w : 0))
#define OPERAND_AT(name, i, spot) \
  AT_LINEAR(OPERAND_NUMBER(name, i, spot), name##_X, name##_Y, name##_Z)
#define SPREAD(name, v) (name##_kind == SPLAT ? (v).xxxx : (v))
#define OPERAND_TEXEL(name, i, spot, dtype) \
  SPREAD(name, LOAD_AS(name, OPERAND_AT(name, i, spot), dtype))
