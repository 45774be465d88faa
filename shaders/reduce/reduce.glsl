// What the kernels of reductions share: sum, maximum, minimum or product over dimensions of the source.
//
// Each element of the result combines `count` texels: over up to 3 reduced dimensions of the source
// (`extent_k` long, `step_k` texels apart, innermost first). Either lane by lane, where the packed
// dimension is kept; or across the lanes, where it is reduced: it is then reduced dimension 0, and
// the result's packed dimension is one that lies `lane_stride` texels apart in the source.
// A long reduction is split: invocations of part p combine texels [p * chunk, (p + 1) * chunk), and
// the parts lie one behind the other in the result, for a second dispatch to combine.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
CASE(5, across)
// Texels of one part, and the kept dimensions outside of the result's packed one.
PARAM(6, texels)
PARAM(7, size_0)
PARAM(8, size_1)
PARAM(9, stride_0)
PARAM(10, stride_1)
PARAM(11, stride_2)
PARAM(12, lane_stride)
PARAM(13, count)
PARAM(14, chunk)
CASE(15, dims)
PARAM(16, extent_0)
PARAM(17, extent_1)
PARAM(18, step_0)
PARAM(19, step_1)
PARAM(20, step_2)
// Elements in the last texel of the packed dimension.
PARAM(21, tail)
PARAM_FLOAT(22, divisor)
PARAM(23, source_X)
PARAM(24, source_Y)
PARAM(25, source_Z)

#if defined(DTYPE_i32)
#define LEAST int(0x80000000)
#define GREATEST 0x7fffffff
T4 larger(T4 u, T4 v) { return max(u, v); }
T4 smaller(T4 u, T4 v) { return min(u, v); }
#elif defined(DTYPE_u8)
#define LEAST 0u
#define GREATEST 255u
T4 larger(T4 u, T4 v) { return max(u, v); }
T4 smaller(T4 u, T4 v) { return min(u, v); }
#else
#define LEAST intBitsToFloat(0xff800000)
#define GREATEST intBitsToFloat(0x7f800000)
// A NaN on either side stays.
T4 larger(T4 u, T4 v) { return mix(mix(u, v, greaterThan(v, u)), v, isnan(v)); }
T4 smaller(T4 u, T4 v) { return mix(mix(u, v, lessThan(v, u)), v, isnan(v)); }
#endif

T4 combine(T4 u, T4 v) {
  switch (opcode) {
    case SUM: case SQUARES: return u + v;
    case MAX: return larger(u, v);
    case MIN: return smaller(u, v);
    case PROD: return u * v;
  }
  return u;
}
T4 neutral() {
  return opcode == SUM || opcode == SQUARES ? T4(0) : opcode == MAX ? T4(LEAST) : opcode == MIN ? T4(GREATEST) : T4(1);
}

// The texel of the source that comes next, and its places in reduced dimensions 0 and 1.
int at, place_0, place_1;

void start(int base, int r) {
  ivec2 outer = dims == 1 ? ivec2(0, r) : DIVIDED(r, extent_0);
  ivec2 rest = dims == 2 ? ivec2(0, outer.x) : DIVIDED(outer.x, extent_1);
  place_0 = outer.y;
  place_1 = rest.y;
  at = base + place_0 * step_0;
  if (dims > 1) at += place_1 * step_1;
  if (dims > 2) at += rest.x * step_2;
}

T4 next_texel() {
  T4 v = LOAD(source, AT_LINEAR(at, source_X, source_Y, source_Z));
  if (opcode == SQUARES) v *= v;
  // Padding is zero, which a sum does not see.
  if (across != 0 && opcode != SUM && opcode != SQUARES && tail < 4 && place_0 == extent_0 - 1) {
    v = mix(neutral(), v, lessThan(ivec4(0, 1, 2, 3), ivec4(tail)));
  }
  at += step_0;
  place_0++;
  if (dims > 1) {
    bool carry = place_0 == extent_0;
    place_0 = carry ? 0 : place_0;
    at += carry ? step_1 - extent_0 * step_0 : 0;
    if (dims > 2) {
      place_1 += int(carry);
      carry = place_1 == extent_1;
      place_1 = carry ? 0 : place_1;
      at += carry ? step_2 - extent_1 * step_1 : 0;
    }
  }
  return v;
}

T across_lanes(T4 v) {
  T4 pairs = combine(v, v.zwxy);
  return combine(pairs, pairs.yxwz).x;
}

// Where texel i of the result is: its part, its texel of a row, and the first texel of the source that
// it takes, lane 0's where the packed dimension is reduced.
ivec3 place_of(int i) {
  ivec2 part = DIVIDED(i, texels), row = DIVIDED(part.y, Z);
  ivec2 outer = DIVIDED(row.x, size_0), rest = DIVIDED(outer.x, size_1);
  return ivec3(part.x, row.y, outer.y * stride_0 + rest.y * stride_1 + rest.x * stride_2);
}

void put(int i, int z, T4 v) {
#if !defined(DTYPE_i32) && !defined(DTYPE_u8)
  v /= divisor;
#endif
  STORE(result, AT_LINEAR(i, X, Y, Z), mask_padding(v, VALID(z, size)));
}
