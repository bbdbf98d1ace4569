// What the kernel counts of a running process.

import fs from 'node:fs';

/** Seconds of processor time so far, all threads; in ticks of a hundredth. */
export function processorSeconds(pid) {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** How often its threads have been given the processor so far, of those that still run. */
export function wakeUps(pid) {
  const switches = /^(?:non)?voluntary_ctxt_switches:\s+(\d+)$/gm;
  return fs
    .readdirSync(`/proc/${pid}/task`)
    .flatMap((thread) => [...fs.readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8').matchAll(switches)])
    .reduce((sum, [, count]) => sum + Number(count), 0);
}
