#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding: pairs of elements of a row, turned by the angles of the row's position.
//
//   PAIRS    elements 2j and 2j + 1, by column j of the tables of cosines and sines
//   COMPLEX  the same with one table of (cosine, sine), (cosine, sine), ..
//   HALVES   elements j and j + turned / 2 of the first `turned` ones, by columns j and
//            j + turned / 2; the others stay as they are
//
// Rows are [.., position, head]; the tables are linear buffers in every storage.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
FLAT(2, cosines)
FLAT(3, sines)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, kind)
PARAM(5, heads)
PARAM(6, positions)
PARAM(7, turned)
// Of the tables: rows, and texels of a row.
PARAM(8, table_rows)
PARAM(9, table_Z)
// The row of the tables for the first position.
#define POSITION_BINDING 4
#define POSITION_PARAM 10
#include "position.glsl"

// (cosine, sine, cosine, sine) of the two pairs of a texel.
vec4 turned_pairs(vec4 v, vec4 angles) {
  vec2 even = v.xz * angles.xz - v.yw * angles.yw;
  vec2 odd = v.xz * angles.yw + v.yw * angles.xz;
  return vec4(even.x, odd.x, even.y, odd.y);
}

// The elements that texel z of a row is turned with, from texel `base` on.
vec4 partners(int base, int z) {
  int half_ = turned >> 1;
  if ((half_ & 3) == 0) {
    int step = 4 * z < half_ ? half_ >> 2 : -(half_ >> 2);
    return LOAD(source, AT_LINEAR(base + z + step, X, Y, Z));
  }
  vec4 v = vec4(0);
  [[unroll]] for (int c = 0; c < 4; c++) {
    int element = min(4 * z + c, turned - 1);
    element += element < half_ ? half_ : -half_;
    v[c] = LOAD(source, AT_LINEAR(base + (element >> 2), X, Y, Z))[element & 3];
  }
  return v;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 row_texel = DIVIDED(i, Z);
  int z = row_texel.y;
  int place = REST_OF(QUOTIENT(row_texel.x, heads), positions);
  int row = (position_at_most(table_rows - positions) + place) * table_Z;
  POSITION at = AT_LINEAR(i, X, Y, Z);
  vec4 v = LOAD(source, at);
  if (kind == COMPLEX) {
    v = turned_pairs(v, LOAD_FLAT(cosines, row + z));
  } else if (kind == PAIRS) {
    vec4 cosine = LOAD_FLAT(cosines, row + (z >> 1)), sine = LOAD_FLAT(sines, row + (z >> 1));
    v = turned_pairs(v, (z & 1) == 0 ? vec4(cosine.x, sine.x, cosine.y, sine.y)
                                     : vec4(cosine.z, sine.z, cosine.w, sine.w));
  } else if (kind == HALVES && 4 * z < turned) {
    ivec4 element = 4 * z + ivec4(0, 1, 2, 3);
    vec4 other = partners(i - z, z);
    other = mix(other, -other, lessThan(element, ivec4(turned >> 1)));
    vec4 rotated = v * LOAD_FLAT(cosines, row + z) + other * LOAD_FLAT(sines, row + z);
    v = mix(v, rotated, lessThan(element, ivec4(turned)));
  }
  STORE(result, at, mask_padding(v, VALID(z, size)));
}
