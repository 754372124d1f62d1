/* ember: a decoder-only transformer in one WebAssembly module, with no libc and no imports.

   The whole GGUF file lies in this module's memory and the weights are used where they lie
   (weights.c, linear.c). The host (paperkiln/infer/ember.py) reads the file's header, checks it,
   and fills in two things: Config, what the model is, and a table of Affine, where each weight
   begins.
   Nothing is checked twice: the host vouches for every address and dimension it writes here.

   How a host uses it:

       file = ember_reserve(n_bytes)   then write the file's bytes there
       *ember_config() = ...           the first half of Config
       ember_allocate()                fills the other half: where the tables are; write those
       write ids at config.tokens + 4 * length;  ember_read(n)
       ember_generate(n)               chooses and reads up to n more tokens

   Dimensions: T tokens of a block, S keys, D d_model, H query heads, K key/value heads,
   E head_dim, F d_ff, V vocabulary, L layers, C context. Arrays of activations are (T, pitch):
   the pitch is the width rounded up to 4, so that a loop over vectors may run past the width.

   A sum always adds in the same order, whether tokens are read one by one or in blocks, so both
   give the same bits.
*/

#include "ember.h"

enum { NO_POSITIONS, LEARNED, SINUSOIDAL, ROPE, ALIBI };
enum { RELU, GELU, GELU_TANH, SILU, SQUARED_RELU };
enum { BLOCK = 32 };       /* tokens read in one pass */
enum { MAX_CHOICES = 512 }; /* tokens chosen in one call */
enum { IS_END = 1, IS_SEEN = 2 };      /* marks of a token */
enum { GOING_ON, AT_END, CONTEXT_FULL, NOT_FINITE, NOTHING_LEFT, NOTHING_READ }; /* `stopped` */

typedef struct {
    Affine norm1, q, k, v, out, norm2, gate, up, down; /* gate.weight is null without one */
} Layer;

typedef struct {
    Affine embed, positions, norm, head; /* positions: learned ones, f32; norm: pre-norm only */
    Layer layers[];
} Weights;

typedef struct {
    /* Written by the host before ember_allocate. */
    i32 d_model, n_layers, n_heads, n_kv_heads, head_dim, d_ff, n_vocab, context;
    i32 n_choices; /* the first ids, those of the tokenizer; further rows of the head are padding */
    i32 layer_norm, post_norm, activation, positional, rope_half;
    i32 window, sinks; /* keys a query sees; 0 is all */
    f32 norm_eps, score_scale, embed_scale;
    /* Written by ember_allocate: where the host writes and reads. */
    Weights *weights;
    f64 *frequencies; /* rope: (E/2,); sinusoidal: (D/2 rounded up,) */
    f32 *slopes;      /* alibi: (H,) */
    f64 *uniforms;    /* (MAX_CHOICES,), numbers in [0, 1): one for each token chosen by chance */
    u8 *marks;        /* (V,): IS_END where a token ends the text */
    i32 *tokens;      /* (C + 1,): the context, and perhaps one chosen token not yet read */
    f32 *logits;      /* (n_choices,) after the last token that was read */
    /* Written as tokens are read and chosen. */
    i32 length;  /* tokens read */
    i32 stopped; /* why ember_generate returned */
} Config;

typedef struct { /* infer/sampling.py defines what these do */
    f64 temperature, top_p, min_p, repetition_penalty;
    i32 top_k;
} Sampling;

typedef struct {
    f64 logit;
    i32 id;
} Candidate;

static Config config;
static Sampling sampling;

static struct { /* scratch, and the key/value cache */
    f32 *x, *h, *q, *mixed, *gate, *up; /* (T, pitch) */
    f32 *scores;                        /* (C + some,) of one query and head */
    f32 *cosines, *sines;               /* (T, E/2) */
    f32 *keys, *values;                 /* (L, K, C, E); attention may read a little beyond */
    Candidate *candidates;              /* (n_choices,) */
    i32 has_logits, has_pending;
} state;

/* ---- Functions ---- */

/* e^x for -87 <= x <= 88, and beyond as at these ends; relative error below 3e-7. */
INLINE f4 exp4(f4 x) {
    const f4 magic = splat(0x1.8p23f); /* adding it rounds, and leaves n in the lowest bits */
    x = min4(max4(x, splat(-87)), splat(88));
    f4 shifted = multiply_add(x, splat(1.44269504f), magic), n = shifted - magic;
    f4 r = multiply_add(n, splat(-0.693359375f), x); /* x = n log 2 + r, log 2 in two parts */
    r = multiply_add(n, splat(2.12194440e-4f), r);
    f4 y = splat(1.0f / 5040);
    y = multiply_add(y, r, splat(1.0f / 720));
    y = multiply_add(y, r, splat(1.0f / 120));
    y = multiply_add(y, r, splat(1.0f / 24));
    y = multiply_add(y, r, splat(1.0f / 6));
    y = multiply_add(y, r, splat(0.5f));
    y = multiply_add(y, r, splat(1.0f));
    y = multiply_add(y, r, splat(1.0f));
    i4 power = (i4)shifted << 23; /* n, where a float has its exponent */
    return (f4)((i4)y + power);
}

INLINE f4 sigmoid(f4 x) { return splat(1) / (splat(1) + exp4(-x)); }

/* The normal distribution function (1 + erf(x / sqrt 2)) / 2, from Abramowitz & Stegun 7.1.26;
   error below 2e-7. */
INLINE f4 normal(f4 x) {
    f4 z = (f4)wasm_f32x4_abs((v128_t)x) * splat(0.707106781f);
    f4 t = splat(1) / multiply_add(z, splat(0.3275911f), splat(1));
    f4 tail = splat(1.061405429f);
    tail = multiply_add(tail, t, splat(-1.453152027f));
    tail = multiply_add(tail, t, splat(1.421413741f));
    tail = multiply_add(tail, t, splat(-0.284496736f));
    tail = multiply_add(tail, t, splat(0.254829592f));
    tail = tail * t * exp4(-z * z) * splat(0.5f);
    return (f4)wasm_v128_bitselect((v128_t)tail, (v128_t)(splat(1) - tail), (v128_t)(x < 0));
}

INLINE f4 activate4(f4 x, const i32 kind) {
    f4 positive = max4(x, splat(0));
    switch (kind) {
    case RELU: return positive;
    case SQUARED_RELU: return positive * positive;
    case SILU: return x * sigmoid(x);
    case GELU: return x * normal(x);
    /* x/2 (1 + tanh u) is x / (1 + e^-2u), with u = sqrt(2/pi) (x + 0.044715 x^3) */
    default: return x * sigmoid(x * multiply_add(x * x, splat(0.0713548163f), splat(1.59576912f)));
    }
}

/* 1/n!, for the series below. */
static const f64 INVERSE_FACTORIAL[] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
    1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0,
};

/* e^x for x <= 0 in double precision, relative error below 1e-15; 0 below -708. */
f64 EXPORT(ember_exp)(f64 x) {
    if (!(x > -708)) return 0;
    f64 n = __builtin_rint(x * 1.4426950408889634);
    f64 r = x - n * 0x1.62e42fefap-1 - n * 0x1.cf79abc9e3b3ap-40; /* log 2 in two parts */
    f64 y = 0;
    EACH(i, 14) y = INVERSE_FACTORIAL[13 - i] + y * r;
    return y * __builtin_bit_cast(f64, (u64)((i32)n + 1023) << 52);
}

/* sin(x), or cos(x), for 0 <= x < 2^24, error below 1e-9: enough for angles stored as f32. */
f64 EXPORT(ember_sine)(f64 x, i32 cosine) {
    f64 n = __builtin_rint(x * 0.63661977236758134); /* x = n pi/2 + r */
    f64 r = x - n * 0x1.921fb54p0 - n * 0x1.10b4611a62633p-30; /* pi/2 in two parts */
    i32 quarter = ((i32)n + cosine) & 3, odd = !(quarter & 1);
    f64 y = 0, square = r * r;
    EACH(i, 6) y = INVERSE_FACTORIAL[10 - 2 * i + odd] - y * square;
    if (odd) y *= r;
    return quarter & 2 ? -y : y;
}

/* ---- The decoder's other parts ---- */

/* y = RMSNorm or LayerNorm of each row of x (T, D); y may be x. */
static void norm(f32 *y, const f32 *x, i32 n_tokens, const Affine *a) {
    i32 n = config.d_model, pitch = round_up(n, 4);
    const f32 *gain = (const f32 *)a->weight, *shift = a->bias;
    for (i32 t = 0; t < n_tokens; t++, x += pitch, y += pitch) {
        f32 mean = 0, square = 0;
        i32 i;
        if (config.layer_norm) {
            f4 total = splat(0);
            for (i = 0; i + 4 <= n; i += 4) total += load(x + i);
            mean = sum(total + load_first(x + i, n - i)) / n;
        }
        f4 total = splat(0);
        for (i = 0; i + 4 <= n; i += 4) {
            f4 d = load(x + i) - splat(mean);
            total += d * d;
        }
        square = sum(total);
        for (; i < n; i++) square += (x[i] - mean) * (x[i] - mean);
        f32 scale = 1 / __builtin_sqrtf(square / n + config.norm_eps);
        for (i = 0; i < n; i++) y[i] = (x[i] - mean) * scale * gain[i];
        if (shift)
            for (i = 0; i < n; i++) y[i] += shift[i];
    }
}

static void add(f32 *x, const f32 *y, i32 n) {
    for (i32 i = 0; i < n; i++) x[i] += y[i];
}

/* up = f(gate) * up, or f(up) without a gate, over n numbers rounded up to 4. */
static void activate(f32 *up, const f32 *gate, i32 n) {
#define CASE(kind)                                                                                 \
    case kind:                                                                                     \
        for (i32 i = 0; i < n; i += 4) {                                                           \
            f4 y = activate4(load((gate ? gate : up) + i), kind);                                  \
            store(up + i, gate ? y * load(up + i) : y);                                            \
        }                                                                                          \
        break;
    switch (config.activation) {
        CASE(RELU)
        CASE(GELU)
        CASE(GELU_TANH)
        CASE(SILU)
        CASE(SQUARED_RELU)
    }
}

/* One token's row of the embedding, scaled. */
static void embed(f32 *x, i32 token) {
    read_row(x, &config.weights->embed, token, config.d_model);
    if (config.embed_scale != 1)
        for (i32 i = 0; i < config.d_model; i++) x[i] *= config.embed_scale;
}

static void add_position(f32 *x, i32 position) {
    i32 n = config.d_model;
    if (config.positional == LEARNED)
        add(x, (const f32 *)config.weights->positions.weight + position * n, n);
    if (config.positional == SINUSOIDAL)
        for (i32 i = 0; i < n; i++) x[i] += ember_sine(position * config.frequencies[i / 2], i & 1);
}

/* Rotate each pair of a head by the angles of the block's token t. */
static void rotate(f32 *head, i32 t) {
    i32 half = config.head_dim / 2;
    const f32 *cosine = state.cosines + t * half, *sine = state.sines + t * half;
    i32 step = config.rope_half ? 1 : 2, partner = config.rope_half ? half : 1;
    for (i32 m = 0; m < half; m++) {
        f32 a = head[m * step], b = head[m * step + partner];
        head[m * step] = a * cosine[m] - b * sine[m];
        head[m * step + partner] = b * cosine[m] + a * sine[m];
    }
}

static void prepare_rotations(i32 start, i32 n_tokens) {
    i32 half = config.head_dim / 2;
    for (i32 t = 0; t < n_tokens; t++)
        for (i32 m = 0; m < half; m++) {
            f64 angle = (start + t) * config.frequencies[m];
            state.cosines[t * half + m] = ember_sine(angle, 1);
            state.sines[t * half + m] = ember_sine(angle, 0);
        }
}

INLINE void mix_columns(f32 *out, const f32 *p, const f32 *values, i32 n, i32 E, const i32 V) {
    f4 total[8];
    EACH(v, V) total[v] = load(out + 4 * v);
    for (i32 j = 0; j < n; j++, values += E)
        EACH(v, V) total[v] = multiply_add(splat(p[j]), load(values + 4 * v), total[v]);
    EACH(v, V) store(out + 4 * v, total[v]);
}

/* out += sum over n keys of p[j] values[j]. */
static void mix(f32 *out, const f32 *p, const f32 *values, i32 n) {
    i32 E = config.head_dim, e = 0;
    for (; e + 32 <= E; e += 32) mix_columns(out + e, p, values + e, n, E, 8);
    for (; e + 16 <= E; e += 16) mix_columns(out + e, p, values + e, n, E, 4);
    for (; e + 4 <= E; e += 4) mix_columns(out + e, p, values + e, n, E, 1);
    for (; e < E; e++)
        for (i32 j = 0; j < n; j++) out[e] += p[j] * values[j * E + e];
}

/* One query of one head: out = softmax(q k^T scale + bias) v over the keys it sees. These are
   0 .. n_sinks - 1 and first .. position. */
static void attend(f32 *out, const f32 *q, const f32 *keys, const f32 *values, i32 position,
                   i32 head) {
    i32 E = config.head_dim, first = 0, n_sinks = 0;
    if (config.window && position >= config.window) {
        first = position - config.window + 1;
        n_sinks = config.sinks < first ? config.sinks : first;
    }
    i32 n_near = position - first + 1, n = n_sinks + n_near;
    f32 *scores = state.scores, *near = scores + n_sinks;
    dot_rows(scores, q, keys, n_sinks, E);
    dot_rows(near, q, keys + first * E, n_near, E);
    for (i32 j = 0; j < n; j++) scores[j] *= config.score_scale;
    if (config.positional == ALIBI) {
        f32 slope = config.slopes[head];
        for (i32 j = 0; j < n_sinks; j++) scores[j] -= slope * (position - j);
        for (i32 j = 0; j < n_near; j++) near[j] -= slope * (n_near - 1 - j);
    }
    for (i32 j = n; j & 3; j++) scores[j] = -__builtin_inff();
    f4 top = splat(-__builtin_inff()), total = splat(0);
    for (i32 j = 0; j < n; j += 4) top = max4(top, load(scores + j));
    top = splat(max(max(top[0], top[1]), max(top[2], top[3])));
    for (i32 j = 0; j < n; j += 4) {
        f4 p = exp4(load(scores + j) - top);
        store(scores + j, p);
        total += p;
    }
    for (i32 e = 0; e < E; e++) out[e] = 0;
    mix(out, scores, values, n_sinks);
    mix(out, near, values + first * E, n_near);
    f32 inverse = 1 / sum(total);
    for (i32 e = 0; e < E; e++) out[e] *= inverse;
}

/* ---- The decoder ---- */

/* state.h = what attention adds to the residual stream, from in (T, D). */
static void attention(Input in, const Layer *layer, i32 number, i32 start) {
    i32 E = config.head_dim, H = config.n_heads, K = config.n_kv_heads, C = config.context;
    i32 pitch = round_up(H * E, 4), n_tokens = in.n_tokens;
    f32 *keys = state.keys + number * K * C * E, *values = state.values + number * K * C * E;
    linear(state.q, pitch, &in, &layer->q, 0, H * E);
    for (i32 k = 0; k < K; k++) {
        linear(keys + (k * C + start) * E, E, &in, &layer->k, k * E, E);
        linear(values + (k * C + start) * E, E, &in, &layer->v, k * E, E);
    }
    if (config.positional == ROPE)
        for (i32 t = 0; t < n_tokens; t++) {
            for (i32 h = 0; h < H; h++) rotate(state.q + t * pitch + h * E, t);
            for (i32 k = 0; k < K; k++) rotate(keys + (k * C + start + t) * E, t);
        }
    for (i32 h = 0; h < H; h++) {
        i32 cache = h / (H / K) * C * E;
        for (i32 t = 0; t < n_tokens; t++)
            attend(state.mixed + t * pitch + h * E, state.q + t * pitch + h * E, keys + cache,
                   values + cache, start + t, h);
    }
    Input mixed = input(state.mixed, n_tokens, H * E);
    linear(state.h, round_up(config.d_model, 4), &mixed, &layer->out, 0, config.d_model);
}

static void feed_forward(Input in, const Layer *layer) {
    i32 F = config.d_ff, pitch = round_up(F, 4), n_tokens = in.n_tokens;
    f32 *gate = layer->gate.weight ? state.gate : 0;
    if (gate) linear(gate, pitch, &in, &layer->gate, 0, F);
    linear(state.up, pitch, &in, &layer->up, 0, F);
    activate(state.up, gate, n_tokens * pitch);
    Input inner = input(state.up, n_tokens, F);
    linear(state.h, round_up(config.d_model, 4), &inner, &layer->down, 0, config.d_model);
}

/* Read the T tokens that follow those read; logits of the last one if wanted. */
static void read_block(i32 n_tokens, i32 want_logits) {
    i32 D = config.d_model, pitch = round_up(D, 4), start = config.length, post = config.post_norm;
    const Weights *w = config.weights;
    f32 *x = state.x, *h = state.h;
    for (i32 t = 0; t < n_tokens; t++) {
        embed(x + t * pitch, config.tokens[start + t]);
        add_position(x + t * pitch, start + t);
    }
    if (config.positional == ROPE) prepare_rotations(start, n_tokens);
    for (i32 l = 0; l < config.n_layers; l++) {
        const Layer *layer = &w->layers[l];
        if (!post) norm(h, x, n_tokens, &layer->norm1);
        attention(input(post ? x : h, n_tokens, D), layer, l, start);
        add(x, h, n_tokens * pitch);
        norm(post ? x : h, x, n_tokens, post ? &layer->norm1 : &layer->norm2);
        feed_forward(input(post ? x : h, n_tokens, D), layer);
        add(x, h, n_tokens * pitch);
        if (post) norm(x, x, n_tokens, &layer->norm2);
    }
    config.length = start + n_tokens;
    if (!want_logits) return;
    f32 *last = x + (n_tokens - 1) * pitch;
    if (!post) norm(last, last, 1, &w->norm);
    Input in = input(last, 1, D);
    linear(config.logits, 0, &in, &w->head, 0, config.n_choices);
    state.has_logits = 1;
}

/* ---- Choosing a token: infer/sampling.py, in the same double precision ---- */

INLINE i32 ranks_before(Candidate a, Candidate b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/* Restore a heap below i: the best candidate on top, or the worst. */
static void sift(Candidate *heap, i32 n, i32 i, i32 worst_on_top) {
    Candidate moved = heap[i];
    for (i32 child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && ranks_before(heap[child + 1], heap[child]) != worst_on_top) child++;
        if (ranks_before(heap[child], moved) == worst_on_top) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void make_heap(Candidate *heap, i32 n, i32 worst_on_top) {
    for (i32 i = n / 2 - 1; i >= 0; i--) sift(heap, n, i, worst_on_top);
}

/* The largest logit; NaN if there is a NaN. */
static f32 largest_logit(void) {
    f32 best = -__builtin_inff();
    i32 i = 0, n = config.n_choices;
    f4 top = splat(best);
    for (; i + 4 <= n; i += 4) top = max4(top, load(config.logits + i));
    for (; i < n; i++) top = max4(top, splat(config.logits[i]));
    for (i = 0; i < 4; i++) {
        if (top[i] != top[i]) return top[i];
        best = max(best, top[i]);
    }
    return best;
}

/* Take the k best after the penalty as a heap, the best on top; returns how many there are. */
static i32 find_candidates(i32 k) {
    Candidate *heap = state.candidates;
    f64 penalty = sampling.repetition_penalty;
    const f32 *logits = config.logits;
    i32 n = 0, n_choices = config.n_choices, penalised = penalty != 1;
    for (i32 i = 0; i < n_choices; i++) {
        if (n == k && !penalised && i + 4 <= n_choices &&
            !wasm_v128_any_true((v128_t)(load(logits + i) > splat(heap[0].logit)))) {
            i += 3; /* none of four is better than the worst: true nearly always */
            continue;
        }
        f64 logit = logits[i];
        if (logit == -__builtin_inf()) continue;
        if (penalised && config.marks[i] & IS_SEEN)
            logit = logit > 0 ? logit / penalty : logit * penalty;
        Candidate candidate = {logit, i};
        if (n < k) {
            heap[n++] = candidate;
            if (n == k) make_heap(heap, n, 1);
        } else if (ranks_before(candidate, heap[0])) {
            heap[0] = candidate;
            sift(heap, n, 0, 1);
        }
    }
    make_heap(heap, n, 0);
    return n;
}

static i32 n_in_heap; /* the candidates beyond are sorted, the best last */

/* The i-th best of n candidates; only as many are sorted as are asked for. */
static Candidate ranked(i32 n, i32 i) {
    Candidate *heap = state.candidates;
    while (n - n_in_heap <= i) {
        Candidate best = heap[0];
        heap[0] = heap[--n_in_heap];
        sift(heap, n_in_heap, 0, 0);
        heap[n_in_heap] = best;
    }
    return heap[n - 1 - i];
}

static i32 draw(i32 n, f64 uniform) {
    f64 largest = ranked(n, 0).logit, total = 0, needed = 1.0 / 0, reached = 0;
    i32 n_kept = n;
#define WEIGHT(candidate) ember_exp(((candidate).logit - largest) / sampling.temperature)
    for (i32 i = 0; i < n; i++) total += WEIGHT(state.candidates[i]);
    if (sampling.top_p < 1 || sampling.min_p > 0) {
        if (sampling.top_p < 1) needed = sampling.top_p * total;
        total = 0;
        for (n_kept = 0; n_kept < n && total < needed; n_kept++) {
            f64 weight = WEIGHT(ranked(n, n_kept));
            if (weight < sampling.min_p) break;
            total += weight;
        }
    }
    for (i32 i = 0; i < n_kept; i++) {
        reached += WEIGHT(ranked(n, i)) / total;
        if (uniform < reached) return ranked(n, i).id;
    }
    return ranked(n, n_kept - 1).id; /* the sum may fall short of 1 by a rounding */
}

static void mark_seen(i32 on) {
    for (i32 i = 0; i < config.length; i++) {
        u8 *mark = config.marks + config.tokens[i];
        *mark = on ? *mark | IS_SEEN : *mark & ~IS_SEEN;
    }
}

/* The next token's id, or -1 with the reason in config.stopped. */
static i32 choose(f64 uniform) {
    i32 greedy = sampling.temperature == 0 || sampling.top_k == 1;
    f32 largest = largest_logit();
    if (largest - largest != 0) {
        config.stopped = largest == -__builtin_inff() ? NOTHING_LEFT : NOT_FINITE;
        return -1;
    }
    if (greedy && sampling.repetition_penalty == 1)
        for (i32 i = 0;; i++)
            if (config.logits[i] == largest) return i;
    i32 k = greedy ? 1 : sampling.top_k;
    if (k == 0 || k > config.n_choices) k = config.n_choices;
    if (sampling.repetition_penalty != 1) mark_seen(1);
    i32 n = n_in_heap = find_candidates(k);
    if (sampling.repetition_penalty != 1) mark_seen(0);
    return greedy ? ranked(n, 0).id : draw(n, uniform);
}

/* ---- What the host calls ---- */

extern u8 __heap_base;
static u64 end_of_file, end_of_memory_used;

static void *take(u64 n_bytes) {
    u64 start = (end_of_memory_used + 63) / 64 * 64;
    end_of_memory_used = start + n_bytes;
    return (void *)(u32)start;
}

/* Grow to what was taken; 0 if the engine or the machine has no more. */
static i32 grow(void) {
    u64 pages = (end_of_memory_used + 65535) / 65536, have = __builtin_wasm_memory_size(0);
    if (pages <= have) return 1;
    return pages < 65536 && __builtin_wasm_memory_grow(0, pages - have) != (u32)-1;
}

/* Forget everything and make room for a file; returns its address, or 0 for no memory. */
u8 *EXPORT(ember_reserve)(u32 n_bytes) {
    end_of_memory_used = (u32)&__heap_base;
    config = (Config){0};
    u8 *file = take(n_bytes);
    end_of_file = end_of_memory_used;
    return grow() ? file : 0;
}

Config *EXPORT(ember_config)(void) { return &config; }
Sampling *EXPORT(ember_sampling)(void) { return &sampling; }

/* Make room for the cache and the tables; returns 1, or 0 for no memory: the host may then try
   again with a shorter context. */
i32 EXPORT(ember_allocate)(void) {
    end_of_memory_used = end_of_file;
    Config *c = &config;
    u64 D = round_up(c->d_model, 4), HE = round_up(c->n_heads * c->head_dim, 4);
    u64 F = round_up(c->d_ff, 4), E = c->head_dim, C = c->context, widest = D;
    if (HE > widest) widest = HE;
    if (F > widest) widest = F;
    u64 cache = ((u64)c->n_layers * c->n_kv_heads * C + 4) * E * sizeof(f32);
    c->weights = take(sizeof(Weights) + c->n_layers * sizeof(Layer));
    c->frequencies = take((E > D ? E : D) * sizeof(f64));
    c->slopes = take(c->n_heads * sizeof(f32));
    c->uniforms = take(MAX_CHOICES * sizeof(f64));
    c->marks = take(c->n_vocab);
    c->tokens = take((C + 1) * sizeof(i32));
    c->logits = take((u64)c->n_choices * sizeof(f32) + 16);
    state.x = take(BLOCK * D * sizeof(f32));
    state.h = take(BLOCK * D * sizeof(f32));
    state.q = take(BLOCK * HE * sizeof(f32));
    state.mixed = take(BLOCK * HE * sizeof(f32));
    state.gate = take(BLOCK * F * sizeof(f32));
    state.up = take(BLOCK * F * sizeof(f32));
    state.scores = take((C + 8) * sizeof(f32));
    state.cosines = take(BLOCK * E * sizeof(f32));
    state.sines = take(BLOCK * E * sizeof(f32));
    scratch.rows = take(4 * widest * sizeof(f32));
    scratch.quantised = take(BLOCK * widest * sizeof(i16));
    scratch.scales = take(BLOCK * (widest / GROUP + 1) * sizeof(f32));
    scratch.sums = take(BLOCK * (widest / GROUP + 1) * sizeof(f32));
    scratch.half_sums = take(2 * BLOCK * (widest / GROUP + 1) * sizeof(f32));
    state.candidates = take((u64)c->n_choices * sizeof(Candidate));
    state.keys = take(cache);
    state.values = take(cache);
    if (!grow()) return 0;
    for (i32 i = 0; i < c->n_vocab; i++) c->marks[i] = 0;
    c->length = state.has_logits = state.has_pending = 0;
    return 1;
}

/* Keep the first n tokens of the context, so that others may follow. */
void EXPORT(ember_rewind)(i32 n) {
    if (n < 0 || n > config.length) return;
    config.length = n;
    state.has_logits = state.has_pending = 0;
}

/* Read the n tokens at config.tokens + length; returns 0 if one is none or they are too many. */
i32 EXPORT(ember_read)(i32 n) {
    if (n < 1 || n > config.context - config.length) return 0;
    for (i32 i = 0; i < n; i++)
        if ((u32)config.tokens[config.length + i] >= (u32)config.n_vocab) return 0;
    state.has_pending = 0;
    for (i32 rest = n; rest > 0; rest -= BLOCK)
        read_block(rest < BLOCK ? rest : BLOCK, rest <= BLOCK);
    return 1;
}

/* Choose up to n tokens; returns how many, without the one that ends the text. They stand in
   config.tokens; the last is read only by the next call. config.stopped says why it returned. */
i32 EXPORT(ember_generate)(i32 n) {
    config.stopped = GOING_ON;
    for (i32 i = 0; i < n && i < MAX_CHOICES; i++) {
        if (state.has_pending) {
            if (config.length == config.context) {
                config.stopped = CONTEXT_FULL;
                return i;
            }
            read_block(1, 1);
            state.has_pending = 0;
        }
        if (!state.has_logits) config.stopped = NOTHING_READ;
        i32 token = state.has_logits ? choose(config.uniforms[i]) : -1;
        if (token >= 0 && config.marks[token] & IS_END) config.stopped = AT_END;
        if (config.stopped) return i;
        config.tokens[config.length] = token;
        state.has_pending = 1;
    }
    return n < MAX_CHOICES ? n : MAX_CHOICES;
}

/* Apply an activation to four numbers in place, for tests. */
void EXPORT(ember_activate)(f32 *x, i32 kind) {
    config.activation = kind;
    activate(x, 0, 4);
}

/* Write a token's row of the embedding, (D,), for tests. */
void EXPORT(ember_embed)(f32 *x, i32 token) { embed(x, token); }
