// What one thread of this browser can do at best: engines.py says how far from it the engines are.

#include <wasm_simd128.h>

#define EXPORT(name) __attribute__((export_name(#name)))
#define LANES 4
#define CHAINS 12 // independent sums, so that none waits for another

extern unsigned char __heap_base;

static float total(const v128_t *sums, int n) {
  v128_t sum = sums[0];
  for (int i = 1; i < n; i++) sum = wasm_f32x4_add(sum, sums[i]);
  return wasm_f32x4_extract_lane(sum, 0);
}

/// Multiply and add in registers; n rounds have n × CHAINS × LANES × 2 FLOPs.
EXPORT(arithmetic) float arithmetic(int n, float x, float y) {
  v128_t a = wasm_f32x4_splat(x), b = wasm_f32x4_splat(y), sums[CHAINS] = {0};
  for (int i = 0; i < n; i++)
    for (int k = 0; k < CHAINS; k++) sums[k] = wasm_f32x4_relaxed_madd(a, b, sums[k]);
  return total(sums, CHAINS);
}

/// Sum the first `bytes` of memory, as float32.
EXPORT(reading) float reading(int bytes) {
  const v128_t *at = (const v128_t *)&__heap_base, *end = at + bytes / 16 / CHAINS * CHAINS;
  v128_t sums[CHAINS] = {0};
  for (; at < end; at += CHAINS)
    for (int k = 0; k < CHAINS; k++) sums[k] = wasm_f32x4_add(sums[k], at[k]);
  return total(sums, CHAINS);
}

/// Get memory for `bytes` of data.
EXPORT(reserve) int reserve(int bytes) {
  return __builtin_wasm_memory_grow(0, bytes / 65536 + 2);
}
