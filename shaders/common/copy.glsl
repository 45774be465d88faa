// The one way elements move: texel `first + i ..` of the destination, in its linear order, is
// filled from an affine walk over the source's elements.
//
// Element e of the destination (padding not counted; outer dimensions * packed + position) is
// found by the walk of walk.glsl: source element = base + sum of index_k * stride_k, in elements of the
// source's padded memory. Permutation, slicing, selection, expansion,
// flipping, changes of layout and prepacking are such walks.
//
// The including shader declares `result` and `source` and defines SOURCE_ELEMENT(s),
// SOURCE_TEXEL(t) and STORE_TEXEL(t, value).

#include "params.glsl"

CASE(0, dims)
// 0: every element is decoded; 1: the 4 elements of a texel lie `stride_0` apart;
// 2: they are one texel of the source.
CASE(1, mode)
PARAM(2, X)
PARAM(3, Y)
PARAM(4, Z)
PARAM(5, packed_size)
PARAM(6, first)
PARAM(7, count)
// Where they go: from texel `offset` on, `gap` texels skipped after every `run` (a part of a larger
// tensor).
PARAM(8, run)
PARAM(9, gap)
PARAM(10, offset)
PARAM(11, base)
PARAM(12, source_X)
PARAM(13, source_Y)
PARAM(14, source_Z)
#define WALK_SIZES 15
#include "walk.glsl"

void main() {
  int i = invocation();
  if (i >= count) return;
  int texels = (packed_size + 3) / 4;
  int number = first + i;
  ivec2 row_texel = divided(number, texels, IS_CONSTANT(packed_size));
  int p = row_texel.y * 4;
  int valid = packed_size - p;
  int s = base + walk_from(row_texel.x * packed_size + p);
  OUT4 v = OUT4(0);
  if (mode == 0) {
    v.x = SOURCE_ELEMENT(s);
    s = walk_on(s);
    if (valid > 1) v.y = SOURCE_ELEMENT(s);
    s = walk_on(s);
    if (valid > 2) v.z = SOURCE_ELEMENT(s);
    s = walk_on(s);
    if (valid > 3) v.w = SOURCE_ELEMENT(s);
  } else if (mode == 2) {
    v = mask_padding(OUT4(SOURCE_TEXEL(s >> 2)), min(valid, 4));
  } else {
    v.x = SOURCE_ELEMENT(s);
    if (valid > 1) v.y = SOURCE_ELEMENT(s + stride_0);
    if (valid > 2) v.z = SOURCE_ELEMENT(s + 2 * stride_0);
    if (valid > 3) v.w = SOURCE_ELEMENT(s + 3 * stride_0);
  }
  int t = number + QUOTIENT(number, run) * gap + offset;
  STORE_TEXEL(t, v);
}
