// Cleans up after a test, however it ends: a shell reads what to clean up from a pipe, and acts when the pipe closes,
// which the kernel does even after kill -9.

import { spawn } from 'node:child_process';

const script = `
trap '' INT TERM HUP
ends= directories=
while read -r verb what; do
  case $verb in
    end) ends="$ends $what " ;;
    ended) case $ends in *" $what "*) ends="\${ends%% $what *} \${ends#* $what }" ;; esac ;;
    remove) directories="$directories $what " ;;
    removed) case $directories in *" $what "*) directories="\${directories%% $what *} \${directories#* $what }" ;; esac ;;
  esac
done
for end in $ends; do kill -"\${end%:*}" "\${end#*:}" 2>/dev/null; done
[ -z "$(echo $ends)" ] || sleep 1
for end in $ends; do kill -9 "\${end#*:}" 2>/dev/null; done
for directory in $directories; do rm -rf "$directory"; done
`;

let pipe;

function tell(line) {
  if (!pipe) {
    const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, cwd: '/' });
    shell.unref();
    pipe = shell.stdin;
    pipe.unref?.();
    pipe.on('error', () => {});
  }
  pipe.write(`${line}\n`);
}

function promise(start, finish, what) {
  tell(`${start} ${what}`);
  let done = false;
  return () => {
    if (!done) tell(`${finish} ${what}`);
    done = true;
  };
}

/** Sends the signal to the process when this one ends; call the returned function once the process has ended. */
export function keepEnded(pid, signal = 'KILL') {
  return promise('end', 'ended', `${signal}:${pid}`);
}

/** Removes the directory when this process ends; call the returned function once it is removed. */
export function keepRemoved(directory) {
  return promise('remove', 'removed', directory);
}
