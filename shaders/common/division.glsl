// Division of whole numbers that are not negative, 0 <= a < 2^31, by 0 < b < 2^31.
//
// Drivers fold a division by a constant to a multiplication. One by any other number is the slowest
// instruction there is, and drivers on CPUs do it lane by lane: here it is done through floats and
// is exact. Where u is 2^-23: conversions and a product err by u at most, a quotient by 2.5 u, so
// `scale` times float(n) is n / b (1 + e) with |e| < 6 u.
//
// The first quotient is too large or too small by |e| a / b + 1 at most. That leaves
// -|e| a <= rest <= b + |e| a, which an int holds (|e| a < 1540). A second one of rest / b errs by
// less than |e| (1 + 1540 / b). If b < 2^20 that is less than 1 / b, so it is truncated wrongly at
// whole numbers only; else |rest / b| < 1.01, and it is -1, 0 or 1. Either way what is left lies
// between -b and 2 b, and one step in either direction remains.
//
// Where every dividend of a dispatch is below 1,390,000, a step suffices: a + 0.5 is a float,
// (a + 0.5) / b is 0.5 / b away from every whole number at least, and (a + 0.5) * scale errs by less
// than that: by 3 u (a + 0.5) / b where float(b) is exact, and elsewhere b > 2^24 > a.
//
// The host says whether that is so: of elements and invocations (`Dispatch.is_small`), or, to
// shaders that define ONLY_TEXELS because they divide no numbers of elements, of texels and
// invocations (`Dispatch.has_few_texels`).
#ifdef ONLY_TEXELS
layout(constant_id = 103) const int is_small = 0;
#else
layout(constant_id = 101) const int is_small = 0;
#endif

// The quotient and the rest, of any numbers.
ivec2 divided_exactly(int a, int b) {
  float scale = 1.0 / float(b);
  // The largest float that is an int: float(a) may be 2^31.
  int q = int(min(float(a) * scale, 2147483520.0));
  int rest = a - q * b;
  int more = int(float(rest) * scale);
  q += more;
  rest -= more * b;
  return rest < 0 ? ivec2(q - 1, rest + b) : rest >= b ? ivec2(q + 1, rest - b) : ivec2(q, rest);
}

ivec2 divided_exactly(int a, int b, bool is_constant) {
  return is_constant ? ivec2(a / b, a % b) : divided_exactly(a, b);
}

// The same of numbers that the elements of an operand, or the invocations, bound.
ivec2 divided(int a, int b) {
  if (is_small == 0) return divided_exactly(a, b);
  int q = int((float(a) + 0.5) * (1.0 / float(b)));
  return ivec2(q, a - q * b);
}

// The same where the divisor may be compiled in.
ivec2 divided(int a, int b, bool is_constant) {
  return is_constant ? ivec2(a / b, a % b) : divided(a, b);
}
int quotient(int a, int b, bool is_constant) { return is_constant ? a / b : divided(a, b).x; }
int rest_of(int a, int b, bool is_constant) { return is_constant ? a % b : divided(a, b).y; }

// a / b, a % b and both, where b is a PARAM.
#define QUOTIENT(a, b) quotient(a, b, IS_CONSTANT(b))
// Of what strides, paddings and dilations make large as well.
#define EXACT_QUOTIENT(a, b) divided_exactly(a, b, IS_CONSTANT(b)).x
#define REST_OF(a, b) rest_of(a, b, IS_CONSTANT(b))
#define DIVIDED(a, b) divided(a, b, IS_CONSTANT(b))

// Where texel number i of a tensor is in an image, and texel z of one of its rows.
ivec3 row_place(int row, int z, int X, bool X_constant) {
  return ivec3(divided(row, X, X_constant).yx, z);
}
ivec3 linear_place(int i, int X, bool X_constant, int Z, bool Z_constant) {
  ivec2 row = divided(i, Z, Z_constant);
  return row_place(row.x, row.y, X, X_constant);
}

// Whether a PARAM is compiled in.
#define IS_CONSTANT(name) (name##_constant != UNSET)
