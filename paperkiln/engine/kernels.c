// The passes over memory of fast_ops, each fused into one loop over rows; float32.
//
// Every function is the loop of one op of ops.py, whose docstring has the formula. No libc:
// zig compiles this file for the machine it runs on, and could for WebAssembly. Rows are
// contiguous; N rows, D columns, F the width of a gated half, V the vocabulary.

#include <stdint.h>

#define API __attribute__((visibility("default")))

static inline float max2(float a, float b) { return a > b ? a : b; }

// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln(2) / 2: the Taylor series of e^r to r^7
// is exact to float32. ln 2 is subtracted in two parts, so that r keeps its low bits.
static inline float exp_(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = __builtin_rintf(x * 1.44269504f);
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    union { int32_t bits; float value; } two_n = {((int32_t)n + 127) << 23};
    return p * two_n.value;
}

// ln x for a normal x: the exponent, plus ln m = 2 artanh((m - 1) / (m + 1)) of a mantissa m
// near 1.
static double log_(double x) {
    union { double value; uint64_t bits; } u = {x};
    int exponent = (int)((u.bits >> 52) & 0x7ff) - 1023;
    u.bits = (u.bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL;
    double m = u.value;
    if (m > 1.4142135623730951) { m *= 0.5; exponent++; }
    double s = (m - 1) / (m + 1), s2 = s * s, term = s, sum = 0;
    for (int k = 1; k < 24; k += 2) { sum += term / k; term *= s2; }
    return 2 * sum + exponent * 0.6931471805599453;
}

// erf by Abramowitz & Stegun 7.1.26, |error| <= 1.5e-7.
static inline float erf_(float x) {
    float a = x < 0 ? -x : x;
    float t = 1.0f / (1.0f + 0.3275911f * a);
    float y = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f
            + t * (-1.453152027f + t * 1.061405429f))));
    y = 1.0f - y * exp_(-a * a);
    return x < 0 ? -y : y;
}

// --- normalisation ---------------------------------------------------------------------------

API void rms_norm(const float *restrict x, const float *restrict w, float *restrict out,
                  float *restrict r, int64_t N, int64_t D, float eps) {
    for (int64_t i = 0; i < N; i++, x += D, out += D) {
        float sum = 0;
        for (int64_t j = 0; j < D; j++) sum += x[j] * x[j];
        float s = 1.0f / __builtin_sqrtf(sum / D + eps);
        for (int64_t j = 0; j < D; j++) out[j] = x[j] * s * w[j];
        r[i] = s;
    }
}

// dw must be zeroed.
API void rms_norm_backward(const float *restrict x, const float *restrict w,
                           const float *restrict r, const float *restrict dout,
                           float *restrict dx, float *restrict dw, int64_t N, int64_t D) {
    for (int64_t i = 0; i < N; i++, x += D, dout += D, dx += D) {
        float s = r[i], dot = 0;
        for (int64_t j = 0; j < D; j++) {
            float normed = x[j] * s;
            dw[j] += dout[j] * normed;
            dot += dout[j] * w[j] * normed;
        }
        dot /= D;
        for (int64_t j = 0; j < D; j++) dx[j] = s * (dout[j] * w[j] - x[j] * s * dot);
    }
}

// b may be NULL; mean and r are kept for backward.
API void layer_norm(const float *restrict x, const float *restrict w, const float *restrict b,
                    float *restrict out, float *restrict mean, float *restrict r,
                    int64_t N, int64_t D, float eps) {
    for (int64_t i = 0; i < N; i++, x += D, out += D) {
        float sum = 0, squares = 0;
        for (int64_t j = 0; j < D; j++) sum += x[j];
        float m = sum / D;
        for (int64_t j = 0; j < D; j++) squares += (x[j] - m) * (x[j] - m);
        float s = 1.0f / __builtin_sqrtf(squares / D + eps);
        for (int64_t j = 0; j < D; j++) out[j] = (x[j] - m) * s * w[j];
        if (b) for (int64_t j = 0; j < D; j++) out[j] += b[j];
        mean[i] = m;
        r[i] = s;
    }
}

// dw and db must be zeroed; db may be NULL.
API void layer_norm_backward(const float *restrict x, const float *restrict w,
                             const float *restrict mean, const float *restrict r,
                             const float *restrict dout, float *restrict dx,
                             float *restrict dw, float *restrict db, int64_t N, int64_t D) {
    for (int64_t i = 0; i < N; i++, x += D, dout += D, dx += D) {
        float m = mean[i], s = r[i], sum = 0, dot = 0;
        for (int64_t j = 0; j < D; j++) {
            float normed = (x[j] - m) * s, g = dout[j] * w[j];
            dw[j] += dout[j] * normed;
            sum += g;
            dot += g * normed;
        }
        if (db) for (int64_t j = 0; j < D; j++) db[j] += dout[j];
        sum /= D;
        dot /= D;
        for (int64_t j = 0; j < D; j++)
            dx[j] = s * (dout[j] * w[j] - sum - (x[j] - m) * s * dot);
    }
}

// --- nonlinearities: value and derivative, used plain and gated ------------------------------

static inline float sigmoid_(float x) { return 1.0f / (1.0f + exp_(-x)); }

static inline float relu_f(float x) { return max2(x, 0); }
static inline float relu_d(float x) { return x > 0 ? 1.0f : 0.0f; }
static inline float squared_relu_f(float x) { float r = max2(x, 0); return r * r; }
static inline float squared_relu_d(float x) { return 2.0f * max2(x, 0); }
static inline float silu_f(float x) { return x * sigmoid_(x); }
static inline float silu_d(float x) { float s = sigmoid_(x); return s * (1 + x * (1 - s)); }
static inline float gelu_f(float x) { return 0.5f * x * (1 + erf_(x * 0.70710678f)); }
static inline float gelu_d(float x) {
    return 0.5f * (1 + erf_(x * 0.70710678f)) + x * 0.39894228f * exp_(-0.5f * x * x);
}
// 0.5 (1 + tanh u) is sigmoid(2 u), which keeps its small values where 1 + tanh u cancels.
#define GELU_2C 1.59576912f  // 2 sqrt(2 / pi)
static inline float gelu_tanh_f(float x) {
    return x * sigmoid_(GELU_2C * x * (1 + 0.044715f * x * x));
}
static inline float gelu_tanh_d(float x) {
    float s = sigmoid_(GELU_2C * x * (1 + 0.044715f * x * x));
    return s + x * s * (1 - s) * GELU_2C * (1 + 3 * 0.044715f * x * x);
}

#define PLAIN(name)                                                                              \
    API void name(const float *restrict x, float *restrict out, int64_t n) {                     \
        for (int64_t i = 0; i < n; i++) out[i] = name##_f(x[i]);                                 \
    }                                                                                            \
    API void name##_backward(const float *restrict x, const float *restrict dout,                \
                             float *restrict dx, int64_t n) {                                    \
        for (int64_t i = 0; i < n; i++) dx[i] = dout[i] * name##_d(x[i]);                        \
    }

// x is (N, 2F) = [gate | up], out (N, F).
#define GATED(name, f)                                                                           \
    API void name(const float *restrict x, float *restrict out, int64_t N, int64_t F) {          \
        for (int64_t i = 0; i < N; i++, x += 2 * F, out += F)                                    \
            for (int64_t j = 0; j < F; j++) out[j] = f##_f(x[j]) * x[F + j];                     \
    }                                                                                            \
    API void name##_backward(const float *restrict x, const float *restrict dout,                \
                             float *restrict dx, int64_t N, int64_t F) {                         \
        for (int64_t i = 0; i < N; i++, x += 2 * F, dout += F, dx += 2 * F)                      \
            for (int64_t j = 0; j < F; j++) {                                                    \
                dx[j] = dout[j] * x[F + j] * f##_d(x[j]);                                        \
                dx[F + j] = dout[j] * f##_f(x[j]);                                               \
            }                                                                                    \
    }

PLAIN(relu)
PLAIN(squared_relu)
PLAIN(silu)
PLAIN(gelu)
PLAIN(gelu_tanh)
GATED(swiglu, silu)
GATED(geglu, gelu)
GATED(reglu, relu)

// --- attention -------------------------------------------------------------------------------

// x is (B, T, H, E) with the given strides in elements, out contiguous; cos and sin (T, E/2).
// sign -1 rotates back.
API void rope(const float *restrict x, const float *restrict cos, const float *restrict sin,
              float *restrict out, int64_t B, int64_t T, int64_t H, int64_t E,
              int64_t stride_b, int64_t stride_t, int64_t stride_h, int interleaved, float sign) {
    int64_t half = E / 2;
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++)
            for (int64_t h = 0; h < H; h++, out += E) {
                const float *restrict row = x + b * stride_b + t * stride_t + h * stride_h;
                const float *restrict c = cos + t * half, *restrict s = sin + t * half;
                if (interleaved)
                    for (int64_t m = 0; m < half; m++) {
                        float x1 = row[2 * m], x2 = row[2 * m + 1], sn = sign * s[m];
                        out[2 * m] = x1 * c[m] - x2 * sn;
                        out[2 * m + 1] = x2 * c[m] + x1 * sn;
                    }
                else
                    for (int64_t m = 0; m < half; m++) {
                        float x1 = row[m], x2 = row[half + m], sn = sign * s[m];
                        out[m] = x1 * c[m] - x2 * sn;
                        out[half + m] = x2 * c[m] + x1 * sn;
                    }
            }
}

static inline float softmax_span_max(const float *row, int64_t a, int64_t b, float m) {
    for (int64_t j = a; j < b; j++) m = max2(m, row[j]);
    return m;
}

static inline float softmax_span_exp(float *row, int64_t a, int64_t b, float m) {
    float sum = 0;
    for (int64_t j = a; j < b; j++) {
        row[j] = exp_(row[j] - m);
        sum += row[j];
    }
    return sum;
}

// scores (M, R, S) become probabilities: rows are queries from i0 on, columns keys from k0 on,
// matrix number n belongs to head n % H. Query i sees the keys [i - window + 1, i] and, when k0
// is 0, [0, sinks); without a window (0) all up to i. Other keys become 0; slopes (H,) may be NULL.
API void causal_softmax(float *restrict scores, const float *restrict slopes, int64_t M,
                        int64_t H, int64_t R, int64_t S, int64_t i0, int64_t k0,
                        int64_t window, int64_t sinks) {
    for (int64_t n = 0; n < M; n++)
        for (int64_t i = i0; i < i0 + R; i++, scores += S) {
            int64_t first = window > 0 && i - window + 1 > k0 ? i - window + 1 - k0 : 0;
            int64_t end = i + 1 - k0;  // both counted in columns
            int64_t n_sinks = k0 == 0 && sinks < first ? sinks : k0 == 0 ? first : 0;
            if (slopes) {
                float slope = slopes[n % H];
                for (int64_t j = 0; j < end; j++) scores[j] += slope * (float)(j + k0 - i);
            }
            float m = softmax_span_max(scores, first, end, scores[end - 1]);
            m = softmax_span_max(scores, 0, n_sinks, m);
            float sum = softmax_span_exp(scores, first, end, m);
            sum += softmax_span_exp(scores, 0, n_sinks, m);
            float scale = 1.0f / sum;
            for (int64_t j = 0; j < end; j++) scores[j] *= scale;
            for (int64_t j = n_sinks; j < first; j++) scores[j] = 0;
            for (int64_t j = end; j < S; j++) scores[j] = 0;
        }
}

// ds (M, R, S) holds dP and becomes P (dP - row_dot), row_dot (M, R); i0 and k0 as above.
API void causal_softmax_backward(float *restrict ds, const float *restrict p,
                                 const float *restrict row_dot, int64_t M, int64_t R, int64_t S,
                                 int64_t i0, int64_t k0) {
    for (int64_t n = 0; n < M; n++)
        for (int64_t i = i0; i < i0 + R; i++, ds += S, p += S) {
            float dot = *row_dot++;
            int64_t end = i + 1 - k0;
            for (int64_t j = 0; j < end; j++) ds[j] = p[j] * (ds[j] - dot);
            for (int64_t j = end; j < S; j++) ds[j] = 0;
        }
}

// --- loss and optimiser ----------------------------------------------------------------------

// Returns the summed -log p(target); rows (N, V) become (p - onehot) * scale, or 0 where the
// target is ignored.
API double cross_entropy(float *restrict logits, const int64_t *restrict targets, int64_t N,
                         int64_t V, int64_t ignore, float scale) {
    double loss = 0;
    for (int64_t i = 0; i < N; i++, logits += V) {
        if (targets[i] == ignore) {
            for (int64_t j = 0; j < V; j++) logits[j] = 0;
            continue;
        }
        float m = softmax_span_max(logits, 0, V, logits[0]);
        float picked = logits[targets[i]] - m;
        float sum = softmax_span_exp(logits, 0, V, m);
        loss += log_(sum) - picked;
        float factor = scale / sum;
        for (int64_t j = 0; j < V; j++) logits[j] *= factor;
        logits[targets[i]] -= scale;
    }
    return loss;
}

API void adamw(float *restrict theta, const float *restrict grad, float *restrict m,
               float *restrict v, int64_t n, float grad_scale, float beta1, float beta2,
               float step_size, float v_scale, float eps, float keep) {
    for (int64_t i = 0; i < n; i++) {
        float g = grad[i] * grad_scale;
        m[i] = beta1 * m[i] + (1 - beta1) * g;
        v[i] = beta2 * v[i] + (1 - beta2) * g * g;
        theta[i] = theta[i] * keep - step_size * m[i] / (__builtin_sqrtf(v[i]) * v_scale + eps);
    }
}
