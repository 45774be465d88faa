#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16:f32
#extension GL_GOOGLE_include_directive : require
// The first stage of a normalization: how many elements there are, their mean, and the sum of the
// squares of their distances from it, for each part of each set of elements.
//
// A set is `rows` rows of texels of the source, of which `across` sets share the packed dimension,
// `width` elements each.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, sets)
PARAM(4, across)
PARAM(5, rows)
PARAM(6, width)
PARAM(7, chunk)
PARAM(8, parts)
PARAM(9, result_X)

// Where a set lies: its first texel, the texels of one of its rows, and its elements of the packed
// dimension.
struct Set { int base, count, low, high; };

Set set_of(int number) {
  int low = number % across * width, high = low + width;
  int first = low >> 2;
  return Set(number / across * rows * Z + first, ((high - 1) >> 2) - first + 1, low, high);
}

// Which lanes of the set's texel t are inside of it.
vec4 inside(Set s, int t) {
  ivec4 e = ((s.low >> 2) + t % s.count) * 4 + ivec4(0, 1, 2, 3);
  return vec4(greaterThanEqual(e, ivec4(s.low))) * vec4(lessThan(e, ivec4(s.high)));
}

// The set's texel t less `origin`, zero outside of the set.
vec4 element(Set s, int t, float origin) {
  int at = s.base + t / s.count * Z + t % s.count;
  vec4 v = LOAD(source, AT_LINEAR(at, X, Y, Z)) - origin;
  return mix(vec4(0), v, notEqual(inside(s, t), vec4(0)));
}

float across_lanes(vec4 v) { return v.x + v.y + (v.z + v.w); }

void main() {
  int i = invocation();
  if (i >= sets * parts) return;
  Set s = set_of(i % sets);
  int begin = i / sets * chunk, end = min(begin + chunk, rows * s.count);
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0), number = vec4(0);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    vec4 part = vec4(0);
    for (int t = block; t < stop; t++) {
      part += element(s, t, 0.0);
      number += inside(s, t);
    }
    sum += part;
  }
  float elements = across_lanes(number);
  float mean = elements > 0.0 ? across_lanes(sum) / elements : 0.0;
  sum = vec4(0);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    vec4 part = vec4(0);
    for (int t = block; t < stop; t++) {
      vec4 v = element(s, t, mean);
      part += v * v;
    }
    sum += part;
  }
  STORE(result, AT_LINEAR(i, result_X, 0, 1), vec4(elements, mean, across_lanes(sum), 0));
}
