/** Student's t and what is built on it: pure functions, no page. */

/** @param {number[]} values */
export const sum = (values) => values.reduce((total, value) => total + value, 0);
/** @param {number[]} values */
export const mean = (values) => sum(values) / values.length;

/** Sample variance, n − 1 in the denominator. @param {number[]} values */
export function variance(values) {
  const centre = mean(values);
  return sum(values.map((value) => (value - centre) ** 2)) / (values.length - 1);
}

/** ln Γ(x) for x > 0: Stirling's series (DLMF 5.11.1) from 10 up, below it by Γ(x + 1) = x Γ(x). */
export function logGamma(x) {
  let shift = 1;
  for (; x < 10; x++) shift *= x;
  const terms = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156];
  const series = sum(terms.map((term, k) => term / x ** (2 * k + 1)));
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - Math.log(shift);
}

/** I_x(a, b), the regularised incomplete beta function: DLMF 8.17.22 by Lentz's method. */
export function incompleteBeta(x, a, b) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a); // there it converges
  const front = Math.exp(
    logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x),
  );
  let [c, d] = [1, 1 / (1 - ((a + b) * x) / (a + 1))];
  let fraction = d;
  for (let m = 1; m < 1000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const step of [even, odd]) {
      d = 1 / (1 + step * d);
      c = 1 + step / c;
      fraction *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  return (front * fraction) / a;
}

/** P(|T| ≥ |t|) with df degrees of freedom (DLMF 8.17, the t distribution as a beta). */
export function twoSided(t, df) {
  return incompleteBeta(df / (df + t * t), df / 2, 0.5);
}

/** The t that |T| exceeds with probability alpha; 2.776 for 0.05 and 4. */
export function tQuantile(alpha, df) {
  let [low, high] = [0, 1];
  while (twoSided(high, df) > alpha) high *= 2;
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (twoSided(middle, df) > alpha) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Holm's step-down adjustment of a family of p values (1979), in their own order. */
export function holm(ps) {
  const order = ps.map((_, i) => i).sort((i, j) => ps[i] - ps[j]);
  const adjusted = Array(ps.length);
  let largest = 0;
  order.forEach((at, rank) => {
    largest = Math.max(largest, Math.min(1, (ps.length - rank) * ps[at]));
    adjusted[at] = largest;
  });
  return adjusted;
}
