#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Rotary position embedding of queries and keys, which differ in their heads: see rotary.glsl.
// The tables are texels in every storage, as a stage may have no more than 4 storage buffers.
#define TABLES 4
#define TABLE(binding, name) TEXEL_IN(binding, name, DTYPE)
#define LOAD_TABLE(name, i) texelFetch(name, i)
#define POSITION_BINDING 6
#include "rotary.glsl"

ALIASED OUT(0, queries_result)
ALIASED OUT(1, keys_result)
ALIASED IN(2, queries)
ALIASED IN(3, keys)
// The grid of the keys is key_X x key_Y x Z.
PARAM(FURTHER, key_X)
PARAM(FURTHER + 1, key_Y)
PARAM(FURTHER + 2, key_heads)

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
#define LOAD_SOURCE LOAD
#include "rotary_turn.glsl"

void main() {
  int i = invocation();
  int behind = i - X * Y * Z;
  if (behind < 0) {
    STORE(queries_result, AT_LINEAR(i, X, Y, Z), turned_queries(i));
  } else if (behind < key_X * key_Y * Z) {
    STORE(keys_result, AT_LINEAR(behind, key_X, key_Y, Z), turned_keys(behind));
  }
}
