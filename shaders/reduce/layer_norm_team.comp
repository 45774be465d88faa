#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// layer_norm.comp with a team for each row: see team.glsl. The result may lie over the source.
#include "layer_norm.glsl"
#define TEAM 10
#include "team.glsl"

void main() {
  find_team();
  int base = team * count, end = team < rows ? count : 0;
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0);
  for (int block = 0; block < end; block += 64 * MEMBERS) {
    vec4 part = vec4(0);
    SHARED(k, block, min(block + 64 * MEMBERS, end)) part += TEXEL(base + k);
    sum += part;
  }
  float mean = across_lanes(team_sum(sum)) / float(length);
  sum = vec4(0);
  for (int block = 0; block < end; block += 64 * MEMBERS) {
    vec4 part = vec4(0);
    SHARED(k, block, min(block + 64 * MEMBERS, end)) part += square_of(base, k, mean);
    sum += part;
  }
  float scale = 1.0 / sqrt(across_lanes(team_sum(sum)) / float(length) + epsilon);
  SHARED(k, 0, end) put_normalized(base, k, mean, scale);
}
