#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i32
#extension GL_GOOGLE_include_directive : require
// Running sums and products along one dimension, of which an invocation has a line for itself: the
// lines of 4 lanes, or across the lanes of texels where the dimension is the packed one.
#include "tensor.glsl"
#include "params.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
CASE(5, across)
// Texels of a line, and from one to the next.
PARAM(6, count)
PARAM(7, inner)

T4 joined(T4 u, T4 v) { return opcode == PROD ? u * v : u + v; }
T joined(T u, T v) { return opcode == PROD ? u * v : u + v; }

void main() {
  int i = invocation();
  if (i >= (across != 0 ? X * Y : QUOTIENT(X * Y * Z, count))) return;
  ivec2 line = DIVIDED(i, inner);
  int at = line.x * count * inner + line.y;
  T4 neutral = T4(opcode == PROD ? 1 : 0);
  // In blocks, so that the rounding of a long sum grows with the number of blocks only.
  T4 total = neutral, block = neutral;
  for (int n = 0; n < count; n++, at += inner) {
    if ((n & 63) == 0) {
      total = joined(total, block);
      block = neutral;
    }
    T4 v = LOAD(source, AT_LINEAR(at, X, Y, Z));
    if (across != 0) {
      // The running result is the same in all lanes of `total` and `block`.
      v.x = joined(block.x, v.x);
      v.y = joined(v.x, v.y);
      v.z = joined(v.y, v.z);
      v.w = joined(v.z, v.w);
      block = v.wwww;
      v = joined(total, v);
    } else {
      block = joined(block, v);
      v = joined(total, block);
    }
    int z = across != 0 ? n : REST_OF(at, Z);
    STORE(result, AT_LINEAR(at, X, Y, Z), mask_padding(v, VALID(z, size)));
  }
}
