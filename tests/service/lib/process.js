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
