// Products in a GPU's shape: a workgroup of 64 invocations makes a tile of TILE rows by TILE columns of
// the result (32 or 64, which the including shader defines), and shares what it reads of both
// operands: a part of the summed dimension after the other goes through the group's shared memory,
// 8.25 to 9.25 KiB of it. Every texel is read once a group instead of once an invocation. 8 by 8
// invocations each make ROWS rows by TEXELS texels of 4 columns, 8 apart.
//
// Where there are few tiles, workgroups of the smaller one have 2 or 4 slices of 64 invocations: each
// sums every second or fourth part, in shared memory of its own, and the sums of all are added at the
// end. A loop is as many times shorter, and what waits for memory waits less often.
//
// The variants for float16 multiply in halves, and add 16 products so before the sum goes on in fp32:
// sums of halves alone would lose too much (measured on lavapipe: a relative error of 7e-4, with 32
// products 9e-4, with none 2e-4). Those for dot multiply 4 numbers of 8 bits at a time.
//
// The including shader has
//
//   void look_at(int k)            what follows is about texel k of the summed dimension
//   T4 source_texel(int line)      of the source's line `line` of those that this invocation brings
//   T4 matrix_texel(int line)      of the matrix's line likewise
//
// and gets
//
//   GROUP_NUMBER                   of this workgroup; each has a tile
//   LINE(j)                        which of a tile's lines is number j of this invocation's LINES
//   KEPT(TYPE, name), KEEPS, KEPT_LINE(j), KEPT_AT(j), LINE_AT(j)
//                                  what is kept of lines: of each name[LINE_AT(j)] says that of line
//                                  LINE(j), and before sum_up name[KEPT_AT(j)] is set to that of line
//                                  KEPT_LINE(j), for each j below KEEPS
//   sum_up(count)                  does it, over `count` texels; all of a group come to it. Whether this
//                                  invocation has the sums: only those of the first slice do
//   ROW(m), TEXEL(n), total(m, n)  a row, a texel of a row, and the sum of them, of the tile

#extension GL_EXT_control_flow_attributes : require

#define ROWS (TILE / 8)
#define TEXELS (TILE / 32)
// Texels of the summed dimension between two barriers, and lines of either operand of which an
// invocation brings one of these.
#define STEP (256 / TILE)
#define LINES 4

// Invocations of a slice (vkrt.work.target.GROUP), and how many slices there are. More invocations
// than that, of a damaged file, have no memory and do nothing.
#define SLICE 64
#if TILE == 32
#define SLICES (gl_WorkGroupSize.x >= 4 * SLICE ? 4 : gl_WorkGroupSize.x >= 2 * SLICE ? 2 : 1)
#else
#define SLICES 1
#endif
#define SLICE_NUMBER int(gl_LocalInvocationID.x / SLICE)
#define MEMBER int(gl_LocalInvocationID.x % SLICE)
#define GROUP_NUMBER int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x)
#define LINE(j) (MEMBER / STEP + (j) * (64 / STEP))
#define ROW(m) (MEMBER / 8 + 8 * (m))
#define TEXEL(n) (MEMBER % 8 + 8 * (n))

#if TILE == 64
// In the group's memory, of a line for each invocation: beside 64 sums they would be registers too
// many (Intel's compiler spills 5 to 19).
#define KEPT(TYPE, name) shared TYPE name[TILE];
#define KEEPS 1
#define KEPT_LINE(j) MEMBER
#define KEPT_AT(j) MEMBER
#define LINE_AT(j) LINE(j)
#else
#define KEPT(TYPE, name) TYPE name[LINES];
#define KEEPS LINES
#define KEPT_LINE(j) LINE(j)
#define KEPT_AT(j) (j)
#define LINE_AT(j) (j)
#endif

// PART is a texel in shared memory.
#if defined(DTYPE_i32)
#define PART ivec4
#define PART_OF(v) v
#elif defined(DTYPE_i8)
#define PART int
#define PART_OF(v) int(pack_i8(v))
#elif defined(FEATURE_FLOAT16)
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define PART f16vec4
#define PART_OF(v) f16vec4(v)
#else
#define PART vec4
#define PART_OF(v) v
#endif

// By texel of the step and line; of the matrix, lines 4 apart lie side by side, as neighbours read
// them. Neighbours write texels of a step: two more lines in between put them into different banks.
#define PITCH (TILE + 2)
#define SLICE_PARTS (STEP * PITCH)
shared PART source_parts[SLICES * SLICE_PARTS];
shared PART weight_parts[SLICES * SLICE_PARTS];

T4 sum[ROWS * TEXELS];
// Where the parts of this invocation's slice begin.
int slice_parts;

void look_at(int k);
T4 source_texel(int line);
T4 matrix_texel(int line);

#if defined(DTYPE_i8) || defined(DTYPE_i32)

// Sums of q * weight; what the source's zero adds to them is taken away at the end. For that each
// invocation sums the weights of one line. These are whole numbers too, and all of it is exact
// modulo 2^32.
int weights;
#define SUMMED_LINE (MEMBER % TILE)

#if defined(FEATURE_DOT)
#extension GL_EXT_spirv_intrinsics : require
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4450)
int dot_of_packed(int a, int b, spirv_literal int form);
#define FOUR int
#define FOUR_OF(word) word
#define ONES 0x01010101
int four(int a, int b) { return dot_of_packed(a, b, 0); }
#else
// As floats, which GPUs multiply at four times the rate of integers: 4 products of 2^14 are exact.
#define FOUR vec4
#define FOUR_OF(word) vec4(unpack_i8(uint(word)))
#define ONES vec4(1)
int four(vec4 a, vec4 b) { return int(dot(a, b)); }
#endif
// Word by word, as whole texels of all rows would be 32 registers.
#if defined(DTYPE_i32)
#define WORDS 4
#define WORD(v, e) v[e]
#else
#define WORDS 1
#define WORD(v, e) v
#endif

void begin_sum() { weights = 0; }
void multiply() {
  for (int k = 0; k < STEP; k++) {
    for (int e = 0; e < WORDS; e++) {
      int place = slice_parts + k * PITCH + SUMMED_LINE % 4 * (TILE / 4) + SUMMED_LINE / 4;
      weights += four(ONES, FOUR_OF(WORD(weight_parts[place], e)));
      FOUR v[ROWS];
      [[unroll]] for (int m = 0; m < ROWS; m++) v[m] = FOUR_OF(WORD(source_parts[slice_parts + k * PITCH + ROW(m)], e));
      [[unroll]] for (int n = 0; n < TEXELS; n++) {
        [[unroll]] for (int c = 0; c < 4; c++) {
          FOUR w = FOUR_OF(WORD(weight_parts[slice_parts + k * PITCH + c * (TILE / 4) + TEXEL(n)], e));
          [[unroll]] for (int m = 0; m < ROWS; m++) sum[m * TEXELS + n][c] += four(v[m], w);
        }
      }
    }
  }
}
void finish_sum() {
  // Nobody multiplies any more: what is too much is in the parts' place.
  barrier();
  if (MEMBER < TILE) source_parts[slice_parts + MEMBER] = PART(source_zero * weights);
  barrier();
  [[unroll]] for (int n = 0; n < TEXELS; n++) {
    [[unroll]] for (int c = 0; c < 4; c++) {
      int excess = WORD(source_parts[slice_parts + 4 * TEXEL(n) + c], 0);
      [[unroll]] for (int m = 0; m < ROWS; m++) sum[m * TEXELS + n][c] -= excess;
    }
  }
}

#else

void begin_sum() {}
#if defined(FEATURE_FLOAT16)
// Texels whose products are added in halves.
#define RUN 4
#define INTO part
#else
#define RUN STEP
#define INTO sum
#endif

void multiply() {
  for (int first = 0; first < STEP; first += RUN) {
#if defined(FEATURE_FLOAT16)
    PART part[ROWS * TEXELS];
    [[unroll]] for (int i = 0; i < ROWS * TEXELS; i++) part[i] = PART(0);
#endif
    for (int k = first; k < first + RUN; k++) {
      // Of 4 columns. Turned, so that a product is with 4 columns at a time, which halves need.
      PART columns[TEXELS][4];
      [[unroll]] for (int n = 0; n < TEXELS; n++) {
        PART w[4];
        [[unroll]] for (int c = 0; c < 4; c++)
          w[c] = weight_parts[slice_parts + k * PITCH + c * (TILE / 4) + TEXEL(n)];
        [[unroll]] for (int e = 0; e < 4; e++)
          columns[n][e] = PART(w[0][e], w[1][e], w[2][e], w[3][e]);
      }
      // A row after the other: all of them at a time would be further registers.
      [[unroll]] for (int m = 0; m < ROWS; m++) {
        PART v = source_parts[slice_parts + k * PITCH + ROW(m)];
        [[unroll]] for (int n = 0; n < TEXELS; n++)
          [[unroll]] for (int e = 0; e < 4; e++) INTO[m * TEXELS + n] += v[e] * columns[n][e];
      }
    }
#if defined(FEATURE_FLOAT16)
    [[unroll]] for (int i = 0; i < ROWS * TEXELS; i++) sum[i] += vec4(part[i]);
#endif
  }
}
void finish_sum() {}

#endif

T4 total(int m, int n) { return sum[m * TEXELS + n]; }

#if TILE == 32

// The sums of other slices, on their way to those that add them.
#define SUMS (ROWS * TEXELS)
#if defined(DTYPE_i32) || !defined(DTYPE_i8) && !defined(FEATURE_FLOAT16)
// They are as large as the parts, of which nobody multiplies any more.
#define SENT source_parts
#else
shared T4 sent[SLICES / 2 * SLICE * SUMS + 1];
#define SENT sent
#endif

void add_slices() {
  for (int half_ = SLICES / 2; half_ > 0; half_ /= 2) {
    int from = (SLICE_NUMBER - half_) * SLICE + MEMBER, to = SLICE_NUMBER * SLICE + MEMBER;
    barrier();
    if (SLICE_NUMBER >= half_ && SLICE_NUMBER < 2 * half_)
      [[unroll]] for (int i = 0; i < SUMS; i++) SENT[from * SUMS + i] = sum[i];
    barrier();
    if (SLICE_NUMBER < half_)
      [[unroll]] for (int i = 0; i < SUMS; i++) sum[i] += SENT[to * SUMS + i];
  }
}

#else

void add_slices() {}

#endif

bool sum_up(int count) {
  [[unroll]] for (int i = 0; i < ROWS * TEXELS; i++) sum[i] = T4(0);
  begin_sum();
  slice_parts = SLICE_NUMBER % SLICES * SLICE_PARTS;
  int place = SLICE_NUMBER % SLICES * STEP + MEMBER % STEP;
#if TILE == 64
  // What others keep of lines is there.
  barrier();
#endif
  for (int first = 0; first < count; first += SLICES * STEP) {
    PART a[LINES], b[LINES];
    // Beyond the end both are zero: of the source alone it would not do, a weight may be infinite.
    bool is_inside = first + place < count;
    look_at(min(first + place, count - 1));
    [[unroll]] for (int j = 0; j < LINES; j++) {
      a[j] = is_inside ? PART_OF(source_texel(j)) : PART(0);
      b[j] = is_inside ? PART_OF(matrix_texel(j)) : PART(0);
    }
    // Nobody multiplies what was there any more.
    barrier();
    [[unroll]] for (int j = 0; j < LINES; j++) {
      int line = slice_parts + MEMBER % STEP * PITCH;
      source_parts[line + LINE(j)] = a[j];
      weight_parts[line + LINE(j) % 4 * (TILE / 4) + LINE(j) / 4] = b[j];
    }
    barrier();
    multiply();
  }
  finish_sum();
  add_slices();
  return SLICE_NUMBER == 0;
}
