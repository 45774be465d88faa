// Declarations, loads and stores of tensors, the same in every storage and dtype.
//
// A tensor is a grid of texels of 4 elements: X x Y x Z, where Z runs along the packed dimension
// (4 elements a texel, the last texel zero-padded), X is the dimension outside of it and Y all
// others, outermost first. Channels-last activations [N, C, H, W] have X = W, Y = N * H,
// Z = ceil(C / 4); row-major ones [.., M, K] have X = M, Y = product of .., Z = ceil(K / 4).
// In a linear buffer texel (x, y, z) is element (y * X + x) * Z + z; in an image it is itself.
//
// The elements beyond the packed dimension's size ("padding") are zero in every tensor: kernels
// may read them and must write them as zero (see MASKED).
//
//   IN(binding, name)             the tensor `name`, read, of the variant's dtype
//   OUT(binding, name)            written (of dtype DTYPE_OUT where the variant is a pair)
//   IN_AS(binding, name, dtype)   of a fixed dtype; likewise OUT_AS
//   FLAT(binding, name)           a vector read by texel number, a linear buffer in every storage
//   IN_TEXELS(binding, name), LOAD_TEXELS(name, at): read through a texel view where IN is a storage
//                                 buffer, as a stage may have no more than 4 of those
//   NEXT(at, k)                   the address k texels further on in a row
//   LOAD(name, at)  STORE(name, at, value)  LOAD_AS / STORE_AS(.., dtype)  LOAD_FLAT(name, i)
//   AT(x, y, z, X, Z)             the address of a texel in a tensor of X columns and Z texels
//   AT_LINEAR(i, X, Y, Z)         the address of texel number i in the linear order; X and Z are PARAMs
//   AT_ROW(row, z, X, Z)          the address of texel z of row y * X + x; X is a PARAM
//   WEIGHT(binding, name), WEIGHT_AT(row, column, COLUMNS): matrices of texels, row by row
//   T4                            vec4, ivec4 or uvec4: what LOAD gives; T its scalar

#extension GL_EXT_samplerless_texture_functions : require

#define T4_f32 vec4
#define T4_f16 vec4
#define T4_b16 vec4
#define T4_i32 ivec4
#define T4_i8 ivec4
#define T4_u8 uvec4
#define T_f32 float
#define T_f16 float
#define T_b16 float
#define T_i32 int
#define T_i8 int
#define T_u8 uint

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

#define T4 PASTE(T4_, DTYPE)
#define T PASTE(T_, DTYPE)
#ifndef DTYPE_OUT
#define DTYPE_OUT DTYPE
#endif
#define OUT4 PASTE(T4_, DTYPE_OUT)

// What a texel is in a storage buffer, and the way there and back. 8-bit and half-precision
// elements are packed by hand, so no 8- or 16-bit feature of the device is needed.
#define WORD_f32 vec4
#define WORD_f16 uvec2
#define WORD_b16 uvec2
#define WORD_i32 ivec4
#define WORD_i8 uint
#define WORD_u8 uint

vec4 unpack_f32(vec4 w) { return w; }
vec4 unpack_f16(uvec2 w) { return vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y)); }
// bfloat16: the upper half of a float32. Nothing writes it.
vec4 unpack_b16(uvec2 w) {
  return uintBitsToFloat(uvec4(w.x << 16, w.x & 0xffff0000u, w.y << 16, w.y & 0xffff0000u));
}
ivec4 unpack_i32(ivec4 w) { return w; }
ivec4 unpack_i8(uint w) {
  return ivec4(int(w << 24) >> 24, int(w << 16) >> 24, int(w << 8) >> 24, int(w) >> 24);
}
uvec4 unpack_u8(uint w) { return uvec4(w & 255u, (w >> 8) & 255u, (w >> 16) & 255u, w >> 24); }

// The same of a texel view or an image.
#define FETCHED_f32(v) (v)
#define FETCHED_f16(v) (v)
#define FETCHED_b16(v) uintBitsToFloat((v) << 16)
#define FETCHED_i32(v) (v)
#define FETCHED_i8(v) (v)
#define FETCHED_u8(v) (v)

vec4 pack_f32(vec4 v) { return v; }
// To the nearest half, ties to even, infinite from 65520 on, whatever the driver's own conversions
// do: the direction in which packHalf2x16 rounds is the implementation's choice (truncation made
// the errors of networks 3 to 30 times larger), and SwiftShader's makes NaN of infinities.
// Everything here is exact: whole numbers, a product by a power of two, roundEven.
uvec2 pack_f16(vec4 v) {
  uvec4 word = floatBitsToUint(v);
  uvec4 magnitude = word & 0x7fffffffu;
  // From 2^-14 on: the exponent's bias is 112 less, and what rounds up to 2^16 is an infinity.
  uvec4 finite = min(magnitude, uvec4(0x47800000u));
  uvec4 half_ = (finite + (finite >> 13 & 1u) - 0x37fff001u) >> 13;
  // Below they are the multiples of 2^-24.
  uvec4 tiny = uvec4(ivec4(roundEven(uintBitsToFloat(magnitude) * 16777216.0)));
  half_ = mix(half_, tiny, lessThan(magnitude, uvec4(0x38800000u)));
  half_ = mix(half_, uvec4(0x7e00u), greaterThan(magnitude, uvec4(0x7f800000u)));
  half_ |= word >> 16 & 0x8000u;
  return half_.xz | half_.yw << 16;
}
ivec4 pack_i32(ivec4 v) { return v; }
uint pack_i8(ivec4 v) {
  return uint(v.x & 255) | uint(v.y & 255) << 8 | uint(v.z & 255) << 16 | uint(v.w & 255) << 24;
}
uint pack_u8(uvec4 v) { return v.x | v.y << 8 | v.z << 16 | v.w << 24; }

// Stands before a declaration where a dispatch may have the same memory at another binding too, and
// one of the two is written: a kernel whose result goes over what it reads. SPIR-V lets a driver
// assume that no two variables share memory unless both of them are decorated so (2.18.2, Aliasing).
// A kernel with such variables reads all it needs of a place before it writes there.
#extension GL_EXT_spirv_intrinsics : require
#define ALIASED spirv_decorate(20)

#define SSBO_IN(b, name, dt) \
  layout(set = 0, binding = b) readonly buffer name##_block { PASTE(WORD_, dt) name[]; };
#define SSBO_OUT(b, name, dt) \
  layout(set = 0, binding = b) writeonly buffer name##_block { PASTE(WORD_, dt) name[]; };

// Without a sampler: Vulkan's texel buffers have none, and newer tools refuse modules that combine one
// with a buffer (what GLSL's samplerBuffer compiles to).
#define TEXTURE_BUFFER_f32 textureBuffer
#define TEXTURE_BUFFER_f16 textureBuffer
#define TEXTURE_BUFFER_b16 utextureBuffer
#define TEXTURE_BUFFER_i32 itextureBuffer
#define TEXTURE_BUFFER_i8 itextureBuffer
#define TEXTURE_BUFFER_u8 utextureBuffer
#define TEXEL_IN(b, name, dt) layout(set = 0, binding = b) uniform PASTE(TEXTURE_BUFFER_, dt) name;

#define SAMPLER_3D_f32 sampler3D
#define SAMPLER_3D_f16 sampler3D
#define SAMPLER_3D_b16 usampler3D
#define SAMPLER_3D_i32 isampler3D
#define SAMPLER_3D_i8 isampler3D
#define SAMPLER_3D_u8 usampler3D
#define FORMAT_f32 rgba32f
#define FORMAT_f16 rgba16f
#define FORMAT_i32 rgba32i
#define FORMAT_i8 rgba8i
#define FORMAT_u8 rgba8ui
#define IMAGE_3D_f32 image3D
#define IMAGE_3D_f16 image3D
#define IMAGE_3D_i32 iimage3D
#define IMAGE_3D_i8 iimage3D
#define IMAGE_3D_u8 uimage3D

#if defined(STORAGE_TEXTURE3D)

#define POSITION ivec3
#define AT(x, y, z, X, Z) ivec3(x, y, z)
#define AT_LINEAR(i, X, Y, Z) linear_place(i, X, IS_CONSTANT(X), Z, IS_CONSTANT(Z))
#define AT_ROW(row, z, X, Z) row_place(row, z, X, IS_CONSTANT(X))
#define WEIGHT_AT(row, column, COLUMNS) ivec3(column, row, 0)
#define IN_AS(b, name, dt) layout(set = 0, binding = b) uniform PASTE(SAMPLER_3D_, dt) name;
#define OUT_AS(b, name, dt) \
  layout(set = 0, binding = b, PASTE(FORMAT_, dt)) uniform writeonly PASTE(IMAGE_3D_, dt) name;
#define FLAT_AS(b, name, dt) TEXEL_IN(b, name, dt)
#define LOAD_AS(name, at, dt) PASTE(FETCHED_, dt)(texelFetch(name, at, 0))
// Rounded to nearest here, as in buffers: how an image's format rounds is the driver's choice, and
// lavapipe truncates. What a half can hold it takes as it is.
#define STORE_AS(name, at, value, dt) imageStore(name, at, PASTE(rounded_, dt)(value))
vec4 rounded_f32(vec4 v) { return v; }
vec4 rounded_f16(vec4 v) {
  uvec4 word = floatBitsToUint(v);
  uvec4 magnitude = word & 0x7fffffffu;
  uvec4 near = magnitude + 0xfffu + (magnitude >> 13 & 1u) & 0xffffe000u;
  near = mix(near, uvec4(0x7f800000u), greaterThanEqual(near, uvec4(0x47800000u)));
  vec4 tiny = roundEven(uintBitsToFloat(magnitude) * 16777216.0) * (1.0 / 16777216.0);
  near = mix(near, floatBitsToUint(tiny), lessThan(magnitude, uvec4(0x38800000u)));
  near = mix(near, magnitude, greaterThan(magnitude, uvec4(0x7f800000u)));
  return uintBitsToFloat(near | word & 0x80000000u);
}
ivec4 rounded_i32(ivec4 v) { return v; }
ivec4 rounded_i8(ivec4 v) { return v; }
uvec4 rounded_u8(uvec4 v) { return v; }
#define LOAD_FLAT_AS(name, i, dt) PASTE(FETCHED_, dt)(texelFetch(name, i))
#define IN_TEXELS(b, name) IN(b, name)
#define LOAD_TEXELS(name, at) LOAD(name, at)
#define NEXT(at, k) ivec3((at).xy, (at).z + (k))

#else

#define POSITION int
#define AT(x, y, z, X, Z) (((y) * (X) + (x)) * (Z) + (z))
#define AT_LINEAR(i, X, Y, Z) (i)
#define AT_ROW(row, z, X, Z) ((row) * (Z) + (z))
#define WEIGHT_AT(row, column, COLUMNS) ((row) * (COLUMNS) + (column))
#define OUT_AS(b, name, dt) SSBO_OUT(b, name, dt)
#define STORE_AS(name, at, value, dt) name[at] = PASTE(pack_, dt)(value)

#if defined(STORAGE_TEXEL)
#define IN_AS(b, name, dt) TEXEL_IN(b, name, dt)
#define LOAD_AS(name, at, dt) PASTE(FETCHED_, dt)(texelFetch(name, at))
#else
#define IN_AS(b, name, dt) SSBO_IN(b, name, dt)
#define LOAD_AS(name, at, dt) PASTE(unpack_, dt)(name[at])
#endif
#define FLAT_AS(b, name, dt) IN_AS(b, name, dt)
#define LOAD_FLAT_AS(name, i, dt) LOAD_AS(name, i, dt)
#define IN_TEXELS(b, name) TEXEL_IN(b, name, DTYPE)
#define LOAD_TEXELS(name, at) texelFetch(name, at)
#define NEXT(at, k) ((at) + (k))

#endif

#define IN(b, name) IN_AS(b, name, DTYPE)
#define OUT(b, name) OUT_AS(b, name, DTYPE_OUT)
#define FLAT(b, name) FLAT_AS(b, name, DTYPE)
#define WEIGHT(b, name) IN_AS(b, name, DTYPE)
#define LOAD(name, at) LOAD_AS(name, at, DTYPE)
#define STORE(name, at, value) STORE_AS(name, at, value, DTYPE_OUT)
#define LOAD_FLAT(name, i) LOAD_FLAT_AS(name, i, DTYPE)
#define LOAD_WEIGHT(name, at) LOAD_AS(name, at, DTYPE)

// How many of the 4 elements of texel z are inside a packed dimension of `size` elements, and the
// texel with the others set to zero.
#define VALID(z, size) min(4, (size) - 4 * (z))
vec4 mask_padding(vec4 v, int valid) {
  return mix(vec4(0), v, lessThan(ivec4(0, 1, 2, 3), ivec4(valid)));
}
ivec4 mask_padding(ivec4 v, int valid) {
  return ivec4(lessThan(ivec4(0, 1, 2, 3), ivec4(valid))) * v;
}
uvec4 mask_padding(uvec4 v, int valid) {
  return uvec4(lessThan(ivec4(0, 1, 2, 3), ivec4(valid))) * v;
}

// Texel z of a result with its padding set to zero, where the result is `size` elements wide: all of
// it costs nothing, the place z neither, where the host says that no result has padding
// (`Dispatch.is_whole`).
layout(constant_id = 102) const int is_whole = 0;
#define MASKED(value, z, size) \
  (is_whole != 0 ? (value) : mask_padding(value, VALID(z, size)))
// Whether a lane of that texel is no padding, and whether a texel has padding at all.
#define IS_INSIDE(lane, z, size) (is_whole != 0 || 4 * (z) + (lane) < (size))
#define HAS_PADDING(size) (is_whole == 0 && ((size) & 3) != 0)
