// What the kernel knows of a running process.

import fs from 'node:fs';

export { processorSeconds, wakeUps } from '../../tests/service/lib/process.js';

/** Bytes that lie in memory, shared libraries included. Walks the page tables: not while something is timed. */
export function residentBytes(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)[1]) * 1024;
}

function schedule(pid, thread) {
  const [running, waiting] = fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number);
  return { running, waiting };
}

/**
 * Watches how the threads of a process get the processor. What is returned tells, of the busiest thread since, which
 * share of the time it ran and which share it was ready to run and had to wait.
 */
export function watchThreads(pid) {
  const threads = fs.readdirSync(`/proc/${pid}/task`);
  const before = new Map(threads.map((thread) => [thread, schedule(pid, thread)]));
  const began = process.hrtime.bigint();
  return () => {
    const elapsed = Number(process.hrtime.bigint() - began);
    const since = [...before].map(([thread, was]) => {
      const { running, waiting } = schedule(pid, thread);
      return { running: (running - was.running) / elapsed, waiting: (waiting - was.waiting) / elapsed };
    });
    return since.reduce((most, one) => (one.running > most.running ? one : most));
  };
}
