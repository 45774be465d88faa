// What a row is multiplied with so that its mean square is 1: the texels TEXEL(k), a macro of the
// including shader, which also has Z, how many there are, `size`, how many elements, and `epsilon`.
// The sum is in fp32 whatever the tensors hold.
float scale_of_row() {
  vec4 sum = vec4(0);
  for (int block = 0; block < Z; block += 64) {
    int stop = min(block + 64, Z);
    vec4 squares = vec4(0);
    for (int k = block; k < stop; k++) {
      vec4 v = TEXEL(k);
      squares += v * v;
    }
    sum += squares;
  }
  return 1.0 / sqrt(dot(sum, vec4(1)) / float(size) + epsilon);
}
