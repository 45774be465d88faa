#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8:f32 i8:f16
#extension GL_GOOGLE_include_directive : require
// Attention (attention.glsl) of one query of one head a workgroup, without a mask: all scores are in
// the memory that the group shares.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN_AS(1, query, DTYPE_OUT)
FLAT(2, keys)
FLAT(3, values)
#define POSITION_BINDING 4
#include "attention.glsl"

// Of a cache, of a head, of a group (vkrt/ops/attention_row.py): drivers check no index of shared
// memory, and parameters may come from a damaged file.
#define MOST_KEYS 2048
#define MOST_TEXELS 64
#define MOST_MEMBERS 256

shared vec4 asked[MOST_TEXELS];
shared float weight_of[MOST_KEYS];
shared float found[MOST_MEMBERS];
shared vec4 parts[MOST_MEMBERS];

#define MEMBERS int(gl_WorkGroupSize.x)
#define MEMBER int(gl_LocalInvocationID.x % MOST_MEMBERS)

float larger(float u, float v) { return max(u, v); }
float added(float u, float v) { return u + v; }
// What all members have found, put together by COMBINE; they are a power of two.
#define JOINED(v, COMBINE) \
  barrier(); \
  found[MEMBER] = v; \
  for (int half_ = MEMBERS / 2; half_ > 0; half_ /= 2) { \
    barrier(); \
    if (MEMBER < half_) \
      found[MEMBER] = COMBINE(found[MEMBER], found[(MEMBER + half_) % MOST_MEMBERS]); \
  } \
  barrier(); \
  v = found[0];

#ifdef CACHE_IN_8_BITS
#define HEAD_OF(cache, place) Quantization head = quantization_of(LOAD_FLAT(cache, place));
#define ELEMENTS(cache, place, z) \
  (head.scale * vec4(LOAD_FLAT(cache, (place) + 1 + (z)) - head.zero_point))
#else
#define HEAD_OF(cache, place)
#define ELEMENTS(cache, place, z) LOAD_FLAT(cache, (place) + (z))
#endif

void main() {
  int number = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  int heads = kv_heads * group;
  // A whole group.
  if (number >= (further + 1) * queries * heads) return;
  ivec2 row = divided(number, heads);
  ivec2 place = further == 0 ? ivec2(0, row.x) : DIVIDED(row.x, queries);
  int head = row.y, item = place.x, s = place.y;
  // Heads of keys before those of the item's first row, and up to its own.
  int before = item * rows * kv_heads + QUOTIENT(head, group);
  int last = min(first_last_key() + more_keys() * s, MOST_KEYS - 1), width = min(Z, MOST_TEXELS);
  int place_of_row = item * queries + s;

  POSITION from = AT(head, place_of_row, 0, heads, Z);
  for (int z = MEMBER; z < width; z += MEMBERS) asked[z] = LOAD_AS(query, NEXT(from, z), DTYPE_OUT);
  barrier();
  float top = MINUS_INFINITY;
  for (int l = MEMBER; l <= last; l += MEMBERS) {
    int place = (l * kv_heads + before) * HEAD_TEXELS;
    HEAD_OF(keys, place)
    float sum = 0.0;
    // Four are fetched before any is used: memory then answers them together.
    for (int z = 0; z < width; z += 4) {
      vec4 k[4];
      [[unroll]] for (int i = 0; i < 4; i++) k[i] = ELEMENTS(keys, place, min(z + i, width - 1));
      [[unroll]] for (int i = 0; i < 4; i++)
        if (z + i < width) sum += dot(asked[z + i], k[i]);
    }
    weight_of[l] = scale * sum;
    top = max(top, scale * sum);
  }
  JOINED(top, larger)
  float sum = 0.0;
  for (int l = MEMBER; l <= last; l += MEMBERS) {
    float weight = exp(weight_of[l] - top);
    weight_of[l] = weight;
    sum += weight;
  }
  JOINED(sum, added)

  // A texel of the result is summed by `each` members, which take every `each`th key.
  int each = max(MEMBERS / width, 1);
  ivec2 share = divided(MEMBER, width);
  vec4 own = vec4(0);
  if (share.x < each) {
    for (int l = share.x; l <= last; l += 4 * each) {
      vec4 v[4];
      [[unroll]] for (int i = 0; i < 4; i++) {
        int place = (min(l + i * each, last) * kv_heads + before) * HEAD_TEXELS;
        HEAD_OF(values, place)
        v[i] = ELEMENTS(values, place, share.y);
      }
      [[unroll]] for (int i = 0; i < 4; i++)
        if (l + i * each <= last) own += weight_of[l + i * each] * v[i];
    }
  }
  parts[MEMBER] = own;
  barrier();
  if (MEMBER >= width) return;
  vec4 v = vec4(0);
  for (int part = 0; part < each; part++) v += parts[(part * width + MEMBER) % MOST_MEMBERS];
  STORE(result, AT(head, place_of_row, MEMBER, heads, Z), MASKED(v / sum, MEMBER, size));
}
