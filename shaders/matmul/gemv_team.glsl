// One row times a matrix (product.glsl), with a team (team.glsl) for each texel of 4 columns of the
// result: neighbours read texels of the row, and of the lines of the matrix, that lie side by side.
#extension GL_EXT_control_flow_attributes : require
#include "product.glsl"
// Behind the parameters of all epilogues.
#define TEAM 24
#include "team.glsl"

// The products of texel k of the row and of a line.
T4 products_of(POSITION from, POSITION line, int k) {
  T4 source_texel = LOAD(source, NEXT(from, k));
  T4 weight_texel = LOAD_MATRIX(MATRIX_NEXT(line, k));
#if defined(DTYPE_i32)
  T4 sum = T4(0);
  [[unroll]] for (int part = 0; part < 4; part++)
    sum += NUMBER(0, NUMBERS(source_texel, part)) * NUMBERS(weight_texel, part);
  return sum;
#else
  return source_of(source_texel) * weight_texel;
#endif
}

void main() {
  find_team();
  int result_texels = (columns + 3) / 4;
  bool is_there = team < batches * result_texels;
  ivec2 place = divided(is_there ? team : 0, result_texels);
  int batch = place.x, z = place.y, end = is_there ? texels : 0;
  POSITION from = AT_ROW(batch, 0, source_X, texels), line[4];
  [[unroll]] for (int c = 0; c < 4; c++) line[c] = MATRIX_AT(batch, min(4 * z + c, columns - 1));
  T4 products[4] = T4[](T4(0), T4(0), T4(0), T4(0));
  SHARED(k, 0, end) {
    [[unroll]] for (int c = 0; c < 4; c++) products[c] += products_of(from, line[c], k);
  }
  T4 sum;
  [[unroll]] for (int c = 0; c < 4; c++) sum[c] = sum_of(products[c]);
  sum = team_sum(sum);
  if (!is_there || member != 0) return;
  POSITION at = AT_ROW(batch, z, result_X, result_texels);
  STORE(result, at, mask_padding(finished(SCALED(sum, z), epilogue_at(z), at), VALID(z, columns)));
}
