// Statistics of a running process from /proc.

import fs from 'node:fs';

/** Seconds of processor time of all threads so far, in steps of 0.01. */
export function processorSeconds(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Context switches of its running threads so far. */
export function wakeUps(pid) {
  const switches = /^(?:non)?voluntary_ctxt_switches:\s+(\d+)$/gm;
  return fs
    .readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => [...fs.readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8').matchAll(switches)])
    .reduce((sum, [, count]) => sum + Number(count), 0);
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
