// What the kernel knows of a running process.

import fs from 'node:fs';

/** Bytes that lie in memory, shared libraries included. Walks the page tables: not while something is timed. */
export function residentBytes(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)[1]) * 1024;
}

/** Seconds of processor time so far, all threads; in ticks of a hundredth. */
export function processorSeconds(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
