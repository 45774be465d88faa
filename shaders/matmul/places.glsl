// Where rows of the source, lines of the matrix and rows of the result begin: of tensors that lie
// whole, one behind the other, as texels of a grid; or, of parts of tensors (`lies`), in a buffer at
// distances of their own. A batch is then two numbers, as heads and windows are two dimensions: the
// inner one runs from 0 to `inner` - 1.
//
// A matrix that lies apart has its lines along the summed dimension, as others have (APART), or
// across it (ACROSS, and ACROSS_RAGGED where the summed dimension ends within a texel).
#define APART 1
#define ACROSS 2
#define ACROSS_RAGGED 3

#if (defined(DTYPE_f32) || defined(DTYPE_f16)) && !defined(STORAGE_TEXTURE3D) \
    && defined(HAS_PLACES) && !defined(GEMV)

// In texels: the first one, and from one to the next of the outer and the inner batches and of the
// rows or lines.
#define PLACES(i, name) \
  PARAM(i, name##_first) \
  PARAM(i + 1, name##_outer) \
  PARAM(i + 2, name##_inner) \
  PARAM(i + 3, name##_next)
PARAM(16, inner)
PLACES(17, source)
PLACES(21, matrix)
PLACES(25, result)
// Elements that are summed.
PARAM(29, depth)
CASE(30, lies)

#define IN_BATCH(name, batch) ((batch).x * name##_outer + (batch).y * name##_inner)
#define PLACE(name, batch, k) (name##_first + IN_BATCH(name, batch) + (k) * name##_next)
#define RESULT_PLACE(batch, row, z) (PLACE(result, batch, row) + (z))
// Texel z of row k of a matrix that lies across: zeros beyond the last one.
vec4 across(ivec2 batch, int k, int z) {
  vec4 v = LOAD_WEIGHT(matrix, PLACE(matrix, batch, lies == ACROSS ? k : min(k, depth - 1)) + z);
  return lies == ACROSS || k < depth ? v : vec4(0);
}

// The two numbers of a batch.
ivec2 batch_parts(int batch) { return lies != 0 ? DIVIDED(batch, inner) : ivec2(0); }

LINE_POSITION line_at(int batch, ivec2 parts, int column) {
  return lies != 0 ? PLACE(matrix, parts, column) : MATRIX_AT(batch, column);
}

#else

#define lies 0
ivec2 batch_parts(int batch) { return ivec2(0); }
#define PLACE(name, batch, k) POSITION(0)
#define RESULT_PLACE(batch, row, z) POSITION(0)
T4 across(ivec2 batch, int k, int z) { return T4(0); }
LINE_POSITION line_at(int batch, ivec2 parts, int column) { return MATRIX_AT(batch, column); }

#endif

POSITION source_at(int batch, ivec2 parts, int row) {
  return lies != 0 ? PLACE(source, parts, row) : AT_ROW(batch * rows + row, 0, source_X, texels);
}
POSITION result_at(int batch, ivec2 parts, int row, int z) {
  return lies != 0 ? RESULT_PLACE(parts, row, z)
                   : AT_ROW(batch * rows + row, z, result_X, (columns + 3) / 4);
}
