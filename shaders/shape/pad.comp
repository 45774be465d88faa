#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// A tensor with a border around it (or cut off: borders may be negative), of one number or of its own
// elements: those at the same distance on the other side of its ends (REFLECT), the last ones
// (REPLICATE), or those of its other end (CIRCULAR).
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Of the packed dimension: size of the result, border before, size of the source.
PARAM(3, size)
PARAM(4, before)
PARAM(5, inside)
PARAM(6, source_X)
PARAM(7, source_Y)
PARAM(8, source_Z)
#if defined(DTYPE_f32) || defined(DTYPE_f16)
PARAM_FLOAT(9, number)
#else
PARAM(9, number)
#endif
// The same of the dimensions outside of it, innermost first.
#define DIMENSION(k) \
  PARAM(10 + 3 * k, size_##k) PARAM(11 + 3 * k, before_##k) PARAM(12 + 3 * k, inside_##k)
DIMENSION(0)
DIMENSION(1)
DIMENSION(2)
DIMENSION(3)

CASE(22, opcode)
// How many dimensions there are outside of the packed one, at least 1.
CASE(23, dims)

// The element of the source, of `count` in a dimension, in the place of one of a border.
int mirrored(int index, int count) {
  switch (opcode) {
    case REFLECT:
      index = abs(index);
      return index < count ? index : 2 * (count - 1) - index;
    case REPLICATE: return clamp(index, 0, count - 1);
    case CIRCULAR: return index < 0 ? index + count : index < count ? index : index - count;
  }
  return index;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 outer = DIVIDED(i, Z);
  int z = outer.y;
  int row = 0;
  int rows = 1;
  bool in_source = true;
#define STEP(k) \
  if (k < dims) { \
    outer = k == dims - 1 ? ivec2(0, outer.x) : DIVIDED(outer.x, size_##k); \
    int index = mirrored(outer.y - before_##k, inside_##k); \
    in_source = in_source && index >= 0 && index < inside_##k; \
    row += index * rows; \
    rows *= inside_##k; \
  }
  STEP(0) STEP(1) STEP(2) STEP(3)
  T4 v = T4(number);
  if (in_source) {
    if (before == 0 && inside == size) {
      v = LOAD(source, AT_LINEAR(row * source_Z + z, source_X, source_Y, source_Z));
    } else {
      for (int lane = 0; lane < 4; lane++) {
        if (4 * z + lane >= size) break;
        int index = mirrored(4 * z + lane - before, inside);
        if (index < 0 || index >= inside) continue;
        int t = row * source_Z + (index >> 2);
        v[lane] = LOAD(source, AT_LINEAR(t, source_X, source_Y, source_Z))[index & 3];
      }
    }
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(z, size)));
}
