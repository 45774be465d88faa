#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32 u8 i8
#extension GL_GOOGLE_include_directive : require
// Matrices, row-major, of which one side of a diagonal stays and the other becomes zero.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
// How far right of the main diagonal the diagonal lies, which stays.
PARAM(5, diagonal)

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  ivec2 line = DIVIDED(i, Z);
  // A column less its row: within 32 bits, while the diagonal may be any number.
  ivec4 right = 4 * line.y + ivec4(0, 1, 2, 3) - REST_OF(line.x, X);
  T4 v = LOAD(source, AT_LINEAR(i, X, Y, Z));
  for (int lane = 0; lane < 4; lane++) {
    bool stays = opcode == TRIL && right[lane] <= diagonal || opcode == TRIU && right[lane] >= diagonal;
    if (!stays) v[lane] = T(0);
  }
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(line.y, size)));
}
