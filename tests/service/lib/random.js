// Random numbers, reproducible by seed.

/** Mulberry32: returns a function that draws from [0, 1); its `below(n)` draws an integer below n. */
export function seeded(seed) {
  let state = seed;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  random.below = (limit) => Math.floor(random() * limit);
  return random;
}
