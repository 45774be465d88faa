// Rows times a matrix (product.glsl) by workgroups that share tiles of both (shared_tile.glsl).
#include "product.glsl"
#include "places.glsl"
#include "shared_tile.glsl"

// Where rows of the source and lines of the matrix begin.
KEPT(POSITION, from)
KEPT(LINE_POSITION, begin)
int at_k, first_column;
ivec2 parts;

void look_at(int k) { at_k = k; }
T4 source_texel(int j) { return IN_ORDER(LOAD(source, NEXT(from[LINE_AT(j)], at_k))); }
T4 matrix_texel(int j) {
  int column = min(first_column + LINE(j), columns - 1);
  if (lies >= ACROSS) {
    T4 v;
    [[unroll]] for (int c = 0; c < 4; c++)
      v[c] = across(parts, 4 * at_k + c, column >> 2)[column & 3];
    return v;
  }
  return weights_at(begin[LINE_AT(j)], at_k, column);
}

void main() {
  int tiles = (rows + TILE - 1) / TILE;
  int blocks = (columns + TILE - 1) / TILE;
  // A whole group.
  if (GROUP_NUMBER >= tiles * blocks * batches) return;
  bool is_constant = IS_CONSTANT(rows);
  ivec2 batch_place = divided(GROUP_NUMBER, tiles * blocks, is_constant);
  ivec2 place = divided(batch_place.y, tiles, is_constant);
  int batch = batch_place.x, first = place.y * TILE;
  first_column = place.x * TILE;

  parts = batch_parts(batch);
  [[unroll]] for (int j = 0; j < KEEPS; j++) {
    from[KEPT_AT(j)] = source_at(batch, parts, min(first + KEPT_LINE(j), rows - 1));
    if (lies < ACROSS)
      begin[KEPT_AT(j)] = line_at(batch, parts, min(first_column + KEPT_LINE(j), columns - 1));
  }
  if (!sum_up(texels)) return;

  int result_texels = (columns + 3) / 4;
  [[unroll]] for (int n = 0; n < TEXELS; n++) {
    int z = first_column / 4 + TEXEL(n);
    if (z >= result_texels) break;
    EPILOGUE epilogue = epilogue_at(z);
    [[unroll]] for (int m = 0; m < ROWS; m++) {
      int row = first + ROW(m);
      // Not a break: see conv2d_shared.glsl.
      POSITION at = result_at(batch, parts, min(row, rows - 1), z);
      T4 sums = SCALED(total(m, n), z);
      OUT4 v = mask_padding(finished(sums, epilogue, at), VALID(z, columns));
      if (row < rows) STORE(result, at, v);
    }
  }
}
