#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Rows with elements put to places in them that a row of integers names; those outside of the row are
// left out. Every invocation looks for what comes to its texel, so the order is that of the integers,
// whatever places stand there more than once.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN_AS(2, places, i32)
IN(3, elements)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
#include "put_rows.glsl"
// Integers in a row, and texels of them.
PARAM(6, count)
PARAM(7, places_Z)
// Whether all elements are one number.
CASE(8, is_number)
#if defined(DTYPE_i32)
PARAM(9, number)
#else
PARAM_FLOAT(9, number)
#endif

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row = DIVIDED(i, Z);
  T4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  ivec4 came = ivec4(0);
  for (int t = 0; t < places_Z; t++) {
    POSITION at = AT_LINEAR(row.x * places_Z + t, X, Y, places_Z);
    ivec4 place = LOAD_AS(places, at, i32) - 4 * row.y;
    int valid = VALID(t, count);
    if (!any(lessThan(uvec4(place), uvec4(4)))) continue;
    T4 new = T4(number);
    if (is_number == 0) new = LOAD(elements, at);
    for (int lane = 0; lane < valid; lane++) {
      for (int k = 0; k < 4; k++) {
        if (place[lane] != k) continue;
        v[k] = put(v[k], new[lane], came[k] == 0);
        came[k]++;
      }
    }
  }
  for (int k = 0; k < 4; k++) if (came[k] != 0) v[k] = ended(v[k], came[k]);
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(row.y, size)));
}
