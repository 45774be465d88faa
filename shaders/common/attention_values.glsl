// TILE rows (see attention.glsl) of scores times a texel of one head's values: the including
// shader defines TILE.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
FLAT_AS(1, scores, f32)
FLAT(2, values)
#define POSITION_BINDING 3
#include "attention.glsl"

void main() {
  int i = invocation();
  int tiles = (count * group + TILE - 1) / TILE;
  if (i >= kv_heads * tiles * Z) return;
  ivec2 tile_texel = DIVIDED(i, Z), head_tile = divided(tile_texel.x, tiles);
  int head = head_tile.x, z = tile_texel.y;
  int heads = kv_heads * group;
  ivec2 row[TILE];
  int line[TILE];
  [[unroll]] for (int m = 0; m < TILE; m++) {
    row[m] = DIVIDED(min(head_tile.y * TILE + m, count * group - 1), group);
    line[m] = (row[m].x * heads + head * group + row[m].y) * width;
  }
  vec4 sum[TILE];
  [[unroll]] for (int m = 0; m < TILE; m++) sum[m] = vec4(0);
  // Scores of keys that a row does not see are zero as far as the block's last query looks.
  int last = last_key(row[TILE - 1].x);
  for (int t = 0; 4 * t <= last; t++) {
    vec4 v[4];
    [[unroll]] for (int c = 0; c < 4; c++) {
      int key = min(4 * t + c, last);
      v[c] = LOAD_FLAT(values, (key * kv_heads + head) * Z + z);
    }
    [[unroll]] for (int m = 0; m < TILE; m++) {
      vec4 p = LOAD_FLAT_AS(scores, line[m] + t, f32);
      sum[m] += p.x * v[0] + p.y * v[1] + p.z * v[2] + p.w * v[3];
    }
  }
  [[unroll]] for (int m = 0; m < TILE; m++)
    if (head_tile.y * TILE + m < count * group)
      STORE(result, AT(head * group + row[m].y, first + row[m].x, z, heads, Z), sum[m]);
}
