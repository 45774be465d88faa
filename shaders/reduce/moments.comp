#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16:f32
#extension GL_GOOGLE_include_directive : require
// Moments, an invocation for each part of a set: see moments.glsl.
#include "moments.glsl"

void main() {
  int i = invocation();
  if (i >= sets * parts) return;
  ivec2 part_set = DIVIDED(i, sets);
  Set s = set_of(part_set.y);
  int begin = part_set.x * chunk, end = min(begin + chunk, rows * s.count);
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0), number = vec4(0);
  start(s, begin);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    vec4 part = vec4(0);
    for (int t = block; t < stop; t++) {
      number += inside(s);
      part += next_texel(s, 0.0);
    }
    sum += part;
  }
  float elements = across_lanes(number);
  float mean = elements > 0.0 ? across_lanes(sum) / elements : 0.0;
  sum = vec4(0);
  start(s, begin);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    vec4 part = vec4(0);
    for (int t = block; t < stop; t++) {
      vec4 v = next_texel(s, mean);
      part += v * v;
    }
    sum += part;
  }
  put(i, elements, mean, across_lanes(sum));
}
