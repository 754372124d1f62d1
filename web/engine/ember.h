/* What ember.c, linear.c and weights.c share: types, vectors, weights and linear layers. */

#ifndef EMBER_H
#define EMBER_H

#include <stdint.h>
#include <wasm_simd128.h>

typedef uint8_t u8;
typedef int8_t i8;
typedef uint16_t u16;
typedef int16_t i16;
typedef int32_t i32;
typedef uint32_t u32;
typedef uint64_t u64;
typedef float f32;
typedef double f64;
typedef f32 f4 __attribute__((vector_size(16)));
typedef i32 i4 __attribute__((vector_size(16)));
typedef i16 s8 __attribute__((vector_size(16))); /* eight 16-bit numbers */
typedef u8 b16 __attribute__((vector_size(16))); /* sixteen bytes */

#define EXPORT(name) __attribute__((export_name(#name))) name
/* A loop over a constant number of steps, unrolled. */
#define EACH(i, n) _Pragma("clang loop unroll(full)") for (i32 i = 0; i < (n); i++)
#define INLINE static inline __attribute__((always_inline))

/* ---- Vectors ---- */

INLINE f4 load(const f32 *p) { return (f4)wasm_v128_load(p); }
INLINE void store(f32 *p, f4 v) { wasm_v128_store(p, (v128_t)v); }
INLINE f4 splat(f32 x) { return (f4){x, x, x, x}; }
INLINE f32 max(f32 a, f32 b) { return a > b || a != a ? a : b; } /* NaN if one is NaN */
INLINE f4 max4(f4 a, f4 b) { return (f4)wasm_f32x4_max((v128_t)a, (v128_t)b); }
INLINE f4 min4(f4 a, f4 b) { return (f4)wasm_f32x4_min((v128_t)a, (v128_t)b); }
INLINE u32 round_up(u32 n, u32 unit) { return (n + unit - 1) / unit * unit; }

INLINE f4 multiply_add(f4 a, f4 b, f4 c) { /* a b + c */
#ifdef __wasm_relaxed_simd__
    return (f4)wasm_f32x4_relaxed_madd((v128_t)a, (v128_t)b, (v128_t)c);
#else
    return a * b + c;
#endif
}

INLINE f4 to_floats(i4 v) { return (f4)wasm_f32x4_convert_i32x4((v128_t)v); }

INLINE f32 sum(f4 v) { return (v[0] + v[2]) + (v[1] + v[3]); }

/* The sums of four vectors, each as `sum` adds; of floats and of whole numbers. */
#define SUMS(name, vector)                                                                         \
    INLINE vector name(vector a, vector b, vector c, vector d) {                                   \
        vector ab = PICK(a, b, 0, 4, 1, 5) + PICK(a, b, 2, 6, 3, 7);                               \
        vector cd = PICK(c, d, 0, 4, 1, 5) + PICK(c, d, 2, 6, 3, 7);                               \
        return PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);                                \
    }
#define PICK __builtin_shufflevector
SUMS(sums, f4)
SUMS(whole_sums, i4)

INLINE f4 load_first(const f32 *p, i32 n) { /* the first n of four, and zeros */
    f4 v = {0, 0, 0, 0};
    for (i32 i = 0; i < n; i++) v[i] = p[i];
    return v;
}

/* ---- Weights: weights.c ---- */

/* Types of weights, by GGUF's numbers. */
enum {
    F32 = 0, F16 = 1, BF16 = 30, Q8_0 = 8, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, IQ4_NL = 20,
    Q2_K = 10, Q3_K = 11, Q4_K = 12, Q5_K = 13, Q6_K = 14,
};

typedef struct { /* a linear layer: y = W x + b, W (out, in); or a norm: gain and shift */
    const u8 *weight;
    i32 type;
    const f32 *bias; /* or null */
} Affine;

enum { GROUP = 32 }; /* weights, and activations, that share a scale */

typedef struct { /* a group of four rows, unpacked: a weight is scale q - least */
    i8 q[4][GROUP];
    f4 scale[2], least[2]; /* a lane for each row; the second are q2_k's, q3_k's and q6_k's, of
                              which each half of a group has its own */
} Group;

/* An f16 of each of four rows, `stride` bytes apart. Its exponent and fraction, moved to where f32
   has them, are 2^112 times too small; so are those of a subnormal. Infinities, which no weight
   should be, come out finite. */
INLINE f4 half_of_rows(const u8 *w, u32 stride) {
    v128_t halves = wasm_i32x4_splat(0); /* each in the upper half of a lane */
    halves = wasm_v128_load16_lane(w, halves, 1);
    halves = wasm_v128_load16_lane(w + stride, halves, 3);
    halves = wasm_v128_load16_lane(w + 2 * stride, halves, 5);
    halves = wasm_v128_load16_lane(w + 3 * stride, halves, 7);
    halves = wasm_v128_and(wasm_i32x4_shr(halves, 3), wasm_i32x4_splat((i32)0x8fffe000));
    return (f4)halves * splat(0x1p112f);
}

/* Reading a byte of a cache line that is wanted soon. Rows that are read side by side look like no
   stream to the processor, which then waits for memory; reading on in order, one tile ahead, is
   one, and doubles the speed of weights that do not fit its caches. */
INLINE void touch(const u8 *p) { (void)*(const volatile u8 *)p; }

u32 bytes_of_row(i32 width, i32 type);
/* Unpack `width` columns of four rows into scratch.rows. */
const Group *unpack(const u8 *w, u32 stride, i32 width, i32 type);
/* out (n) = one row of W, (.., n). */
void read_row(f32 *out, const Affine *a, i32 row, i32 n);

/* ---- Linear layers: linear.c ---- */

typedef struct { /* T rows of activations that linear layers read */
    const f32 *x;
    i32 n_tokens, width, pitch;
    i32 is_quantised;
} Input;

INLINE Input input(const f32 *x, i32 n_tokens, i32 width) {
    return (Input){x, n_tokens, width, round_up(width, 4), 0};
}

/* Room for what linear.c makes of T rows of `in` activations, and of four rows of weights. */
extern struct Scratch {
    s8 *quantised;      /* (T, in / 8) */
    f32 *scales, *sums; /* (T, in / 32) */
    f32 *half_sums;     /* (T, in / 16) */
    u8 *rows;           /* (4, in): weights as f32, or unpacked */
} scratch;

/* y (T, y_pitch) = rows first .. first + n of W times x, plus their biases. */
void linear(f32 *y, i32 y_pitch, Input *in, const Affine *a, i32 first, i32 n);
/* y[j] = x . rows[j], n rows of f32; up to three more are written, of rows that mean nothing. */
void dot_rows(f32 *y, const f32 *x, const f32 *rows, i32 n, i32 width);

#endif
