// Statistics of a running process from /proc.

import fs from 'node:fs';

export { processorSeconds, wakeUps, watchThreads } from '../../tests/service/lib/process.js';

/**
 * Resident bytes, including shared libraries. Slow, since the kernel walks the page tables: not during a measurement.
 */
export function residentBytes(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)[1]) * 1024;
}
