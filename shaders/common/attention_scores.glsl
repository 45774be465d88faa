// TILE rows (see attention.glsl) times 4 keys of one head: the including shader defines TILE.
#extension GL_EXT_control_flow_attributes : require
#include "tensor.glsl"
#include "params.glsl"

SSBO_OUT(0, scores, f32)
IN(1, query)
FLAT(2, keys)
#define POSITION_BINDING 3
#include "attention.glsl"
PARAM_FLOAT(11, scale)

void main() {
  int i = invocation();
  int tiles = (count * group + TILE - 1) / TILE;
  if (i >= kv_heads * tiles * width) return;
  ivec2 tile_texel = DIVIDED(i, width), head_tile = divided(tile_texel.x, tiles);
  int head = head_tile.x, key = 4 * tile_texel.y;
  ivec2 row[TILE];
  [[unroll]] for (int m = 0; m < TILE; m++)
    row[m] = DIVIDED(min(head_tile.y * TILE + m, count * group - 1), group);
  if (key > last_key(row[TILE - 1].x)) return;

  int line[4];
  [[unroll]] for (int c = 0; c < 4; c++)
    line[c] = (min(key + c, rows - 1) * kv_heads + head) * Z;
  vec4 sum[TILE];
  [[unroll]] for (int m = 0; m < TILE; m++) sum[m] = vec4(0);
  int heads = kv_heads * group;
  for (int z = 0; z < Z; z++) {
    vec4 k[4];
    [[unroll]] for (int c = 0; c < 4; c++) k[c] = LOAD_FLAT(keys, line[c] + z);
    [[unroll]] for (int m = 0; m < TILE; m++) {
      vec4 q = LOAD(query, AT(head * group + row[m].y, first + row[m].x, z, heads, Z));
      sum[m] += vec4(dot(q, k[0]), dot(q, k[1]), dot(q, k[2]), dot(q, k[3]));
    }
  }
  [[unroll]] for (int m = 0; m < TILE; m++)
    if (head_tile.y * TILE + m < count * group)
      scores[(row[m].x * heads + head * group + row[m].y) * width + tile_texel.y] = scale * sum[m];
}
