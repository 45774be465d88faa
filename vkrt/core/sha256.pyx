from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from * nogil:
    """
    #include <stdint.h>
    /* Of the cube roots of the first 64 primes, and of the square roots of the first 8: 32 bits
       behind the point (FIPS 180-4) */
    static const uint32_t vkrt_sha256_rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
    };
    static const uint32_t vkrt_sha256_start[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    };
    """
    const uint32_t* rounds "vkrt_sha256_rounds"
    const uint32_t* start "vkrt_sha256_start"


cdef inline uint32_t turned(uint32_t value, int bits) noexcept nogil:
    return value >> bits | value << (32 - bits)


cdef void add_block(uint32_t* state, const unsigned char* at) noexcept nogil:
    cdef uint32_t[64] words
    cdef uint32_t[8] now
    cdef uint32_t first, second
    cdef int i
    for i in range(16):
        words[i] = (<uint32_t>at[4 * i] << 24 | <uint32_t>at[4 * i + 1] << 16
                    | <uint32_t>at[4 * i + 2] << 8 | at[4 * i + 3])
    for i in range(16, 64):
        first, second = words[i - 15], words[i - 2]
        words[i] = (words[i - 16] + (turned(first, 7) ^ turned(first, 18) ^ first >> 3)
                    + words[i - 7] + (turned(second, 17) ^ turned(second, 19) ^ second >> 10))
    memcpy(now, state, sizeof(now))
    for i in range(64):
        first = (now[7] + (turned(now[4], 6) ^ turned(now[4], 11) ^ turned(now[4], 25))
                 + (now[4] & now[5] ^ ~now[4] & now[6]) + rounds[i] + words[i])
        second = ((turned(now[0], 2) ^ turned(now[0], 13) ^ turned(now[0], 22))
                  + (now[0] & now[1] ^ now[0] & now[2] ^ now[1] & now[2]))
        now[7], now[6], now[5] = now[6], now[5], now[4]
        now[4] = now[3] + first
        now[3], now[2], now[1] = now[2], now[1], now[0]
        now[0] = first + second
    for i in range(8):
        state[i] += now[i]


cdef void sha256(const void* data, size_t size, unsigned char* digest) noexcept nogil:
    cdef const unsigned char* at = <const unsigned char*>data
    cdef uint32_t[8] state
    cdef unsigned char[128] last
    cdef size_t rest = size % 64
    cdef size_t blocks = 1 if rest < 56 else 2
    cdef size_t i
    memcpy(state, start, sizeof(state))
    for i in range(size // 64):
        add_block(state, at + 64 * i)
    # What is left, a bit, and the number of bits in front of the end of a block
    memset(last, 0, sizeof(last))
    if rest > 0:
        memcpy(last, at + size - rest, rest)
    last[rest] = 0x80
    for i in range(8):
        last[64 * blocks - 1 - i] = <unsigned char>(<uint64_t>size * 8 >> 8 * i & 0xFF)
    for i in range(blocks):
        add_block(state, last + 64 * i)
    for i in range(32):
        digest[i] = <unsigned char>(state[i // 4] >> (24 - 8 * (i % 4)) & 0xFF)
