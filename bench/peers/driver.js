// Requests decisions from a peer's limiter without HTTP, as limits_driver.c from Reclaim's. Takes and prints a JSON
// object.

import { openLimiter } from './limiters.js';

const { callers, people, warmMs = 0, runMs = 0, once = false, ...which } = JSON.parse(process.argv[2]);
const limiter = await openLimiter(which);
const counts = { admitted: 0, refused: 0 };
const from = performance.now() + warmMs;
const until = from + runMs;

async function call() {
  do {
    const admitted = await limiter.admits(Math.floor(Math.random() * people));
    const now = performance.now();
    if (once || (now >= from && now < until)) counts[admitted ? 'admitted' : 'refused']++;
  } while (!once && performance.now() < until);
}

await Promise.all(Array.from({ length: callers }, call));
await limiter.end();
console.log(JSON.stringify({ ...counts, per_second: ((counts.admitted + counts.refused) / runMs) * 1000 }));
