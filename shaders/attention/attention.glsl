// Attention over a cache of keys and values: what its kernels have in common.
//
//   scores[s, h, l] = scale * dot(query[s, h], keys[l, h / group]) + mask
//   result[s, h] = sum over l of softmax(scores)[s, h, l] * values[l, h / group]
//
// for each item of a batch, over the keys l that query s sees. Others are not read, so a cache costs
// what is in it and not what it could hold.
//
// Variants of two dtypes read caches in 8 bits; the second one is that of the queries and the result.
#include "cache.glsl"

PARAM(0, group)
PARAM(1, kv_heads)
// Texels of one head.
PARAM(2, Z)
PARAM(3, queries)
// Of the cache.
PARAM(4, rows)
// Whether a query sees the keys up to its own, or up to that of the last one.
PARAM(5, is_causal)
#define POSITION_PARAM 6
#include "position.glsl"
// Items of the batch beyond the first.
CASE(8, further)
// With a mask, of any kind but 0, a query sees all keys of the cache: ADDED to the scores, or CHOOSES
// where it is not 0 which keys count.
CASE(9, mask_kind)
PARAM_FLOAT(10, scale)
// Elements of a head.
PARAM(11, size)

#define MINUS_INFINITY uintBitsToFloat(0xff800000u)

// The last key that the first query sees, and how many more each further one sees.
int first_last_key() {
  if (mask_kind != 0) return rows - 1;
  return position_at_most(rows - queries) + (is_causal != 0 ? 0 : queries - 1);
}
int more_keys() { return mask_kind == 0 && is_causal != 0 ? 1 : 0; }
