#version 450
//! storages: texel buffer texture3d
//! dtypes: f32 f16
#extension GL_GOOGLE_include_directive : require
// Elementary functions of one element. Drivers compile a module with all of its cases: those of
// unary.comp, which more programs have, do not wait for these.
#include "tensor.glsl"
#define ONLY_TEXELS
#include "params.glsl"
#include "math.glsl"
#include "angles.glsl"
#include "special.glsl"

ALIASED OUT(0, result)
ALIASED IN(1, source)
PARAM(0, X)
PARAM(1, Y)
PARAM(2, Z)
PARAM(3, size)
CASE(4, opcode)
PARAM_FLOAT(5, first)
PARAM_FLOAT(6, second)
PARAM_FLOAT(7, third)

vec4 apply(vec4 v) {
  switch (opcode) {
    case COS: return cos_(v);
    case SIN: return sin_(v);
    case LOG: return log_(v);
    case LOG10: return log10_(v);
    case ERF: return erf_(v);
    case LOG1P: return log1p_(v);
    case EXPM1: return expm1_(v);
    case EXP2: return exp2_(v);
    case LOG2: return log2_(v);
    case TAN: return tan_(v);
    case SINH: return sinh_(v);
    case COSH: return cosh_(v);
    case ASIN: return asin_(v);
    case ACOS: return acos_(v);
    case ATAN: return atan_(v);
    case ASINH: return asinh_(v);
    case ACOSH: return acosh_(v);
    case ATANH: return atanh_(v);
    case ERFINV: return erfinv_(v);
    case LGAMMA: return lgamma_(v);
    case MISH: return mish_(v);
    case ELU:
      return mix(first * second * expm1_(v * third), v * second, greaterThan(v, vec4(0)));
    case LOGIT: {
      vec4 share = limit(v, first, second);
      return log_(share / (1.0 - share));
    }
    case SOFTPLUS:
      return mix(softplus_(v * first) / first, v, greaterThan(v * first, vec4(second)));
  }
  return v;
}

void main() {
  int i = invocation();
  if (i >= X * Y * Z) return;
  vec4 v = apply(LOAD(source, AT_LINEAR(i, X, Y, Z)));
  STORE(result, AT_LINEAR(i, X, Y, Z), MASKED(v, REST_OF(i, Z), size));
}
