#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
//! features: none subgroups
#extension GL_GOOGLE_include_directive : require
// rms_norm.comp with a team for each row: see team.glsl. The result may lie over the source.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
FLAT(2, weight)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Elements of a row.
PARAM(3, size)
PARAM(4, rows)
PARAM_FLOAT(5, epsilon)
#define TEAM 6
#include "team.glsl"

#define TEXEL(k) LOAD(source, AT_LINEAR(base + (k), X, Y, Z))

void main() {
  find_team();
  int base = team * Z, end = team < rows ? Z : 0;
  // In blocks, so that the rounding of long sums stays small.
  vec4 sum = vec4(0);
  for (int block = 0; block < end; block += 64 * MEMBERS) {
    vec4 squares = vec4(0);
    SHARED(k, block, min(block + 64 * MEMBERS, end)) {
      vec4 v = TEXEL(k);
      squares += v * v;
    }
    sum += squares;
  }
  float mean = dot(team_sum(sum), vec4(1)) / float(size);
  float scale = 1.0 / sqrt(mean + epsilon);
  SHARED(k, 0, end) {
    vec4 v = TEXEL(k) * scale * LOAD_FLAT(weight, k);
    STORE(result, AT_LINEAR(base + k, X, Y, Z), mask_padding(v, VALID(k, size)));
  }
}
