// Products with channels per group that are not whole texels, element by element. Goes on from
// conv_params.glsl.

// The products of the pixel `x` of a row of the source with one tap, for the channels of texel z.
vec4 products(int x, int row, int z, int tap) {
  int texels = (group_inputs + 3) / 4;
  vec4 sum = vec4(0);
  int lanes = VALID(z, channels);
  for (int lane = 0; lane < lanes; lane++) {
    int o = 4 * z + lane;
    int inputs = QUOTIENT(o, group_channels) * group_inputs;
    for (int c = 0; c < group_inputs; c++) {
      int e = inputs + c;
      POSITION w = WEIGHT_AT(o, tap * texels + (c >> 2), kernel_y * kernel_x * texels);
      sum[lane] += LOAD(source, AT(x, row, e >> 2, X, Z))[e & 3] * LOAD_WEIGHT(weight, w)[c & 3];
    }
  }
  return sum;
}
