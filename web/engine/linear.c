/* Linear layers over weights as they lie in a GGUF file: f32, f16, bf16, q8_0, q4_0 and k-quants.

   Floats are multiplied as floats. All others come in groups of 32 that share a scale, and meet
   activations of 16 bits, quantised in the same groups: products are whole numbers, their sums
   exact. q8_0 is multiplied where it lies; of the others four rows at a time are unpacked to bytes,
   which stay in the processor's cache until all tokens have met them.
*/

#include "ember.h"

struct Scratch scratch;

typedef struct { /* a group of four rows, unpacked: a weight is scale q - least */
    i8 q[4][GROUP];
    f4 scale[2], least; /* a lane for each row; q6_k has a scale for each half of a group */
} Group;

/* ---- Weights ---- */

/* An f16's exponent and fraction, moved to where f32 has them, are 2^112 times too small; so are
   those of a subnormal. Infinities, which no weight should be, come out finite. */
INLINE f32 half_to_float(u16 half) {
    u32 bits = (u32)(half & 0x8000) << 16 | (u32)(half & 0x7fff) << 13;
    return __builtin_bit_cast(f32, bits) * 0x1p112f;
}

INLINE f4 load_halves(const u8 *p) {
    v128_t bits = wasm_i32x4_shl(wasm_i32x4_load16x4(p), 13);
    return (f4)wasm_v128_and(bits, wasm_i32x4_splat((i32)0x8fffe000)) * splat(0x1p112f);
}

/* Four weights of f32, f16 or bf16, which is the upper half of an f32. */
INLINE f4 load_weights(const u8 *row, u32 at, const i32 type) {
    if (type == F16) return load_halves(row + 2 * at);
    if (type == BF16) return (f4)wasm_i32x4_shl(wasm_u32x4_load16x4(row + 2 * at), 16);
    return (f4)wasm_v128_load(row + 4 * at);
}

INLINE f4 load_first_weights(const u8 *row, i32 n, const i32 type) { /* n of four, and zeros */
    u32 four[4] = {0};
    for (i32 i = 0; i < n; i++)
        if (type == F32)
            four[i] = ((const u32 *)row)[i];
        else
            ((u16 *)four)[i] = ((const u16 *)row)[i];
    return load_weights((const u8 *)four, 0, type);
}

/* A weight is scale q - least, q of few bits.

   q8_0, a group: an f16 scale, then 32 signed bytes.
   q4_0, a group: an f16 scale; 16 bytes, the first 16 weights in their lower 4 bits, the others in
   the upper; q is 8 less.
   q4_k and q5_k, 8 groups: an f16 for all scales and one for all least values; 12 bytes, a whole
   number for each of both that it multiplies; q5_k: 32 bytes, whose bit g is the fifth of group g;
   4 x 32 bytes, each for two groups, one in their lower 4 bits, one in the upper.
   q6_k, 8 groups: 2 x 64 bytes, the lower 4 bits of four groups: of the first two in the lower half
   of a byte, of the others in the upper; 2 x 32 bytes, the upper 2 bits of four groups; 16 signed
   bytes, a scale for each half of a group; the f16 that multiplies these; q is 32 less. */
enum { Q8_0_BYTES = 34, Q4_0_BYTES = 18, Q4_K_BYTES = 144, Q5_K_BYTES = 176, Q6_K_BYTES = 210 };

static u32 bytes_of_row(i32 width, i32 type) {
    switch (type) {
    case F32: return width * 4;
    case F16:
    case BF16: return width * 2;
    case Q8_0: return width / 32 * Q8_0_BYTES;
    case Q4_0: return width / 32 * Q4_0_BYTES;
    case Q4_K: return width / 256 * Q4_K_BYTES;
    case Q5_K: return width / 256 * Q5_K_BYTES;
    default: return width / 256 * Q6_K_BYTES;
    }
}

/* ---- Unpacking four rows, `stride` bytes apart; w is where their next block begins ---- */

INLINE b16 load_bytes(const u8 *p) { return (b16)wasm_v128_load(p); }
INLINE void store_bytes(i8 *p, b16 v) { wasm_v128_store(p, (v128_t)v); }

/* `n` bits of each byte, which begin at bit `from`, moved to bit `to`. The shift is one of 16-bit
   numbers, which processors have; what it brings from one byte to the other is masked away. */
INLINE b16 take_bits(b16 v, const i32 n, const i32 from, const i32 to) {
    v128_t moved = from < to ? wasm_i16x8_shl((v128_t)v, to - from)
                             : wasm_u16x8_shr((v128_t)v, from - to);
    return (b16)wasm_v128_and(moved, wasm_i8x16_splat((i8)(((1 << n) - 1) << to)));
}

/* An f16 of each row. */
INLINE f4 half_of_rows(const u8 *w, u32 stride) {
    v128_t halves = wasm_i32x4_splat(0); /* each in the upper half of a lane */
    halves = wasm_v128_load16_lane(w, halves, 1);
    halves = wasm_v128_load16_lane(w + stride, halves, 3);
    halves = wasm_v128_load16_lane(w + 2 * stride, halves, 5);
    halves = wasm_v128_load16_lane(w + 3 * stride, halves, 7);
    halves = wasm_v128_and(wasm_i32x4_shr(halves, 3), wasm_i32x4_splat((i32)0x8fffe000));
    return (f4)halves * splat(0x1p112f);
}

INLINE i4 word_of_rows(const u8 *w, u32 stride) { /* four bytes of each row */
    v128_t words = wasm_v128_load32_zero(w);
    words = wasm_v128_load32_lane(w + stride, words, 1);
    words = wasm_v128_load32_lane(w + 2 * stride, words, 2);
    return (i4)wasm_v128_load32_lane(w + 3 * stride, words, 3);
}

INLINE f4 to_floats(i4 v) { return (f4)wasm_f32x4_convert_i32x4((v128_t)v); }

INLINE void unpack_q4_0(Group *g, const u8 *w, u32 stride) {
    g->scale[0] = g->scale[1] = half_of_rows(w, stride);
    g->least = splat(0);
    EACH(r, 4) {
        b16 bits = load_bytes(w + r * stride + 2);
        store_bytes(g->q[r], take_bits(bits, 4, 0, 0) - 8);
        store_bytes(g->q[r] + 16, take_bits(bits, 4, 4, 0) - 8);
    }
}

/* The 12 bytes, as three words: of the first the lower 6 bits are the scales of groups 0 .. 3, of
   the second their least values; of the third the lower 4 bits begin the scales of groups 4 .. 7
   and the upper 4 their least values; these end in the 2 bits that the others have left. */
INLINE void unpack_scales(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w, stride), d_least = half_of_rows(w + 2, stride);
    i4 a = word_of_rows(w + 4, stride), b = word_of_rows(w + 8, stride);
    i4 c = word_of_rows(w + 12, stride);
    i4 scales[2] = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030)};
    i4 least[2] = {b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)};
    EACH(i, 8) {
        g[i].scale[0] = g[i].scale[1] = d * to_floats(scales[i / 4] >> i % 4 * 8 & 255);
        g[i].least = d_least * to_floats(least[i / 4] >> i % 4 * 8 & 255);
    }
}

INLINE void unpack_q4_or_q5_k(Group *g, const u8 *w, u32 stride, const i32 type) {
    unpack_scales(g, w, stride);
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

INLINE void unpack_q6_k(Group *g, const u8 *w, u32 stride) {
    f4 d = half_of_rows(w + 208, stride);
    EACH(i, 8) {
        i4 scales = word_of_rows(w + 192 + i / 2 * 4, stride) << (i % 2 ? 0 : 16);
        g[i].scale[0] = d * to_floats(scales << 8 >> 24);
        g[i].scale[1] = d * to_floats(scales >> 24);
        g[i].least = splat(0);
    }
    for (i32 r = 0; r < 4; r++, w += stride) EACH(i, 8) EACH(half, 2) {
        b16 lower = load_bytes(w + i / 4 * 64 + i % 2 * 32 + half * 16);
        b16 upper = load_bytes(w + 128 + i / 4 * 32 + half * 16);
        b16 bits = take_bits(lower, 4, i % 4 / 2 * 4, 0) | take_bits(upper, 2, i % 4 * 2, 4);
        store_bytes(g[i].q[r] + half * 16, bits - 32);
    }
}

/* Reading a byte of a cache line that is wanted soon. Rows that are read side by side look like no
   stream to the processor, which then waits for memory; reading on in order, one tile ahead, is
   one, and doubles the speed of weights that do not fit its caches. */
INLINE void touch(const u8 *p) { (void)*(const volatile u8 *)p; }

/* Unpack `width` columns of four rows into scratch.rows. */
static const Group *unpack(const u8 *w, u32 stride, i32 width, i32 type) {
    Group *g = (Group *)scratch.rows, *end = g + width / GROUP;
    const u8 *next = w + 4 * stride;
#define UNPACK(TYPE, unpack_block, n_groups, n_bytes)                                              \
    case TYPE:                                                                                     \
        for (; g < end; g += n_groups, w += n_bytes, next += 4 * n_bytes) {                        \
            for (i32 k = 0; k < 4 * n_bytes; k += 64) touch(next + k);                             \
            unpack_block;                                                                          \
        }                                                                                          \
        break;
    switch (type) {
        UNPACK(Q4_0, unpack_q4_0(g, w, stride), 1, Q4_0_BYTES)
        UNPACK(Q4_K, unpack_q4_or_q5_k(g, w, stride, Q4_K), 8, Q4_K_BYTES)
        UNPACK(Q5_K, unpack_q4_or_q5_k(g, w, stride, Q5_K), 8, Q5_K_BYTES)
        UNPACK(Q6_K, unpack_q6_k(g, w, stride), 8, Q6_K_BYTES)
    }
    return (const Group *)scratch.rows;
}

/* ---- Activations ---- */

/* Rounding to 1/32767 of a group's largest is far below the weights' own. */
static void quantise(Input *in) {
    i32 n_groups = in->width / GROUP;
    for (i32 t = 0; t < in->n_tokens; t++)
        for (i32 g = 0; g < n_groups; g++) {
            const f32 *x = in->x + t * in->pitch + g * GROUP;
            f4 top = splat(0);
            for (i32 i = 0; i < GROUP; i += 4)
                top = max4(top, (f4)wasm_f32x4_abs(wasm_v128_load(x + i)));
            f32 largest = max(max(top[0], top[1]), max(top[2], top[3]));
            f32 scale = largest / 32767;
            f4 inverse = splat(largest > 1e-30f ? 32767 / largest : 0);
            i4 total = {0, 0, 0, 0};
            for (i32 i = 0; i < GROUP; i += 8) {
                v128_t low = wasm_f32x4_nearest((v128_t)(load(x + i) * inverse));
                v128_t high = wasm_f32x4_nearest((v128_t)(load(x + i + 4) * inverse));
                v128_t eight = wasm_i16x8_narrow_i32x4(wasm_i32x4_trunc_sat_f32x4(low),
                                                       wasm_i32x4_trunc_sat_f32x4(high));
                scratch.quantised[(t * n_groups + g) * 4 + i / 8] = (s8)eight;
                total += (i4)wasm_i32x4_extadd_pairwise_i16x8(eight);
            }
            scratch.scales[t * n_groups + g] = scale;
            scratch.sums[t * n_groups + g] = scale * (total[0] + total[1] + total[2] + total[3]);
        }
    in->is_quantised = 1;
}

/* ---- Tiles: products of R rows of weights and T rows of activations, summed in registers. R is 1
   or 4 and T 1 or 2, constants at every call. ---- */

INLINE void store_tile(f32 *y, i32 y_pitch, f4 *total, const f32 *bias, const i32 R, const i32 T) {
    EACH(t, T)
        if (R == 4)
            store(y + t * y_pitch, bias ? total[t] + load(bias) : total[t]);
        else
            y[t * y_pitch] = total[t][0] + (bias ? *bias : 0);
}

INLINE void float_tile(f32 *y, i32 y_pitch, const f32 *x, i32 x_pitch, const u8 *w, u32 row_bytes,
                       i32 width, const f32 *bias, const i32 type, const i32 R, const i32 T) {
    f4 total[4][2] = {0}, xs[2];
    const u8 *next = w + R * row_bytes;
    const i32 size = type == F32 ? 4 : 2;
    i32 i = 0;
#define STEP(load_x, load_w)                                                                       \
    EACH(t, T) xs[t] = load_x;                                                                     \
    EACH(r, R) {                                                                                   \
        f4 weights = load_w;                                                                       \
        EACH(t, T) total[r][t] = multiply_add(weights, xs[t], total[r][t]);                        \
    }
#define STEP_4(at) STEP(load(x + t * x_pitch + at), load_weights(w + r * row_bytes, at, type))
    for (; i + 16 <= width; i += 16, x += 16, w += 16 * size) {
        if (T == 1 && R == 4) EACH(k, size) touch(next + 64u * k);
        next += 64 * size;
        STEP_4(0u) STEP_4(4u) STEP_4(8u) STEP_4(12u)
    }
    for (; i + 4 <= width; i += 4, x += 4, w += 4 * size) {
        STEP_4(0)
    }
    if (i < width) {
        STEP(load_first(x + t * x_pitch, width - i),
             load_first_weights(w + r * row_bytes, width - i, type))
    }
    f4 rows[2]; /* of each token, a lane for each row */
    EACH(t, T) rows[t] = sums(total[0][t], total[1][t], total[2][t], total[3][t]);
    store_tile(y, y_pitch, rows, bias, R, T);
}

INLINE void q8_tile(f32 *y, i32 y_pitch, i32 first_token, const u8 *w, u32 row_bytes, i32 width,
                    const f32 *bias, const i32 R, const i32 T) {
    f4 total[2] = {0}; /* of each token, a lane for each row */
    i32 n_groups = width / GROUP;
    const s8 *x = scratch.quantised + first_token * n_groups * 4;
    const f32 *scales = scratch.scales + first_token * n_groups;
    const u8 *next = w + R * row_bytes;
    for (i32 g = 0; g < n_groups; g++, w += 34, x += 4, scales++) { /* an f16, then 32 bytes */
        if (T == 1 && R == 4) touch(next), touch(next + 64), touch(next + 128);
        next += 4 * 34;
        i4 dot[4][2] = {0};
        EACH(r, R) EACH(i, 4) {
            v128_t eight = wasm_i16x8_load8x8(w + r * row_bytes + 2 + 8 * i);
            EACH(t, T) {
                v128_t xs = (v128_t)x[t * n_groups * 4 + i];
                dot[r][t] += (i4)wasm_i32x4_dot_i16x8(eight, xs);
            }
        }
        f4 weight_scales = half_of_rows(w, R == 4 ? row_bytes : 0);
        EACH(t, T) {
            i4 products = whole_sums(dot[0][t], dot[1][t], dot[2][t], dot[3][t]);
            f4 both = weight_scales * splat(scales[t * n_groups]);
            total[t] = multiply_add(to_floats(products), both, total[t]);
        }
    }
    store_tile(y, y_pitch, total, bias, R, T);
}

INLINE void unpacked_tile(f4 *total, i32 first_token, const Group *g, i32 n_groups,
                          const i32 n_scales, const i32 T) {
    const s8 *x = scratch.quantised + first_token * n_groups * 4;
    i32 at = first_token * n_groups;
    EACH(t, T) total[t] = splat(0);
    for (i32 i = 0; i < n_groups; i++, g++, x += 4, at++) {
        i4 dot[2][2][4] = {0}; /* of each token, scale and row */
        EACH(r, 4) EACH(k, 4) {
            v128_t eight = wasm_i16x8_load8x8(g->q[r] + 8 * k);
            EACH(t, T) {
                v128_t xs = (v128_t)x[t * n_groups * 4 + k];
                dot[t][k * n_scales / 4][r] += (i4)wasm_i32x4_dot_i16x8(eight, xs);
            }
        }
        EACH(t, T) {
            f4 x_scale = splat(scratch.scales[at + t * n_groups]);
            f4 x_sum = splat(-scratch.sums[at + t * n_groups]);
            EACH(s, n_scales) {
                i4 *d = dot[t][s], products = whole_sums(d[0], d[1], d[2], d[3]);
                total[t] = multiply_add(to_floats(products), g->scale[s] * x_scale, total[t]);
            }
            if (n_scales == 1) total[t] = multiply_add(g->least, x_sum, total[t]);
        }
    }
}

/* ---- Layers ---- */

/* The rows of W from one on, with their biases. */
static Affine rows_from(Affine a, i32 first, i32 width) {
    return (Affine){a.weight + first * bytes_of_row(width, a.type), a.type,
                    a.bias ? a.bias + first : 0};
}

/* n rows, R at a time, times every token, two at a time; rows that are left over from the last R
   stay undone. */
INLINE void multiply_rows(f32 *y, i32 y_pitch, const Input *in, Affine rows, i32 n, const i32 type,
                          const i32 R) {
    i32 width = in->width, pitch = in->pitch, n_tokens = in->n_tokens;
    u32 row_bytes = bytes_of_row(width, type);
    const u8 *w = rows.weight;
#define TILE(T)                                                                                    \
    if (type == Q8_0)                                                                              \
        q8_tile(y + t * y_pitch + r, y_pitch, t, w, row_bytes, width, bias, R, T);                 \
    else                                                                                           \
        float_tile(y + t * y_pitch + r, y_pitch, in->x + t * pitch, pitch, w, row_bytes, width,    \
                   bias, type, R, T);
    for (i32 r = 0; r + R <= n; r += R, w += R * row_bytes) {
        const f32 *bias = rows.bias ? rows.bias + r : 0;
        i32 t = 0;
        for (; R == 4 && t + 2 <= n_tokens; t += 2) {
            TILE(2)
        }
        for (; t < n_tokens; t++) {
            TILE(1)
        }
    }
}

INLINE void multiply(f32 *y, i32 y_pitch, const Input *in, Affine rows, i32 n, const i32 type) {
    i32 fours = n & ~3;
    multiply_rows(y, y_pitch, in, rows, n, type, 4);
    multiply_rows(y + fours, y_pitch, in, rows_from(rows, fours, in->width), n - fours, type, 1);
}

/* One function for each type: browsers translate them one by one, and well only once they have
   run for a while. */
#define LAYER(name, multiply, kind)                                                                \
    static __attribute__((noinline)) void name(f32 *y, i32 y_pitch, const Input *in, Affine rows,  \
                                               i32 n) {                                            \
        multiply(y, y_pitch, in, rows, n, kind);                                                   \
    }
LAYER(f32_layer, multiply, F32)
LAYER(q8_0_layer, multiply, Q8_0)

/* Four rows of f16 or bf16 as f32. */
INLINE Affine expand(Affine rows, i32 width, const i32 type) {
    for (i32 r = 0; r < 4; r++) {
        const u8 *from = rows.weight + r * 2 * width;
        f32 *to = (f32 *)scratch.rows + r * width;
        i32 i = 0;
        for (; i + 4 <= width; i += 4) store(to + i, load_weights(from, i, type));
        f4 rest = load_first_weights(from + 2 * i, width - i, type);
        for (i32 k = 0; i < width; i++, k++) to[i] = rest[k];
    }
    return (Affine){scratch.rows, F32, rows.bias};
}

/* The same of f16 or bf16: for many tokens, four rows are expanded once. */
INLINE void multiply_halves(f32 *y, i32 y_pitch, const Input *in, Affine rows, i32 n,
                            const i32 type) {
    i32 width = in->width;
    if (in->n_tokens == 1) return multiply(y, y_pitch, in, rows, n, type);
    for (; n >= 4; n -= 4, y += 4, rows = rows_from(rows, 4, width))
        f32_layer(y, y_pitch, in, expand(rows, width, type), 4);
    multiply_rows(y, y_pitch, in, rows, n, type, 1);
}

LAYER(f16_layer, multiply_halves, F16)
LAYER(bf16_layer, multiply_halves, BF16)

/* The same of packed weights. Rows left over from the last four come one by one, as four times
   the same. */
INLINE void multiply_unpacked(f32 *y, i32 y_pitch, const Input *in, Affine rows, i32 n,
                              const i32 n_scales) {
    i32 width = in->width, n_groups = width / GROUP;
    f4 total[2];
    for (i32 R; n > 0; n -= R, y += R, rows = rows_from(rows, R, width)) {
        R = n >= 4 ? 4 : 1;
        u32 stride = R == 4 ? bytes_of_row(width, rows.type) : 0;
        const Group *g = unpack(rows.weight, stride, width, rows.type);
        for (i32 t = 0, T; t < in->n_tokens; t += T) {
            T = t + 2 <= in->n_tokens ? 2 : 1;
            if (T == 2)
                unpacked_tile(total, t, g, n_groups, n_scales, 2);
            else
                unpacked_tile(total, t, g, n_groups, n_scales, 1);
            if (R == 4)
                store_tile(y + t * y_pitch, y_pitch, total, rows.bias, 4, T);
            else
                store_tile(y + t * y_pitch, y_pitch, total, rows.bias, 1, T);
        }
    }
}

LAYER(q4_or_q5_layer, multiply_unpacked, 1)
LAYER(q6_k_layer, multiply_unpacked, 2)

void linear(f32 *y, i32 y_pitch, Input *in, const Affine *a, i32 first, i32 n) {
    Affine rows = rows_from(*a, first, in->width);
    switch (a->type) {
    case F32: return f32_layer(y, y_pitch, in, rows, n);
    case F16: return f16_layer(y, y_pitch, in, rows, n);
    case BF16: return bf16_layer(y, y_pitch, in, rows, n);
    }
    if (!in->is_quantised) quantise(in);
    switch (a->type) {
    case Q8_0: return q8_0_layer(y, y_pitch, in, rows, n);
    case Q6_K: return q6_k_layer(y, y_pitch, in, rows, n);
    default: return q4_or_q5_layer(y, y_pitch, in, rows, n);
    }
}

void read_row(f32 *out, const Affine *a, i32 row, i32 n) {
    const u8 *w = rows_from(*a, row, n).weight;
    const Group *groups = unpack(w, 0, n, a->type);
    for (i32 i = 0; i < n; i++) {
        const u8 *q8 = w + i / GROUP * Q8_0_BYTES;
        const Group *g = groups + i / GROUP;
        switch (a->type) {
        case F32: out[i] = ((const f32 *)w)[i]; break;
        case F16: out[i] = half_to_float(((const u16 *)w)[i]); break;
        case BF16: out[i] = __builtin_bit_cast(f32, ((const u16 *)w)[i] << 16); break;
        case Q8_0: out[i] = half_to_float(*(const u16 *)q8) * (i8)q8[2 + i % GROUP]; break;
        default: out[i] = g->scale[i / 16 % 2][0] * g->q[0][i % GROUP] - g->least[0];
        }
    }
}

void dot_rows(f32 *y, const f32 *x, const f32 *rows, i32 n, i32 width) {
    for (i32 j = 0; j < n; j += 4, rows += 4 * width)
        float_tile(y + j, 0, x, 0, (const u8 *)rows, 4 * width, width, 0, F32, 4, 1);
}
