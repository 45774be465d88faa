#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16:f32
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// Moments, a team for each part of a set: see moments.glsl and team.glsl.
#include "moments.glsl"
#define TEAM 10
#include "team.glsl"

void main() {
  find_team();
  bool is_there = team < sets * parts;
  int i = is_there ? team : 0;
  ivec2 part_set = DIVIDED(i, sets);
  Set s = set_of(part_set.y);
  int begin = part_set.x * chunk, end = is_there ? min(begin + chunk, rows * s.count) : begin;
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0), number = vec4(0);
  for (int block = begin; block < end; block += 64 * MEMBERS) {
    vec4 part = vec4(0);
    SHARED(t, block, min(block + 64 * MEMBERS, end)) {
      start(s, t);
      number += inside(s);
      part += next_texel(s, 0.0);
    }
    sum += part;
  }
  float elements = across_lanes(team_sum(number));
  float total = across_lanes(team_sum(sum));
  float mean = elements > 0.0 ? total / elements : 0.0;
  sum = vec4(0);
  for (int block = begin; block < end; block += 64 * MEMBERS) {
    vec4 part = vec4(0);
    SHARED(t, block, min(block + 64 * MEMBERS, end)) {
      start(s, t);
      vec4 v = next_texel(s, mean);
      part += v * v;
    }
    sum += part;
  }
  float squares = across_lanes(team_sum(sum));
  if (is_there && member == 0) put(i, elements, mean, squares);
}
