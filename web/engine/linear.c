/* Linear layers over weights as they lie in a GGUF file.

   f32, f16 and bf16 are multiplied as floats. All others come in groups of 32 that share a scale,
   and meet activations of 16 bits, quantised in the same groups: products are whole numbers, their
   sums exact. q8_0 is multiplied where it lies; of the others four rows at a time are unpacked to
   bytes (weights.c), which stay in the processor's cache until all tokens have met them.
*/

#include "ember.h"

struct Scratch scratch;

/* ---- Weights that are floats ---- */

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
            i4 total[2] = {0};
            for (i32 i = 0; i < GROUP; i += 8) {
                v128_t low = wasm_f32x4_nearest((v128_t)(load(x + i) * inverse));
                v128_t high = wasm_f32x4_nearest((v128_t)(load(x + i + 4) * inverse));
                v128_t eight = wasm_i16x8_narrow_i32x4(wasm_i32x4_trunc_sat_f32x4(low),
                                                       wasm_i32x4_trunc_sat_f32x4(high));
                scratch.quantised[(t * n_groups + g) * 4 + i / 8] = (s8)eight;
                total[i / 16] += (i4)wasm_i32x4_extadd_pairwise_i16x8(eight);
            }
            i4 none = {0};
            f4 halves = splat(scale) * to_floats(whole_sums(total[0], total[1], none, none));
            i32 at = t * n_groups + g;
            scratch.scales[at] = scale;
            scratch.sums[at] = halves[0] + halves[1];
            wasm_v128_store64_lane(scratch.half_sums + 2 * at, (v128_t)halves, 0);
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
                          const i32 n_scales, const i32 n_least, const i32 T) {
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
            const f32 *x_halves = scratch.half_sums + 2 * (at + t * n_groups);
            EACH(s, n_scales) {
                i4 *d = dot[t][s], products = whole_sums(d[0], d[1], d[2], d[3]);
                total[t] = multiply_add(to_floats(products), g->scale[s] * x_scale, total[t]);
            }
            if (n_least == 1) total[t] = multiply_add(g->least[0], x_sum, total[t]);
            if (n_least == 2)
                EACH(h, 2) total[t] = multiply_add(g->least[h], splat(-x_halves[h]), total[t]);
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
#define LAYER(name, multiply, ...)                                                                 \
    static __attribute__((noinline)) void name(f32 *y, i32 y_pitch, const Input *in, Affine rows,  \
                                               i32 n) {                                            \
        multiply(y, y_pitch, in, rows, n, __VA_ARGS__);                                            \
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
                              const i32 n_scales, const i32 n_least) {
    i32 width = in->width, n_groups = width / GROUP;
    f4 total[2];
    for (i32 R; n > 0; n -= R, y += R, rows = rows_from(rows, R, width)) {
        R = n >= 4 ? 4 : 1;
        u32 stride = R == 4 ? bytes_of_row(width, rows.type) : 0;
        const Group *g = unpack(rows.weight, stride, width, rows.type);
        for (i32 t = 0, T; t < in->n_tokens; t += T) {
            T = t + 2 <= in->n_tokens ? 2 : 1;
            if (T == 2)
                unpacked_tile(total, t, g, n_groups, n_scales, n_least, 2);
            else
                unpacked_tile(total, t, g, n_groups, n_scales, n_least, 1);
            if (R == 4)
                store_tile(y + t * y_pitch, y_pitch, total, rows.bias, 4, T);
            else
                store_tile(y + t * y_pitch, y_pitch, total, rows.bias, 1, T);
        }
    }
}

LAYER(group_layer, multiply_unpacked, 1, 1)
LAYER(q2_k_layer, multiply_unpacked, 2, 2)
LAYER(q3_or_q6_k_layer, multiply_unpacked, 2, 0)

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
    case Q2_K: return q2_k_layer(y, y_pitch, in, rows, n);
    case Q3_K:
    case Q6_K: return q3_or_q6_k_layer(y, y_pitch, in, rows, n);
    default: return group_layer(y, y_pitch, in, rows, n);
    }
}

void dot_rows(f32 *y, const f32 *x, const f32 *rows, i32 n, i32 width) {
    for (i32 j = 0; j < n; j += 4, rows += 4 * width)
        float_tile(y + j, 0, x, 0, (const u8 *)rows, 4 * width, width, 0, F32, 4, 1);
}
