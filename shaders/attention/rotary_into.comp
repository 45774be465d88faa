#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 f32:i8 f16:i8
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding of queries and keys (rotary.glsl), of which the keys go into their cache,
// and so do the values: see rows_into.glsl. Caches of 8 bits have an invocation for each head.
//
// Of what it reads only the queries are a storage buffer: a stage may have no more than 4.
#define TABLES 6
#define TABLE(binding, name) TEXEL_IN(binding, name, DTYPE)
#define LOAD_TABLE(name, i) texelFetch(name, i)
#define POSITION_BINDING 8
#include "rotary.glsl"
#include "cache.glsl"

ALIASED OUT_AS(0, queries_result, DTYPE)
SSBO_OUT(1, key_cache, DTYPE_OUT)
SSBO_OUT(2, value_cache, DTYPE_OUT)
ALIASED IN(3, queries)
IN_TEXELS(4, keys)
IN_TEXELS(5, values)
// The grid of the keys and of the values is key_X x key_Y x Z.
PARAM(FURTHER, key_X)
PARAM(FURTHER + 1, key_Y)
PARAM(FURTHER + 2, key_heads)
// Texels of a row of a cache, and its rows.
PARAM(FURTHER + 3, slab)
PARAM(FURTHER + 4, rows)
// Where the first row goes, as position.glsl reads it.
TEXEL_IN(9, place, i32)
PARAM(FURTHER + 5, place_element)
PARAM(FURTHER + 6, place_base)
// Items of the batch beyond the first.
CASE(FURTHER + 7, further)

// Where texel i of the keys, or of the values, goes.
int place_of(int i) {
  int row = NUMBER_AT_MOST(place, place_element, place_base, rows - positions);
  return cache_place(i, row, positions, rows, slab, further);
}

#define SOURCE queries
#define TURN turned_queries
#define PARTNERS query_partners
#define WIDTH X
#define HEIGHT Y
#define HEADS heads
#define LOAD_SOURCE LOAD
#include "rotary_turn.glsl"
#define SOURCE keys
#define TURN turned_keys
#define PARTNERS key_partners
#define WIDTH key_X
#define HEIGHT key_Y
#define HEADS key_heads
#define LOAD_SOURCE LOAD_TEXELS
#include "rotary_turn.glsl"

void main() {
  int i = invocation();
#ifdef CACHE_IN_8_BITS
  // Heads of the keys, and behind them those of the values
  int count = 2 * key_X * key_Y;
#else
  int count = key_X * key_Y * Z;
#endif
  if (i < X * Y * Z) {
    STORE_AS(queries_result, AT_LINEAR(i, X, Y, Z), turned_queries(i), DTYPE);
    return;
  }
  int key = i - X * Y * Z;
  if (key >= count) return;
#ifdef CACHE_IN_8_BITS
  int value = key - key_X * key_Y;
  if (value < 0) {
#define KEY(z) turned_keys(key * Z + z)
    WRITE_HEAD(key_cache, place_of(key * HEAD_TEXELS), KEY)
  } else {
#define VALUE(z) LOAD_TEXELS(values, AT_LINEAR(value * Z + z, key_X, key_Y, Z))
    WRITE_HEAD(value_cache, place_of(value * HEAD_TEXELS), VALUE)
  }
#else
  key_cache[place_of(key)] = PASTE(pack_, DTYPE)(turned_keys(key));
  vec4 v = LOAD_TEXELS(values, AT_LINEAR(key, key_X, key_Y, Z));
  value_cache[place_of(key)] = PASTE(pack_, DTYPE)(v);
#endif
}
