// What convolutions with a register tile share: one invocation computes TILE_X pixels of a row
// times TILE_O texels (4 channels each) of the result. The including shader defines both.
//
// Weights are a matrix: row = output channel, columns = (ky, kx, texel of input channels of the
// group), so a loaded texel is 4 input channels of one output channel.

// Loops over the tile are unrolled by glslc: not every driver does.
#extension GL_EXT_control_flow_attributes : require
#include "conv_params.glsl"
#include "neighbours.glsl"
#include "shuffle.glsl"
#include "words.glsl"

#if defined(STORAGE_TEXTURE3D)
// The address `texels` further on along the packed dimension.
#define STEP_Z(at, texels) ivec3((at).xy, (at).z + (texels))
// The address `columns` further on in a row of the weights.
#define NEXT_COLUMN(at, columns) ivec3((at).x + (columns), (at).yz)
#else
#define STEP_Z(at, texels) ((at) + (texels))
#define NEXT_COLUMN(at, columns) ((at) + (columns))
#endif

// Tiles of a row of the result and of the channels of a group, and how many times LANES of them all
// rows of a group have.
ivec3 tile_counts() {
  int tiles = (out_X + TILE_X - 1) / TILE_X;
  int blocks = (group_channels + 4 * TILE_O - 1) / (4 * TILE_O);
  return ivec3(tiles, blocks, (tiles * out_Y + LANES - 1) / LANES * blocks);
}

// The tile of an invocation: its group and row, its first pixel there, and its first texel of
// channels in the group.
ivec4 tile_of(int i, ivec3 tiles) {
  bool is_constant = IS_CONSTANT(out_X);
  ivec2 group_place = divided(i / LANES, tiles.z, is_constant);
  int count = tiles.x * out_Y;
  ivec2 place = neighbours(group_place.y, (count + LANES - 1) / LANES, tiles.y, is_constant);
  // Lanes beyond the last tile do that too.
  int number = LANES == 1 ? place.x : min(place.x * LANES + i % LANES, count - 1);
  ivec2 row_tile = divided(number, tiles.x, is_constant);
  return ivec4(group_place.x, row_tile.x, row_tile.y * TILE_X, place.y * TILE_O);
}

T4 sum[TILE_X * TILE_O];
// Where rows of the weights begin, each of a channel of the tile.
POSITION rows[LINES(4 * TILE_O)];
// The pixels that the tile meets under one tap of the kernel, and all bits where they are in the
// image, 0 elsewhere: a mask is cheaper than a choice.
POSITION from[TILE_X];
uint inside[TILE_X];

vec4 masked(vec4 v, uint mask) { return uintBitsToFloat(floatBitsToUint(v) & mask); }
ivec4 masked(ivec4 v, uint mask) { return v & int(mask); }

// Begins a tile at texel `z` of a group's channels.
void begin_tile(int group, int z) {
  [[unroll]] for (int k = 0; k < TILE_X * TILE_O; k++) sum[k] = T4(0);
  [[unroll]] for (int k = 0; k < LINES(4 * TILE_O); k++)
    rows[k] = WEIGHT_AT(group * group_channels + min(4 * z + LINE(k), group_channels - 1), 0,
                        kernel_y * kernel_x * group_inputs);
}

// Looks at pixel `x` of row `y` of the source for place `p` of the tile.
void look_at(int p, int x, int y, int group) {
  inside[p] = uint(x) < uint(X) ? ~0u : 0u;
  from[p] = AT(clamp(x, 0, X - 1), y, group * group_inputs, X, Z);
}

// Adds the products of the pixels looked at with tap `tap` of the kernel.
void add_tap(int tap) {
  int column = tap * group_inputs;
  int texels = has_one_texel != 0 ? 1 : group_inputs;
  for (int c = 0; c < texels; c++, column++) {
#if defined(DTYPE_i32)
#define NUMBER(p, v) masked(source_of(v), inside[p])
    ivec4 source_words[TILE_X], weight_words[4 * TILE_O];
    [[unroll]] for (int p = 0; p < TILE_X; p++) source_words[p] = LOAD(source, STEP_Z(from[p], c));
    [[unroll]] for (int k = 0; k < 4 * TILE_O; k++)
      weight_words[k] = LOAD_WEIGHT(weight, NEXT_COLUMN(rows[k], column));
    ADD_WORDS(sum, source_words, weight_words, TILE_X, TILE_O, NUMBER)
#else
    T4 v[TILE_X];
    [[unroll]] for (int p = 0; p < TILE_X; p++)
      v[p] = masked(source_of(LOAD(source, STEP_Z(from[p], c))), inside[p]);
#define TEXEL_OF_LINE(k) LOAD_WEIGHT(weight, NEXT_COLUMN(rows[k], column))
    TEXELS_OF(texel, 4 * TILE_O, TEXEL_OF_LINE)
    [[unroll]] for (int o = 0; o < TILE_O; o++) {
      [[unroll]] for (int k = 0; k < 4; k++) {
        T4 w = TEXEL_OF(texel, 4 * o + k, TEXEL_OF_LINE);
        [[unroll]] for (int p = 0; p < TILE_X; p++) sum[p * TILE_O + o][k] += product(v[p], w);
      }
    }
#endif
  }
}

// Writes the tile to pixels `first`, `first + step`, .. of a row of the result.
void store_tile(int first, int step, int row, int group, int z) {
  int out_z = group * group_channels / 4 + z;
  [[unroll]] for (int o = 0; o < TILE_O; o++) {
    if (4 * (z + o) >= group_channels) break;
    EPILOGUE epilogue = epilogue_at(out_z + o);
    [[unroll]] for (int p = 0; p < TILE_X; p++) {
      if (first + p * step >= out_X) break;
      OUT4 v = ended(sum[p * TILE_O + o], epilogue);
      STORE(result, AT(first + p * step, row, out_z + o, out_X, (channels + 3) / 4),
            mask_padding(v, VALID(out_z + o, channels)));
    }
  }
}
