#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// The image at the places a grid names: (x, y) for every pixel of the result, -1 and 1 being the
// image's ends. A place that is not a number lies outside.
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
IN(2, grid)
#include "image_sides.glsl"
CASE(6, mode)
CASE(7, padding)
// Whether -1 and 1 are the centres of the corner pixels, else their outer edges.
CASE(8, align_corners)

const int NEAREST = 1;
const int BICUBIC = 2;
const int ZEROS = 0;
const int BORDER = 1;
const int REFLECTION = 2;

// The place mirrored at the ends `low` and `low + span` of the image.
float reflected(float place, float low, float span) {
  if (span <= 0.0) return 0.0;
  float away = abs(place - low);
  float flips = floor(away / span);
  float rest = away - flips * span;
  return low + (mod(flips, 2.0) == 0.0 ? rest : span - rest);
}

// A place in pixels, brought into the image as the padding says.
float inside(float p, int count) {
  float pixels = float(count);
  if (padding == REFLECTION) {
    p = align_corners != 0 ? reflected(p, 0.0, pixels - 1.0) : reflected(p, -0.5, pixels);
  }
  return padding == BORDER || padding == REFLECTION ? clamp(p, 0.0, pixels - 1.0) : p;
}

float pixel(float place, int count) {
  float pixels = float(count);
  precise float p = align_corners != 0 ? (place + 1.0) * 0.5 * (pixels - 1.0)
                                       : ((place + 1.0) * pixels - 1.0) * 0.5;
  if (mode == BICUBIC && padding != ZEROS) return p;
  p = inside(p, count);
  // Comparisons with NaN are false; far outside is outside.
  return p >= -3.0 && p <= pixels + 2.0 ? p : -3.0;
}

vec4 at(int x, int y, int first, int z) {
  if (x < 0 || y < 0 || x >= X || y >= H) return vec4(0);
  return LOAD(source, AT(x, first + y, z, X, Z));
}

// What pixels have a share of that are 1 + t, t, 1 - t and 2 - t away.
vec4 cubic(float t) {
  vec4 away = vec4(1.0 + t, t, 1.0 - t, 2.0 - t);
  vec4 near = (1.25 * away - 2.25) * away * away + 1.0;
  vec4 far = ((-0.75 * away + 3.75) * away - 6.0) * away + 3.0;
  return vec4(far.x, near.yz, far.w);
}

// Each of the 16 pixels around a place is brought into the image by itself.
vec4 bicubic(float px, float py, int first, int z) {
  float left = floor(px);
  float top = floor(py);
  vec4 across = cubic(px - left);
  vec4 down = cubic(py - top);
  vec4 v = vec4(0);
  for (int j = 0; j < 4; j++) {
    int y = int(inside(top + float(j - 1), H));
    vec4 line = vec4(0);
    for (int k = 0; k < 4; k++)
      line += across[k] * at(int(inside(left + float(k - 1), X)), y, first, z);
    v += down[j] * line;
  }
  return v;
}

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec3 spot = pixel_of(i);
  int column = spot.x, row = spot.y, z = spot.z;
  vec2 place = LOAD(grid, AT(column, row, 0, out_X, 1)).xy;
  float px = pixel(place.x, X);
  float py = pixel(place.y, H);
  int first = image_of(row).x * H;
  vec4 v;
  if (mode == NEAREST) {
    v = at(int(roundEven(px)), int(roundEven(py)), first, z);
  } else if (mode == BICUBIC) {
    v = bicubic(px, py, first, z);
  } else {
    float left = floor(px);
    float top = floor(py);
    float u = px - left;
    float w = py - top;
    int x = int(left);
    int y = int(top);
    v = (1.0 - w) * ((1.0 - u) * at(x, y, first, z) + u * at(x + 1, y, first, z))
        + w * ((1.0 - u) * at(x, y + 1, first, z) + u * at(x + 1, y + 1, first, z));
  }
  STORE(result, AT(column, row, z, out_X, Z), v);
}
