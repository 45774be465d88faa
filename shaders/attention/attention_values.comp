#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16 i8:f32 i8:f16
//! features: none shuffle
#extension GL_GOOGLE_include_directive : require
// Rows (see attention.glsl) of scores times the values of one head.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
FLAT_AS(1, scores, f32)
FLAT(2, values)
#define POSITION_BINDING 3
#include "attention.glsl"
CASE(13, tile)
PARAM(14, size)
#include "attention_tile.glsl"

void main() {
  int i = numbered();
  if (!is_there(i, Z)) return;
  Tile here = tile_at(i, Z, IS_CONSTANT(Z));
  // Scores of keys that a row does not see are zero as far as the block's last query looks.
  int last = last_key(QUOTIENT(here.end - 1, group));
  int z = here.texel + i % LANES, heads = kv_heads * group;
  ivec2 owner = item_head(here.head);

  int line[LINES(MOST_ROWS)];
  [[unroll]] for (int j = 0; j < LINES(MOST_ROWS); j++) {
    ivec2 row = DIVIDED(min(here.row + LINE(j), here.end - 1), group);
    line[j] = ((owner.x * count + row.x) * heads + owner.y * group + row.y) * width;
  }
  int head = (owner.x * rows * kv_heads + owner.y) * HEAD_TEXELS;
  int column = head + (LANES > 1 ? min(z, Z - 1) : z);
  vec4 sum[MOST_ROWS];
  EACH_ROW(m) sum[m] = vec4(0);
  for (int t = 0; 4 * t <= last; t++) {
    vec4 v[4];
    [[unroll]] for (int c = 0; c < 4; c++) {
      int place = min(4 * t + c, last) * kv_heads * HEAD_TEXELS;
#ifdef CACHE_IN_8_BITS
      Quantization by = quantization_of(LOAD_FLAT(values, place + head));
      v[c] = by.scale * vec4(LOAD_FLAT(values, place + 1 + column) - by.zero_point);
#else
      v[c] = LOAD_FLAT(values, place + column);
#endif
    }
#define SCORES(j) LOAD_FLAT_AS(scores, line[j] + t, f32)
    TEXELS_AS(vec4, own, MOST_ROWS, SCORES)
    EACH_ROW(m) {
      vec4 p = TEXEL_OF(own, m, SCORES);
      sum[m] += p.x * v[0] + p.y * v[1] + p.z * v[2] + p.w * v[3];
    }
  }
  if (LANES > 1 && z >= Z) return;
#define PUT(row, v) \
  ivec2 place = DIVIDED(row, group); \
  STORE(result, AT(owner.y * group + place.y, owner.x * queries + first + place.x, z, heads, Z), \
        MASKED(v, z, size));
  PUT_ROWS(here, sum, PUT)
}
