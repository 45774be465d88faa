// A strided copy, the one way elements move: texel `first + i ..` of the destination, in its linear
// order, is filled from source elements base + sum of index_k * stride_k (strided_index.glsl), in
// elements of the source's padded memory. Permutation, slicing, selection, expansion, flipping,
// changes of layout and prepacking are strided copies.
//
// The including shader declares `result` and `source` and defines SOURCE_ELEMENT(s),
// SOURCE_TEXEL(t) and STORE_TEXEL(t, value).

// Numbers of elements are divided too, where the copy goes by these: exactly.
#define ONLY_TEXELS
#include "params.glsl"

CASE(0, dims)
// 0: the copy goes by the destination's elements (padding not counted), every one is decoded.
// Else it goes by texels: their 4 elements lie stride_0 / 4 apart (1), or are a texel of the
// source (2).
CASE(1, mode)
PARAM(2, X)
PARAM(3, Y)
PARAM(4, Z)
// Elements after which padding fills a texel: of the destination's packed dimension, or, where the
// copy goes by texels, of its innermost dimension.
PARAM(5, width)
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
CASE(31, has_gaps)
#define STRIDED_SIZES 15
#define STRIDED_DIVIDED(e, size) \
  (mode == 0 ? divided_exactly(e, size, IS_CONSTANT(size)) : DIVIDED(e, size))
#include "strided_index.glsl"

void main() {
  int i = invocation();
  if (i >= count) return;
  int number = first + i;
  OUT4 v = OUT4(0);
  if (mode == 0) {
    ivec2 row_texel = divided(number, (width + 3) / 4, IS_CONSTANT(width));
    int p = row_texel.y * 4;
    int valid = width - p;
    int s = base + strided_index(row_texel.x * width + p);
    v.x = SOURCE_ELEMENT(s);
    s = next_strided_index(s);
    if (valid > 1) v.y = SOURCE_ELEMENT(s);
    s = next_strided_index(s);
    if (valid > 2) v.z = SOURCE_ELEMENT(s);
    s = next_strided_index(s);
    if (valid > 3) v.w = SOURCE_ELEMENT(s);
  } else {
    int s = base + strided_index(number);
    int z = index_0;
    if (mode == 2) {
      v = MASKED(OUT4(SOURCE_TEXEL(s >> 2)), z, width);
    } else {
      int step = stride_0 >> 2;
      v.x = SOURCE_ELEMENT(s);
      if (IS_INSIDE(1, z, width)) v.y = SOURCE_ELEMENT(s + step);
      if (IS_INSIDE(2, z, width)) v.z = SOURCE_ELEMENT(s + 2 * step);
      if (IS_INSIDE(3, z, width)) v.w = SOURCE_ELEMENT(s + 3 * step);
    }
  }
  int t = has_gaps != 0 ? number + QUOTIENT(number, run) * gap : number;
  STORE_TEXEL(t + offset, v);
}
