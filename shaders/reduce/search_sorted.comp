#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// How many elements of a row in ascending order stand before each element: those below it, and with
// `right` those equal to it too. NaN stands behind every number.
#include "tensor.glsl"
#include "params.glsl"

OUT_AS(0, result, i32)
IN(1, source)
IN(2, sorted)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
PARAM(4, sorted_X)
PARAM(5, sorted_Y)
PARAM(6, sorted_Z)
// Elements of a row.
PARAM(7, count)
// Whether every row of the source has one of its own, else all have the first.
CASE(8, of_rows)
CASE(9, right)

#if defined(DTYPE_i32)
#define IS_NAN(v) false
#else
#define IS_NAN(v) isnan(v)
#endif

bool is_before(T s, T v) {
  return IS_NAN(s) || IS_NAN(v) || s < v || (right != 0 && s == v);
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row = DIVIDED(i, Z);
  int first = of_rows != 0 ? row.x * sorted_Z : 0;
  int valid = VALID(row.y, size);
  T4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  ivec4 found = ivec4(0);
  for (int lane = 0; lane < valid; lane++) {
    int low = 0, high = count;
    while (low < high) {
      int middle = (low + high) / 2;
      T4 some = LOAD(sorted, AT_LINEAR(first + (middle >> 2), sorted_X, sorted_Y, sorted_Z));
      if (is_before(some[middle & 3], v[lane])) low = middle + 1; else high = middle;
    }
    found[lane] = low;
  }
  STORE_AS(result, AT_LINEAR(i, X, Y, Z), found, i32);
}
