// Winograd's F(4x4, 3x3): a tile of 4x4 pixels of a convolution with a 3x3 kernel and stride 1 by 36
// instead of 144 multiplications for each pair of channels. Tiles of 6x6 pixels, kernels and results
// are polynomials, evaluated at 5 points and infinity in both directions; in between is a product
// of matrices for each of the 36 pairs of points.
//
// The points are 0, +-3/4 and +-3/2: with them the error is 1.6 times that of the direct sum
// (256 channels, fp32), with the usual 0, +-1 and +-2 it is 3.5 times.
//
// Sizes are pushed: these kernels have no loops to fold, and are long enough that each pipeline less
// to compile counts more than a few divisions.

#define TILE 4
#define POINTS 6
const float A = 0.75, B = 1.5;
const float AA = A * A, BB = B * B;
// What weights are divided by at either pair of points, the other way round
const float TO_A = 1.0 / (2.0 * AA * (AA - BB)), TO_B = 1.0 / (2.0 * BB * (BB - AA));

// The address `columns`, or `rows`, further on in a tensor of X columns and Z texels.
#if defined(STORAGE_TEXTURE3D)
#define RIGHT(at, columns, Z) ivec3((at).x + (columns), (at).yz)
#define DOWN(at, rows, X, Z) ivec3((at).x, (at).y + (rows), (at).z)
#else
#define RIGHT(at, columns, Z) ((at) + (columns) * (Z))
#define DOWN(at, rows, X, Z) ((at) + (rows) * ((X) * (Z)))
#endif

// A column or row of 6 pixels at the points.
void pixels_to_points(inout vec4 v[POINTS]) {
  vec4 a_even = v[4] - BB * v[2], a_odd = A * (v[3] - BB * v[1]);
  vec4 b_even = v[4] - AA * v[2], b_odd = B * (v[3] - AA * v[1]);
  vec4 zero = v[4] - (AA + BB) * v[2] + AA * BB * v[0];
  vec4 infinity = v[5] - (AA + BB) * v[3] + AA * BB * v[1];
  v = vec4[](zero, a_even + a_odd, a_even - a_odd, b_even + b_odd, b_even - b_odd, infinity);
}

// A column or row of 3 weights at the points, divided by what pixels_to_points multiplies with.
void weights_to_points(vec4 g[3], out vec4 v[POINTS]) {
  vec4 a_even = TO_A * (g[0] + AA * g[2]), a_odd = TO_A * A * g[1];
  vec4 b_even = TO_B * (g[0] + BB * g[2]), b_odd = TO_B * B * g[1];
  v = vec4[](g[0] / (AA * BB), a_even + a_odd, a_even - a_odd, b_even + b_odd, b_even - b_odd,
             g[2]);
}

// A column or row of products at the points as 4 pixels of the result.
void points_to_pixels(vec4 m[POINTS], out vec4 v[TILE]) {
  vec4 a_sum = m[1] + m[2], a_difference = A * (m[1] - m[2]);
  vec4 b_sum = m[3] + m[4], b_difference = B * (m[3] - m[4]);
  v[0] = m[0] + a_sum + b_sum;
  v[1] = a_difference + b_difference;
  v[2] = AA * a_sum + BB * b_sum;
  v[3] = AA * a_difference + BB * b_difference + m[5];
}
