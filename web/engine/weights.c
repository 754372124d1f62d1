/* Weights as they lie in a GGUF file: the bytes of a row, and four rows of packed ones unpacked.

   A packed weight is scale q - least, q of few bits. A group is 32 weights of a row.

   q8_0, a group: an f16 scale, then 32 signed bytes.
   q4_0, q4_1, q5_0, q5_1, iq4_nl, a group: an f16 scale; q4_1, q5_1: an f16, -least; q5_0, q5_1:
   4 bytes, whose bit i is the fifth of weight i; 16 bytes, the first 16 weights in their lower 4
   bits, the others in the upper. q is 8 less in q4_0, 16 less in q5_0; in iq4_nl the bits choose
   one of 16 levels.

   The k-quants, 8 groups: whole numbers for scales and least values, and an f16 for each of both
   that multiplies them.
   q4_k, q5_k: the two f16; 12 bytes, both numbers of each group; q5_k: 32 bytes, whose bit g is the
   fifth of group g; 4 x 32 bytes, each for two groups, one in their lower 4 bits, one in the upper.
   q6_k: 2 x 64 bytes, the lower 4 bits of four groups: of the first two in the lower half of a
   byte, of the others in the upper; 2 x 32 bytes, the upper 2 bits of four groups; 16 signed bytes,
   a scale for each half of a group; its f16; q is 32 less.
   q2_k: 16 bytes, both numbers of each half of a group, the scale in the lower 4 bits; 2 x 32
   bytes, the bits of four groups; the two f16.
   q3_k: 32 bytes, whose bit g is the third of group g; 2 x 32 bytes, the lower 2 bits of four
   groups; 12 bytes, a scale of 6 bits for each half of a group, which is 32 less; its f16; q is 4
   less. */

#include "ember.h"

static const struct {
    u32 weights, bytes;
} BLOCKS[] = {
    [F32] = {1, 4},      [F16] = {1, 2},     [BF16] = {1, 2},     [Q8_0] = {32, 34},
    [Q4_0] = {32, 18},   [Q4_1] = {32, 20},  [Q5_0] = {32, 22},   [Q5_1] = {32, 24},
    [IQ4_NL] = {32, 18}, [Q2_K] = {256, 84}, [Q3_K] = {256, 110}, [Q4_K] = {256, 144},
    [Q5_K] = {256, 176}, [Q6_K] = {256, 210},
};

u32 bytes_of_row(i32 width, i32 type) { return width / BLOCKS[type].weights * BLOCKS[type].bytes; }

/* ---- Unpacking a block of four rows, `stride` bytes apart; w is where the first's begins ---- */

INLINE b16 load_bytes(const u8 *p) { return (b16)wasm_v128_load(p); }
INLINE void store_bytes(i8 *p, b16 v) { wasm_v128_store(p, (v128_t)v); }

/* `n` bits of each byte, which begin at bit `from`, moved to bit `to`. The shift is one of 16-bit
   numbers, which processors have; what it brings from one byte to the other is masked away. */
INLINE b16 take_bits(b16 v, const i32 n, const i32 from, const i32 to) {
    v128_t moved = from < to ? wasm_i16x8_shl((v128_t)v, to - from)
                             : wasm_u16x8_shr((v128_t)v, from - to);
    return (b16)wasm_v128_and(moved, wasm_i8x16_splat((i8)(((1 << n) - 1) << to)));
}

/* 16 bits, each as the fifth of a byte of its own. */
INLINE b16 spread_bits(const u8 *p) {
    const b16 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    b16 two = (b16)wasm_v128_load16_splat(p);
    b16 bytes = PICK(two, two, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    return (b16)((bytes & bit) == bit) & 16;
}

INLINE i4 word_of_rows(const u8 *w, u32 stride) { /* four bytes of each row */
    v128_t words = wasm_v128_load32_zero(w);
    words = wasm_v128_load32_lane(w + stride, words, 1);
    words = wasm_v128_load32_lane(w + 2 * stride, words, 2);
    return (i4)wasm_v128_load32_lane(w + 3 * stride, words, 3);
}

/* Byte k of each word, which is signed. */
INLINE f4 byte_of(i4 words, const i32 k) { return to_floats(words << (24 - 8 * k) >> 24); }

INLINE void one_group(Group *g, const u8 *w, u32 stride, const i32 type) {
    const b16 levels = { /* of iq4_nl; less than zero as 256 more */
        129, 152, 173, 191, 207, 221, 234, 246, 1, 13, 25, 38, 53, 69, 89, 113,
    };
    const i32 has_least = type == Q4_1 || type == Q5_1, has_fifths = type == Q5_0 || type == Q5_1;
    const u8 less = type == Q4_0 ? 8 : type == Q5_0 ? 16 : 0;
    g->scale[0] = half_of_rows(w, stride);
    g->least[0] = has_least ? -half_of_rows(w + 2, stride) : splat(0);
    EACH(r, 4) {
        const u8 *row = w + r * stride + (has_least ? 4 : 2);
        b16 bits = load_bytes(row + (has_fifths ? 4 : 0));
        EACH(half, 2) {
            b16 q = take_bits(bits, 4, 4 * half, 0);
            if (has_fifths) q |= spread_bits(row + 2 * half);
            if (type == IQ4_NL) q = (b16)wasm_i8x16_swizzle((v128_t)levels, (v128_t)q);
            store_bytes(g->q[r] + 16 * half, q - less);
        }
    }
}

/* The 12 bytes, as three words: of the first the lower 6 bits are the scales of groups 0 .. 3, of
   the second their least values; of the third the lower 4 bits begin the scales of groups 4 .. 7
   and the upper 4 their least values; these end in the 2 bits that the others have left. */
INLINE void q4_or_q5_k_scales(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w, stride), d_least = half_of_rows(w + 2, stride);
    i4 a = word_of_rows(w + 4, stride), b = word_of_rows(w + 8, stride);
    i4 c = word_of_rows(w + 12, stride);
    i4 scales[2] = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030)};
    i4 least[2] = {b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)};
    EACH(i, 8) {
        g[i].scale[0] = d * byte_of(scales[i / 4], i % 4);
        g[i].least[0] = d_least * byte_of(least[i / 4], i % 4);
    }
}

INLINE void q4_or_q5_k(Group *g, const u8 *w, u32 stride, const i32 type) {
    q4_or_q5_k_scales(g, w, stride);
    for (i32 r = 0; r < 4; r++, w += stride) EACH(i, 8) {
        i32 pair = i / 2 * 2, half = i % 2 * 16;
        b16 bits = load_bytes(w + (type == Q5_K ? 48 : 16) + 16 * i);
        b16 a = take_bits(bits, 4, 0, 0), b = take_bits(bits, 4, 4, 0);
        if (type == Q5_K) {
            b16 fifths = load_bytes(w + 16 + half);
            a |= take_bits(fifths, 1, pair, 4), b |= take_bits(fifths, 1, pair + 1, 4);
        }
        store_bytes(g[pair].q[r] + half, a);
        store_bytes(g[pair + 1].q[r] + half, b);
    }
}

INLINE void q6_k(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w + 208, stride);
    EACH(i, 8) EACH(half, 2) {
        i4 four = word_of_rows(w + 192 + i / 2 * 4, stride);
        g[i].scale[half] = d * byte_of(four, i % 2 * 2 + half);
        g[i].least[half] = splat(0);
    }
    for (i32 r = 0; r < 4; r++, w += stride) EACH(i, 8) EACH(half, 2) {
        b16 lower = load_bytes(w + i / 4 * 64 + i % 2 * 32 + half * 16);
        b16 upper = load_bytes(w + 128 + i / 4 * 32 + half * 16);
        b16 bits = take_bits(lower, 4, i % 4 / 2 * 4, 0) | take_bits(upper, 2, i % 4 * 2, 4);
        store_bytes(g[i].q[r] + half * 16, bits - 32);
    }
}

INLINE void q2_k_scales(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w + 80, stride), d_least = half_of_rows(w + 82, stride);
    EACH(i, 8) EACH(half, 2) {
        i4 four = word_of_rows(w + i / 2 * 4, stride);
        g[i].scale[half] = d * byte_of(four & 0x0f0f0f0f, i % 2 * 2 + half);
        g[i].least[half] = d_least * byte_of(four >> 4 & 0x0f0f0f0f, i % 2 * 2 + half);
    }
}

/* The 12 bytes, as three words: of the first the lower 4 bits begin scales 0 .. 3 and the upper 4
   scales 8 .. 11, of the second those of 4 .. 7 and 12 .. 15; the third has the other 2 bits of
   each, in the order of the scales. */
INLINE void q3_k_scales(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w + 108, stride);
    i4 words[2] = {word_of_rows(w + 96, stride), word_of_rows(w + 100, stride)};
    i4 upper = word_of_rows(w + 104, stride);
    EACH(i, 8) EACH(half, 2) {
        i32 k = i / 2;
        i4 four = (words[k % 2] >> k / 2 * 4 & 0x0f0f0f0f) | (upper >> 2 * k & 0x03030303) << 4;
        g[i].scale[half] = d * byte_of((i4)((b16)four - 32), i % 2 * 2 + half);
        g[i].least[half] = splat(0);
    }
}

INLINE void q2_or_q3_k(Group *g, const u8 *w, u32 stride, const i32 type) {
    if (type == Q2_K)
        q2_k_scales(g, w, stride);
    else
        q3_k_scales(g, w, stride);
    for (i32 r = 0; r < 4; r++, w += stride) EACH(i, 8) EACH(half, 2) {
        b16 bits = load_bytes(w + (type == Q2_K ? 16 : 32) + i / 4 * 32 + half * 16);
        b16 q = take_bits(bits, 2, i % 4 * 2, 0);
        if (type == Q3_K) q = (q | take_bits(load_bytes(w + half * 16), 1, i, 2)) - 4;
        store_bytes(g[i].q[r] + half * 16, q);
    }
}

/* ---- Unpacking rows ---- */

/* One function for each type: browsers translate them one by one, and well only once they have
   run for a while. */
#define UNPACK(name, type, unpack_block)                                                           \
    static __attribute__((noinline)) void name(Group *g, const Group *end, const u8 *w,            \
                                               u32 stride) {                                       \
        const u32 n_bytes = BLOCKS[type].bytes, n_groups = BLOCKS[type].weights / GROUP;           \
        const u8 *next = w + 4 * stride;                                                           \
        for (; g < end; g += n_groups, w += n_bytes, next += 4 * n_bytes) {                        \
            for (u32 k = 0; k < 4 * n_bytes; k += 64) touch(next + k);                             \
            unpack_block;                                                                          \
        }                                                                                          \
    }
UNPACK(unpack_q4_0, Q4_0, one_group(g, w, stride, Q4_0))
UNPACK(unpack_q4_1, Q4_1, one_group(g, w, stride, Q4_1))
UNPACK(unpack_q5_0, Q5_0, one_group(g, w, stride, Q5_0))
UNPACK(unpack_q5_1, Q5_1, one_group(g, w, stride, Q5_1))
UNPACK(unpack_iq4_nl, IQ4_NL, one_group(g, w, stride, IQ4_NL))
UNPACK(unpack_q2_k, Q2_K, q2_or_q3_k(g, w, stride, Q2_K))
UNPACK(unpack_q3_k, Q3_K, q2_or_q3_k(g, w, stride, Q3_K))
UNPACK(unpack_q4_k, Q4_K, q4_or_q5_k(g, w, stride, Q4_K))
UNPACK(unpack_q5_k, Q5_K, q4_or_q5_k(g, w, stride, Q5_K))
UNPACK(unpack_q6_k, Q6_K, q6_k(g, w, stride))

const Group *unpack(const u8 *w, u32 stride, i32 width, i32 type) {
    Group *g = (Group *)scratch.rows, *end = g + width / GROUP;
    switch (type) {
    case Q4_0: unpack_q4_0(g, end, w, stride); break;
    case Q4_1: unpack_q4_1(g, end, w, stride); break;
    case Q5_0: unpack_q5_0(g, end, w, stride); break;
    case Q5_1: unpack_q5_1(g, end, w, stride); break;
    case IQ4_NL: unpack_iq4_nl(g, end, w, stride); break;
    case Q2_K: unpack_q2_k(g, end, w, stride); break;
    case Q3_K: unpack_q3_k(g, end, w, stride); break;
    case Q4_K: unpack_q4_k(g, end, w, stride); break;
    case Q5_K: unpack_q5_k(g, end, w, stride); break;
    case Q6_K: unpack_q6_k(g, end, w, stride); break;
    }
    return g;
}

INLINE f32 half_to_float(u16 half) {
    u32 bits = (u32)(half & 0x8000) << 16 | (u32)(half & 0x7fff) << 13;
    return __builtin_bit_cast(f32, bits) * 0x1p112f;
}

void read_row(f32 *out, const Affine *a, i32 row, i32 n) {
    const u8 *w = a->weight + row * bytes_of_row(n, a->type);
    const Group *groups = unpack(w, 0, n, a->type);
    const i32 has_halves = a->type == Q2_K || a->type == Q3_K || a->type == Q6_K;
    for (i32 i = 0; i < n; i++) {
        const u8 *q8 = w + i / GROUP * BLOCKS[Q8_0].bytes;
        const Group *g = groups + i / GROUP;
        i32 half = has_halves ? i / 16 % 2 : 0;
        switch (a->type) {
        case F32: out[i] = ((const f32 *)w)[i]; break;
        case F16: out[i] = half_to_float(((const u16 *)w)[i]); break;
        case BF16: out[i] = __builtin_bit_cast(f32, ((const u16 *)w)[i] << 16); break;
        case Q8_0: out[i] = half_to_float(*(const u16 *)q8) * (i8)q8[2 + i % GROUP]; break;
        default: out[i] = g->scale[half][0] * g->q[0][i % GROUP] - g->least[half][0];
        }
    }
}
