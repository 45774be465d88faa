#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// softmax.comp with a team for each row: see team.glsl. The result may lie over the source.
#define IS_PADDED(size) HAS_PADDING(size)
#include "softmax.glsl"
#define TEAM 9
#include "team.glsl"
#include "team_extremes.glsl"

vec4 team_largest(vec4 v) { JOIN(v, subgroup_largest, largest) }

ALIASED OUT(0, result)

void main() {
  find_team();
  bool is_there = team < rows;
  int row = is_there ? team : 0;
  int base = ROW_BASE(row), z = REST_OF(row, Z), end = is_there ? count : 0;
  vec4 top = vec4(-INFINITY);
  SHARED(k, 0, end) top = largest(top, element(base, k));
  top = of_row_top(team_largest(top));
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0);
  for (int block = 0; block < end; block += 64 * MEMBERS) {
    vec4 part = vec4(0);
    SHARED(k, block, min(block + 64 * MEMBERS, end)) part += exp_(element(base, k) - top);
    sum += part;
  }
  sum = of_row_sum(team_sum(sum));
  SHARED(k, 0, end) {
    int t = base + k * inner;
    vec4 v = softmax_of(TEXEL(t), top, sum);
    STORE(result, AT_LINEAR(t, X, Y, Z), MASKED(v, across != 0 ? k : z, size));
  }
}
