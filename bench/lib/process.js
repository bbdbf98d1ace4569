// Statistics of a running process from /proc.

import fs from 'node:fs';

export { processorSeconds, wakeUps } from '../../tests/service/lib/process.js';

/**
 * Resident bytes, including shared libraries. Slow, since the kernel walks the page tables: not during a measurement.
 */
export function residentBytes(pid) {
  const text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Rss:\s+(\d+) kB$/m.exec(text)[1]) * 1024;
}

function schedule(pid, thread) {
  const [running, waiting] = fs.readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ').map(Number);
  return { running, waiting };
}

/**
 * Measures how the threads of a process are scheduled. The returned function gives, for the busiest thread since, the
 * share of the time that it ran and the share that it waited for a processor.
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
