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
// on with the next 4. An invocation sums at one pair of points, for 8 of the tiles, 4 apart, and 2 texels of
// channels, 4 apart.
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
#define VECTORS 3
#define ENDS 11
#include "epilogue.glsl"

// The address `columns` pixels and z texels further on, and that in a matrix
#if defined(STORAGE_TEXTURE3D)
#define FURTHER(at, columns, z) ((at) + ivec3(columns, 0, z))
#define WEIGHT_FURTHER(at, columns) ((at) + ivec3(columns, 0, 0))
#else
#define FURTHER(at, columns, z) ((at) + (columns) * Z + (z))
#define WEIGHT_FURTHER(at, columns) ((at) + (columns))
#endif
#define TILE 2
#define POINTS 4
#define PAIRS (POINTS * POINTS)
// Tiles and channels of a workgroup, and its invocations
#define TILES 32
#define COLUMNS 32
#define MEMBERS 256
// Tiles and texels of an invocation, and how far they are apart
#define ROWS 8
#define TEXELS 2
#define APART 4
// In shared memory, by pair of points (y, x): tiles, then channels, of which those 4 apart lie side by side, as
// neighbours read them. The sums go through the same memory, a quarter after the other.
#define PITCH (TILES + COLUMNS)
#define QUARTERS 4
// Of an invocation: its pair of points, and the first of its tiles and texels. Not kept: they would be registers
// too many on Intel's.
#define PAIR(member) ((member) / (APART * APART))
#define FIRST_TILE(member) ((member) % APART)
#define FIRST_TEXEL(member) ((member) / APART % APART)
shared vec4 parts[PAIRS * PITCH];

// Of a tile: its first pixel (x, y) in the result, and its image.
ivec3 place_of(int tile) {
  ivec2 row_tile = divided(min(tile, tiles - 1), tiles_x), image_row = divided(row_tile.x, tiles_y);
  return ivec3(TILE * row_tile.y, TILE * image_row.y, image_row.x);
}

void main() {
  // More invocations than there are, of a damaged file, do what the last one does.
  int member = min(int(gl_LocalInvocationID.x), MEMBERS - 1);
  int group = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  int blocks = (tiles + TILES - 1) / TILES;
  // A whole group.
  if (group >= blocks * ((channels + COLUMNS - 1) / COLUMNS)) return;
  ivec2 block = divided(group, blocks);
  int first_tile = block.y * TILES, first_channel = block.x * COLUMNS;

  // Half of the invocations bring pixels to the points, the others weights: each a row of points of a tile or of
  // a channel.
  bool brings_pixels = member < TILES * POINTS;
  int line = member % TILES, number = member / TILES % POINTS;
  // Of pixels the row is a sum or a difference of two rows; those outside have the factor zero, and their
  // pixels are of a row that is inside.
  ivec3 place = place_of(first_tile + line);
  int left = place.x - padding_x, top = place.y - padding_y;
  ivec2 y = top + ivec2(number == 0 ? 0 : number == 2 ? 2 : 1, number == 3 ? 3 : number == 2 ? 1 : 2);
  ivec2 near = clamp(y, 0, H - 1);
  vec3 factors = vec3(mix(vec2(0), vec2(1, number == 1 ? 1 : -1), equal(near, y)), 0);
  POSITION first = AT(0, place.z * H + near.x, 0, X, Z), other = AT(0, place.z * H + near.y, 0, X, Z);
  bool is_met = top < H && top + POINTS > 0;
  // Of weights it is a sum of three, from one address on.
  if (!brings_pixels) {
    first = WEIGHT_AT(min(first_channel + line, channels - 1), 0, 9 * Z);
    factors = number == 0 ? vec3(1, 0, 0) : number == 3 ? vec3(0, 0, 1) : vec3(0.5, number == 1 ? 0.5 : -0.5, 0.5);
  }

  vec4 sum[ROWS * TEXELS];
  [[unroll]] for (int i = 0; i < ROWS * TEXELS; i++) sum[i] = vec4(0);
  for (int z = 0; z < Z; z++) {
    vec4 v[POINTS];
    if (brings_pixels) {
      vec4 p[POINTS];
      [[unroll]] for (int x = 0; x < POINTS; x++) {
        int column = clamp(left + x, 0, X - 1);
        p[x] = factors.x * LOAD(source, FURTHER(first, column, z)) + factors.y * LOAD(source, FURTHER(other, column, z));
        if (!is_met || column != left + x) p[x] = vec4(0);
      }
      v = vec4[](p[0] - p[2], p[1] + p[2], p[2] - p[1], p[1] - p[3]);
    } else {
      vec4 g[3];
      [[unroll]] for (int x = 0; x < 3; x++) {
        g[x] = vec4(0);
        [[unroll]] for (int k = 0; k < 3; k++)
          g[x] += factors[k] * LOAD_WEIGHT(weight, WEIGHT_FURTHER(first, (3 * k + x) * Z + z));
      }
      vec4 even = 0.5 * (g[0] + g[2]);
      v = vec4[](g[0], even + 0.5 * g[1], even - 0.5 * g[1], g[2]);
    }
    int to = POINTS * number * PITCH + (brings_pixels ? line : TILES + line % 4 * (COLUMNS / 4) + line / 4);
    // Nobody multiplies what was there any more.
    barrier();
    [[unroll]] for (int x = 0; x < POINTS; x++) parts[to + x * PITCH] = v[x];
    barrier();
    // Turned, so that a product is with 4 channels of the result at a time, as the sums are.
    int mine = PAIR(member) * PITCH + FIRST_TILE(member), theirs = PAIR(member) * PITCH + TILES + FIRST_TEXEL(member);
    vec4 w[TEXELS][4];
    [[unroll]] for (int n = 0; n < TEXELS; n++) {
      vec4 of[4];
      [[unroll]] for (int c = 0; c < 4; c++)
        of[c] = parts[theirs + c * (COLUMNS / 4) + APART * n];
      [[unroll]] for (int e = 0; e < 4; e++) w[n][e] = vec4(of[0][e], of[1][e], of[2][e], of[3][e]);
    }
    [[unroll]] for (int m = 0; m < ROWS; m++) {
      vec4 pixels = parts[mine + APART * m];
      [[unroll]] for (int n = 0; n < TEXELS; n++)
        [[unroll]] for (int e = 0; e < 4; e++) sum[m * TEXELS + n] += pixels[e] * w[n][e];
    }
  }

  // A quarter has 4 rows and a texel of each invocation: those of 64 places, of which each then makes a pixel.
  int slot = member % PITCH, pixel_y = member / PITCH / TILE, pixel_x = member / PITCH % TILE;
  vec3 of_y = pixel_y == 0 ? vec3(1) : vec3(1, -1, -1), of_x = pixel_x == 0 ? vec3(1) : vec3(1, -1, -1);
  int to = PAIR(member) * PITCH + FIRST_TILE(member) * APART + FIRST_TEXEL(member);
  for (int quarter = 0; quarter < QUARTERS; quarter++) {
    barrier();
    // Compared, as an index has to be known when it is compiled.
    [[unroll]] for (int q = 0; q < QUARTERS; q++) {
      if (q == quarter) {
        [[unroll]] for (int m = 0; m < ROWS / 2; m++)
          parts[to + APART * APART * m] = sum[(q / 2 * (ROWS / 2) + m) * TEXELS + q % 2];
      }
    }
    barrier();
    int tile = first_tile + quarter / 2 * (TILES / 2) + slot / APART;
    int z = first_channel / 4 + slot % APART + APART * (quarter % 2);
    ivec3 place = place_of(tile);
    int x = place.x + pixel_x, y = place.y + pixel_y;
    if (tile < tiles && 4 * z < channels && x < out_X && y < out_H) {
      vec4 total = vec4(0);
      [[unroll]] for (int j = 0; j < 3; j++) {
        vec4 in_row = vec4(0);
        [[unroll]] for (int i = 0; i < 3; i++)
          in_row += of_x[i] * parts[(POINTS * (pixel_y + j) + pixel_x + i) * PITCH + slot];
        total += of_y[j] * in_row;
      }
      STORE(result, AT(x, place.z * out_H + y, z, out_X, (channels + 3) / 4),
            mask_padding(activated(total + epilogue_at(z)), VALID(z, channels)));
    }
  }
}
