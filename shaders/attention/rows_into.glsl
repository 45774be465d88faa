// Rows of caches replaced by those of tensors, from a row on that is known when this runs. A cache is
// a buffer in every storage; the others of its rows stay as they are. The including shader defines
// POSITION_BINDING.
#include "tensor.glsl"
#include "params.glsl"

PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
// Texels of a row of a cache; rows of a cache, and of a tensor.
PARAM(3, slab)
PARAM(4, rows)
PARAM(5, count)
#define POSITION_PARAM 6
#include "position.glsl"
// Items of the batch beyond the first.
CASE(8, further)
#include "cache.glsl"

// Where texel i of a tensor goes.
int place_of(int i) {
  return cache_place(i, position_at_most(rows - count), count, rows, slab, further);
}
