#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Resampling of up to three spatial dimensions (z, y, x), each for itself: a texel of the result is
// a sum of those near its place in the source, each with the product of its weights along the
// sides. Rows of a tensor are (image, z, y).
#include "tensor.glsl"
#include "params.glsl"

OUT(0, result)
IN(1, source)
PARAM(0, X)
PARAM(1, H)
PARAM(2, D)
PARAM(3, Z)
PARAM(4, out_X)
PARAM(5, out_H)
PARAM(6, out_D)
PARAM(7, out_Y)
CASE(8, opcode)
// Source elements per element of the result along each side; negative where the side stays as it is.
PARAM_FLOAT(9, step_x)
PARAM_FLOAT(10, step_y)
PARAM_FLOAT(11, step_z)
// Whether the centres of the corner elements coincide, else the edges of the images.
CASE(12, align_corners)
// Whether the weights reach as far as an element of the result covers the source.
CASE(13, antialias)

// What an element of the result is made of along one side: `count` elements of the source from
// `first` on, which may lie before or behind the source; its place there; and elements of the source
// in one of the weights' function.
struct Taps { int first, count; float centre, unit; };

Taps whole(int place) { return Taps(place, 1, float(place), 1.0); }

Taps taps_of(int place, int size, float scale) {
  if (scale < 0.0) return whole(place);
  if (size == 1) return whole(0);
  float last = float(size - 1);
  precise float corner = scale * float(place), middle = scale * (float(place) + 0.5);
  if (opcode == NEAREST) return whole(int(min(corner, last)));
  if (opcode == NEAREST_EXACT) return whole(int(min(middle, last)));
  if (antialias != 0) {
    float unit = max(scale, 1.0), reach = opcode == CUBIC ? 2.0 * unit : unit, centre = middle - 0.5;
    int first = int(clamp(centre + 1.0 - reach, 0.0, last));
    return Taps(first, int(min(centre + 1.0 + reach, last + 1.0)) - first, centre, unit);
  }
  float centre = align_corners != 0 ? corner : middle - 0.5;
  if (opcode == CUBIC) {
    // Farther out all taps are the element at the edge.
    centre = clamp(centre, -2.0, last + 2.0);
    return Taps(int(floor(centre)) - 1, 4, centre, 1.0);
  }
  centre = clamp(centre, 0.0, last);
  return Taps(int(centre), 2, centre, 1.0);
}

// The weight of the element at `at` along a side.
float weight(Taps taps, int at) {
  float d = abs(float(at) - taps.centre) / taps.unit;
  if (opcode == CUBIC) {
    // Keys' cubic convolution; torch's has another slope where it does not antialias.
    float a = antialias != 0 ? -0.5 : -0.75;
    return d < 1.0 ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
         : d < 2.0 ? (((d - 5.0) * d + 8.0) * d - 4.0) * a : 0.0;
  }
  return opcode == LINEAR ? max(1.0 - d, 0.0) : 1.0;
}

int inside(int at, int size) { return clamp(at, 0, size - 1); }

void main() {
  int i = invocation();
  if (i >= out_X * out_Y * Z) return;
  ivec2 outer = DIVIDED(i, Z), pixel = DIVIDED(outer.x, out_X);
  ivec2 slice = DIVIDED(pixel.x, out_H), image = DIVIDED(slice.x, out_D);
  Taps x = taps_of(pixel.y, X, step_x);
  Taps y = taps_of(slice.y, H, step_y);
  Taps z = taps_of(image.y, D, step_z);
  vec4 sum = vec4(0);
  float total = 0.0;
  for (int c = z.first; c < z.first + z.count; c++) {
    int slice_row = (image.x * D + inside(c, D)) * H;
    for (int b = y.first; b < y.first + y.count; b++) {
      int row = slice_row + inside(b, H);
      vec4 part = vec4(0);
      float parts = 0.0;
      for (int a = x.first; a < x.first + x.count; a++) {
        float share = weight(x, a);
        part += share * LOAD(source, AT(inside(a, X), row, outer.y, X, Z));
        parts += share;
      }
      float share = weight(z, c) * weight(y, b);
      sum += share * part;
      total += share * parts;
    }
  }
  // Where weights reach beyond the source, those inside are a part of all.
  if (antialias != 0 && total != 0.0) sum /= total;
  STORE(result, AT(pixel.y, pixel.x, outer.y, out_X, Z), sum);
}
