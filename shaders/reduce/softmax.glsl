// What the softmax kernels share: the source's rows, and the two reductions over a row.
//
// The including shader defines IS_PADDED(size): whether the source's packed dimension ends with
// padding. Lane by lane where the dimension is not packed: `count` places `inner` texels apart. Across the
// lanes where it is: `count` texels in a row, `inner` is 1.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"
#include "math.glsl"

ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
// 0: softmax, 1: its logarithm, 2: softmax that is 0 in rows of nothing but -infinity
CASE(4, opcode)
CASE(5, across)
PARAM(6, rows)
PARAM(7, count)
PARAM(8, inner)

#define ROW_BASE(row) \
  (across != 0 ? (row) * count : (row) + QUOTIENT(row, inner) * (count - 1) * inner)
#define TEXEL(t) LOAD(source, AT_LINEAR(t, X, Y, Z))

vec4 largest(vec4 u, vec4 v) { return mix(mix(u, v, greaterThan(v, u)), v, isnan(v)); }

// Texel k of the row, with -infinity in the place of padding lanes.
vec4 element(int base, int k) {
  vec4 v = TEXEL(base + k * inner);
  if (across != 0 && IS_PADDED(size) && k == count - 1) {
    v = mix(vec4(-INFINITY), v, lessThan(ivec4(0, 1, 2, 3), ivec4(size & 3)));
  }
  return v;
}

// The largest, and the sum, of a row, from those of its texels lane by lane.
vec4 of_row_top(vec4 top) {
  if (across == 0) return top;
  top = largest(top, top.zwxy);
  return largest(top, top.yxwz);
}
vec4 of_row_sum(vec4 sum) {
  return across != 0 ? vec4(sum.x + sum.y + (sum.z + sum.w)) : sum;
}

// The largest of the texels [begin, end) of a row.
vec4 row_top(int base, int begin, int end) {
  vec4 top = element(base, begin);
  for (int k = begin + 1; k < end; k++) top = largest(top, element(base, k));
  return of_row_top(top);
}

// The sum of exp(element - top) over them, in blocks, so that its rounding stays small.
vec4 row_sum(int base, int begin, int end, vec4 top) {
  vec4 sum = vec4(0);
  for (int block = begin; block < end; block += 64) {
    int stop = min(block + 64, end);
    vec4 part = vec4(0);
    for (int k = block; k < stop; k++) part += exp_(element(base, k) - top);
    sum += part;
  }
  return of_row_sum(sum);
}

// The result for an element, given exp(element - top), the largest of its row and the sum.
vec4 softmax_of(vec4 v, vec4 weight, vec4 top, vec4 sum) {
  if (opcode == 1) return v - top - log_(sum);
  vec4 share = weight * (1.0 / sum);
  return opcode == 2 ? mix(share, vec4(0), equal(top, vec4(-INFINITY))) : share;
}
vec4 softmax_of(vec4 v, vec4 top, vec4 sum) { return softmax_of(v, exp_(v - top), top, sum); }
