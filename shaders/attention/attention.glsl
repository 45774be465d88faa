// Attention over a cache of keys and values: what its three kernels have in common.
//
//   scores[s, h, l] = scale * dot(query[s, h], keys[l, h / group]) + mask   attention_scores
//   scores[s, h, :] = softmax over the keys that query s sees          attention_softmax, in place
//   result[s, h] = sum over l of scores[s, h, l] * values[l, h / group]   attention_values
//
// for each item of a batch.
//
// Queries are done in blocks, so that the scores stay small however many there are. A block has
// `count` queries from `first` on. Keys beyond those that are seen are neither read nor scored, so
// a cache costs what is in it and not what it could hold.
//
// Heads that share keys are neighbours: `group` of them and the queries of a block make the rows
// of a tile, row r being query r / group of the block and head r % group of the group.
//
// Variants of two dtypes read caches in 8 bits; the second one is that of the queries and the result.
#include "cache.glsl"

PARAM(0, group)
PARAM(1, kv_heads)
// Texels of one head; of a row of scores.
PARAM(2, Z)
PARAM(3, width)
PARAM(4, first)
PARAM(5, count)
// All queries, all rows of the cache.
PARAM(6, queries)
PARAM(7, rows)
// Whether a query sees the keys up to its own, or up to that of the last one.
PARAM(8, is_causal)
#define POSITION_PARAM 9
#include "position.glsl"
// Items of the batch beyond the first.
CASE(11, further)
// With a mask, of any kind but 0, a query sees all keys of the cache: ADDED to the scores, or CHOOSES
// where it is not 0 which keys count.
CASE(12, mask_kind)

// The position of the first of all queries.
int begin() { return position_at_most(rows - queries); }
// The last key that query `s` of the block sees.
int last_key(int s) {
  return mask_kind != 0 ? rows - 1 : begin() + (is_causal != 0 ? first + s : queries - 1);
}
// Which item of the batch, and which head of the cache, is number `head` of all items' heads.
ivec2 item_head(int head) { return further == 0 ? ivec2(0, head) : DIVIDED(head, kv_heads); }
// The block's query that row i of its scores, of all items, is for.
int query_of(int i) {
  int s = divided(i, kv_heads * group).x;
  return further == 0 ? s : REST_OF(s, count);
}
// Whether a mask hides all keys from a query, whose largest score is `top`: its result is zero.
bool sees_nothing(float top) { return mask_kind != 0 && top == uintBitsToFloat(0xff800000u); }
