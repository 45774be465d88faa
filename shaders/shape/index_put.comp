#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Rows of a tensor replaced by others, or with others added, where integers name them: the same
// number twice is done twice, in order. A negative one counts from the end, one beyond the ends is
// left out. Or its elements, by their numbers in memory.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN_AS(2, places, i32)
IN(3, elements)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Texels of a row, one after the other.
PARAM(3, slab)
CASE(4, adds)
// Rows, or elements.
PARAM(5, rows)
// Integers, counted in their logical order: the innermost dimension is padded to whole texels.
PARAM(6, count)
PARAM(7, last)
PARAM(8, places_X)
PARAM(9, places_Y)
PARAM(10, places_Z)
PARAM(11, elements_X)
PARAM(12, elements_Y)
PARAM(13, elements_Z)
CASE(14, by_element)

T4 put(T4 old, T4 new) { return adds != 0 ? old + new : new; }

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row = DIVIDED(i, slab);
  T4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  int t = 0, lane = 0;
  for (int n = 0; n < count; n++) {
    int k = lane & 3;
    POSITION at = AT_LINEAR(t + (lane >> 2), places_X, places_Y, places_Z);
    int place = LOAD_AS(places, at, i32)[k];
    if (place < 0) place += rows;
    if (by_element != 0) {
      // The elements lie as the integers do.
      if (place >= 0 && place < rows && place >> 2 == i)
        v[place & 3] = put(v, T4(LOAD(elements, at)[k]))[place & 3];
    } else if (place == row.x) {
      v = put(v, LOAD(elements, AT_LINEAR(n * slab + row.y, elements_X, elements_Y, elements_Z)));
    }
    lane++;
    if (lane == last) {
      lane = 0;
      t += places_Z;
    }
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), v);
}
