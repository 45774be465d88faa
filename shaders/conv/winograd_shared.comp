#version 450
//! storages: texel buffer texture3d
//! dtypes: f32
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Winograd's F(2x2, 3x3) by workgroups that share memory: tiles of 2x2 pixels of a convolution with a 3x3 kernel
// and stride 1 by 16 instead of 36 multiplications for each pair of channels, in one dispatch and without
// scratch memory. Tiles of 4x4 pixels and kernels are evaluated at 0, 1, -1 and infinity in both
// directions; sums are made at each of the 16 pairs of points. (winograd.glsl has F(4x4, 3x3), whose 36 pairs are
// more than a workgroup's memory and invocations hold without spilling registers.)
//
// A workgroup of 256 invocations makes 32 tiles by 32 channels of the result. It brings 4 input channels of its
// pixels and weights to the points, where they stay in its shared memory (16 KiB), multiplies there, and goes
// on with the next 4. An invocation sums at one pair of points, for 8 of the tiles and 2 texels of channels.
//
// Of few pixels it makes 16 tiles by 16 channels, by 128 invocations that sum for 4 tiles each. Where there are few
// of these workgroups, each has 2 or 4 slices of so many invocations, which take every second or fourth texel of the
// input channels, in shared memory of their own.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
WEIGHT(2, weight)
PUSHED(0, X)
PUSHED(1, H)
PUSHED(2, Z)
PUSHED(3, out_X)
PUSHED(4, out_H)
PUSHED(5, channels)
// Tiles of a row, rows of tiles of an image, and tiles of all images
PUSHED(6, tiles_x)
PUSHED(7, tiles_y)
PUSHED(8, tiles)
PUSHED(9, padding_x)
PUSHED(10, padding_y)
// Tiles and channels of a workgroup: 32, or 16 of few pixels
CASE(11, side)
#define VECTORS 3
#define ENDS 12
#include "epilogue.glsl"

// A column of a row as the way from its first one, and the address so far on; also in a matrix of weights.
#if defined(STORAGE_TEXTURE3D)
#define COLUMN(x) (x)
#define FURTHER(at, column) ((at) + ivec3(column, 0, 0))
#else
#define COLUMN(x) ((x) * Z)
#define FURTHER(at, column) ((at) + (column))
#endif
#define TILE 2
#define POINTS 4
#define PAIRS (POINTS * POINTS)
#define SIDE (side == 32 ? 32 : 16)
// Tiles, at most and of an invocation, and its texels; neighbours that divide the tiles of a pair of points, and the
// texels: what an invocation has is as far apart.
#define MOST_ROWS 8
#define ROWS (SIDE / 4)
#define TEXELS 2
#define APART 4
#define ACROSS (SIDE / 8)
// Invocations of a slice
#define MEMBERS (PAIRS * APART * ACROSS)
#define SLICES (gl_WorkGroupSize.x >= 4 * MEMBERS ? 4 : gl_WorkGroupSize.x >= 2 * MEMBERS ? 2 : 1)
// In shared memory, by slice and pair of points (y, x): tiles, then channels, of which those 4 apart lie side by
// side, as neighbours read them. The sums go through the same memory, 4 tiles and a texel of each invocation after
// the other.
#define PITCH (2 * SIDE)
#define SLICE_PARTS (PAIRS * PITCH)
#define PASS_ROWS 4
#define PASSES (ROWS / PASS_ROWS * TEXELS)
// Of an invocation: its pair of points, and the first of its tiles and texels. Not kept: they would be registers
// too many on Intel's.
#define PAIR(member) int((member) / (APART * ACROSS))
#define FIRST_TILE(member) int((member) % APART)
#define FIRST_TEXEL(member) int((member) / APART % ACROSS)
shared vec4 parts[SLICES * SLICE_PARTS];

// Of a tile: its first pixel (x, y) in the result, and its image.
ivec3 place_of(int tile) {
  ivec2 row_tile = divided(min(tile, tiles - 1), tiles_x), image_row = divided(row_tile.x, tiles_y);
  return ivec3(TILE * row_tile.y, TILE * image_row.y, image_row.x);
}
// Whether pixels of its image are in a tile. Of others zero times a pixel would not be zero where that is a NaN.
bool is_met(ivec3 place) {
  int left = place.x - padding_x, top = place.y - padding_y;
  return left < X && left + POINTS > 0 && top < H && top + POINTS > 0;
}

void main() {
  int slice = int(gl_LocalInvocationID.x / MEMBERS % SLICES);
  uint member = gl_LocalInvocationID.x % MEMBERS;
  int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  int blocks = (tiles + SIDE - 1) / SIDE;
  // A whole group.
  if (group >= blocks * ((channels + SIDE - 1) / SIDE)) return;
  ivec2 block = divided(group, blocks);
  int first_tile = block.y * SIDE, first_channel = block.x * SIDE, begin = slice * SLICE_PARTS;

  // Half of the invocations bring pixels to the points, the others weights: each a row of points of a tile or of
  // a channel.
  bool brings_pixels = member < SIDE * POINTS;
  int line = int(member % SIDE), number = int(member / SIDE % POINTS);
  int to = begin + POINTS * number * PITCH + line;
  // Of pixels the row is a sum or a difference of two rows. Those outside have the factor zero, and are those of
  // a place that is inside.
  ivec3 place = place_of(first_tile + line);
  ivec4 x = place.x - padding_x + ivec4(0, 1, 2, 3), near_x = clamp(x, 0, X - 1);
  ivec2 y = place.y - padding_y + ivec2(number == 0 ? 0 : number == 2 ? 2 : 1, number == 3 ? 3 : number == 2 ? 1 : 2);
  ivec2 near = clamp(y, 0, H - 1);
  vec2 of_rows = mix(vec2(0), vec2(1, number == 1 ? 1 : -1), equal(near, y));
  vec4 factors = mix(vec4(0), vec4(1), equal(near_x, x));
  POSITION first = AT(near_x[0], place.z * H + near.x, slice, X, Z), other = AT(near_x[0], place.z * H + near.y, slice, X, Z);
  int columns[POINTS];
  [[unroll]] for (int k = 0; k < POINTS; k++) columns[k] = COLUMN(near_x[k] - near_x[0]);
  if (!brings_pixels) {
    int row = min(first_channel + line, channels - 1);
    first = WEIGHT_AT(row, slice, 9 * Z);
    // Of weights it is a sum of three.
    factors = vec4(number == 0 ? vec3(1, 0, 0) : number == 3 ? vec3(0, 0, 1) : vec3(0.5, number == 1 ? 0.5 : -0.5, 0.5), 0);
    to += SIDE + line % 4 * (SIDE / 4) + line / 4 - line;
  }

  vec4 sum[MOST_ROWS * TEXELS];
  [[unroll]] for (int i = 0; i < MOST_ROWS * TEXELS; i++) sum[i] = vec4(0);
  for (int z = 0; z < Z; z += SLICES) {
    vec4 v[POINTS];
    if (brings_pixels) {
      vec4 p[POINTS];
      [[unroll]] for (int k = 0; k < POINTS; k++)
        p[k] = factors[k] * of_rows.x * LOAD(source, FURTHER(first, columns[k]))
               + factors[k] * of_rows.y * LOAD(source, FURTHER(other, columns[k]));
      v = vec4[](p[0] - p[2], p[1] + p[2], p[2] - p[1], p[1] - p[3]);
    } else {
      vec4 g[3];
      [[unroll]] for (int k = 0; k < 3; k++) {
        g[k] = vec4(0);
        [[unroll]] for (int m = 0; m < 3; m++)
          g[k] += factors[m] * LOAD_WEIGHT(weight, FURTHER(first, (3 * m + k) * Z));
      }
      vec4 even = 0.5 * (g[0] + g[2]);
      v = vec4[](g[0], even + 0.5 * g[1], even - 0.5 * g[1], g[2]);
    }
    // The next texel: none is beyond the last, as the number of slices divides Z.
    first = brings_pixels ? NEXT(first, SLICES) : FURTHER(first, SLICES);
    other = NEXT(other, SLICES);
    // Nobody multiplies what was there any more.
    barrier();
    [[unroll]] for (int k = 0; k < POINTS; k++) parts[to + k * PITCH] = v[k];
    barrier();
    // Turned, so that a product is with 4 channels of the result at a time, as the sums are.
    int pair = begin + PAIR(member) * PITCH, pixels_at = pair + FIRST_TILE(member), weights_at = pair + SIDE + FIRST_TEXEL(member);
    vec4 w[TEXELS][4];
    [[unroll]] for (int n = 0; n < TEXELS; n++) {
      vec4 of[4];
      [[unroll]] for (int c = 0; c < 4; c++)
        of[c] = parts[weights_at + c * (SIDE / 4) + ACROSS * n];
      [[unroll]] for (int e = 0; e < 4; e++) w[n][e] = vec4(of[0][e], of[1][e], of[2][e], of[3][e]);
    }
    [[unroll]] for (int m = 0; m < MOST_ROWS; m++) {
      if (m == ROWS) break;
      vec4 pixels = parts[pixels_at + APART * m];
      [[unroll]] for (int n = 0; n < TEXELS; n++)
        [[unroll]] for (int e = 0; e < 4; e++) sum[m * TEXELS + n] += pixels[e] * w[n][e];
    }
  }

  // A pass has as many places as a pair of points has parts; each invocation of the first slice makes a pixel of one.
  int slot = int(member % PITCH), pixel = int(member / PITCH), pixel_y = pixel / TILE, pixel_x = pixel % TILE;
  vec3 of_y = pixel_y == 0 ? vec3(1) : vec3(1, -1, -1), of_x = pixel_x == 0 ? vec3(1) : vec3(1, -1, -1);
  int own = begin + PAIR(member) * PITCH + FIRST_TILE(member) * ACROSS + FIRST_TEXEL(member);
  for (int pass = 0; pass < PASSES; pass++) {
    barrier();
    // Compared, as an index has to be known when it is compiled.
    [[unroll]] for (int q = 0; q < MOST_ROWS / PASS_ROWS * TEXELS; q++) {
      if (q == pass) {
        [[unroll]] for (int m = 0; m < PASS_ROWS; m++)
          parts[own + APART * ACROSS * m] = sum[(q / TEXELS * PASS_ROWS + m) * TEXELS + q % TEXELS];
      }
    }
    barrier();
    int tile = first_tile + pass / TEXELS * (PASS_ROWS * APART) + slot / ACROSS;
    int z = first_channel / 4 + slot % ACROSS + ACROSS * (pass % TEXELS);
    ivec3 place = place_of(tile);
    int x = place.x + pixel_x, y = place.y + pixel_y;
    if (slice == 0 && tile < tiles && 4 * z < channels && x < out_X && y < out_H) {
      vec4 total = vec4(0);
      for (int s = 0; s < SLICES; s++) {
        [[unroll]] for (int j = 0; j < 3; j++) {
          vec4 in_row = vec4(0);
          [[unroll]] for (int i = 0; i < 3; i++)
            in_row += of_x[i] * parts[s * SLICE_PARTS + (POINTS * (pixel_y + j) + pixel_x + i) * PITCH + slot];
          total += of_y[j] * in_row;
        }
      }
      if (!is_met(place)) total = vec4(0);
      STORE(result, AT(x, place.z * out_H + y, z, out_X, (channels + 3) / 4),
            mask_padding(activated(total + epilogue_at(z)), VALID(z, channels)));
    }
  }
}
