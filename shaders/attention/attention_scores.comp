#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8:f32 i8:f16
//! features: none shuffle
#extension GL_GOOGLE_include_directive : require
// Rows (see attention.glsl) times the keys of one head.
#include "tensor.glsl"
#include "params.glsl"

SSBO_OUT(0, scores, f32)
IN_AS(1, query, DTYPE_OUT)
FLAT(2, keys)
#define POSITION_BINDING 3
#include "attention.glsl"
PARAM_FLOAT(13, scale)
CASE(14, tile)
// [item, head, query, key], of which the first three may be 1: their strides in texels.
FLAT_AS(4, mask, f32)
PARAM(15, mask_item)
PARAM(16, mask_head)
PARAM(17, mask_query)
#include "attention_tile.glsl"

// Scores with texel t of the mask.
vec4 masked(vec4 v, int t) {
  if (mask_kind == ADDED) return v + LOAD_FLAT_AS(mask, t, f32);
  if (mask_kind == CHOOSES)
    return mix(v, vec4(uintBitsToFloat(0xff800000u)), equal(LOAD_FLAT_AS(mask, t, f32), vec4(0)));
  return v;
}

void main() {
  int i = numbered();
  if (!is_there(i, width)) return;
  Tile here = tile_at(i, width, IS_CONSTANT(width));
  int last = last_key(QUOTIENT(here.end - 1, group));
  // For all lanes alike
  if (4 * here.texel > last) return;
  int texel = here.texel + i % LANES, heads = kv_heads * group;
  ivec2 owner = item_head(here.head);

  POSITION from[LINES(MOST_ROWS)];
  [[unroll]] for (int j = 0; j < LINES(MOST_ROWS); j++) {
    ivec2 row = DIVIDED(min(here.row + LINE(j), here.end - 1), group);
    from[j] = AT(owner.y * group + row.y, owner.x * queries + first + row.x, 0, heads, Z);
  }
  int line[4];
  [[unroll]] for (int c = 0; c < 4; c++)
    line[c] = ((owner.x * rows + min(4 * texel + c, rows - 1)) * kv_heads + owner.y) * HEAD_TEXELS;
#ifdef CACHE_IN_8_BITS
  ivec4 zero_points;
  vec4 scales;
  [[unroll]] for (int c = 0; c < 4; c++) {
    Quantization head = quantization_of(LOAD_FLAT(keys, line[c]));
    zero_points[c] = head.zero_point;
    scales[c] = head.scale;
  }
#define KEY(c, z) vec4(LOAD_FLAT(keys, line[c] + 1 + z) - zero_points[c])
#else
#define KEY(c, z) LOAD_FLAT(keys, line[c] + z)
#endif
  vec4 sum[MOST_ROWS];
  EACH_ROW(m) sum[m] = vec4(0);
  for (int z = 0; z < Z; z++) {
    vec4 k[4];
    [[unroll]] for (int c = 0; c < 4; c++) k[c] = KEY(c, z);
#define QUERY(j) LOAD_AS(query, NEXT(from[j], z), DTYPE_OUT)
    TEXELS_AS(vec4, own, MOST_ROWS, QUERY)
    EACH_ROW(m) {
      vec4 q = TEXEL_OF(own, m, QUERY);
      sum[m] += vec4(dot(q, k[0]), dot(q, k[1]), dot(q, k[2]), dot(q, k[3]));
    }
  }
#ifdef CACHE_IN_8_BITS
  EACH_ROW(m) sum[m] *= scales;
#endif
  if (LANES > 1 && 4 * texel > last) return;
#define PUT(row, v) \
  ivec2 place = DIVIDED(row, group); \
  int head = owner.y * group + place.y; \
  scores[((owner.x * count + place.x) * heads + head) * width + texel] = masked( \
      scale * v, owner.x * mask_item + head * mask_head + (first + place.x) * mask_query + texel);
  PUT_ROWS(here, sum, PUT)
}
