#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// One row times a matrix of 4-bit weights, a team (team.glsl) for every 4 columns: neighbours read texels
// of a line of the weight that lie side by side. The products are those of linear_q4_gemv.comp.
#define TILE_N 1
#include "q4_lines.glsl"
#define TEAM 10
#include "team.glsl"

void main() {
  find_team();
  int result_Z = (columns + 3) / 4;
  bool is_there = team < result_Z;
  int z = is_there ? team : 0, end = is_there ? texels : 0;
  find_lines(z);
  POSITION from = AT_ROW(0, 0, source_X, source_Z);
  vec4 sum = vec4(0);
  SHARED(t, 0, end) {
    fetch(t, z);
    vec4 products = vec4(0), total = vec4(0);
    [[unroll]] for (int k = 0; k < 8; k++) {
      vec4 v = LOAD(source, NEXT(from, 8 * t + k));
      total += v;
      v = IN_ORDER(v) * ((k & 1) == 0 ? UNIT : LAST_UNIT);
      [[unroll]] for (int c = 0; c < 4; c++) {
        int word = words[c][k >> 1];
        products[c] += dot(v, (k & 1) == 0 ? four_of(word) : last_four_of(word));
      }
    }
    sum += scale[0] * (products - 8.0 * dot(total, vec4(1)));
  }
  sum = team_sum(sum);
  if (!is_there || member != 0) return;
  POSITION at = AT_ROW(0, z, result_X, result_Z);
  STORE(result, at, ended(sum, z, at));
}
