// Prints failures of node:test as they occur and writes { passed, failed: [name] } to the file $TALLY. Suites and files
// are counted only if they fail themselves. After a failed `before` hook the counts so far are written and the line
// `setUpFailed` is printed: the runner then ends the file.
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';

export const setUpFailed = '--- ended here, because a set-up failed\n';

const isContainer = (test) =>
  test.details.type === 'suite' || (test.nesting === 0 && /\.test\.m?js$/.test(test.name));

const place = (test) => (test.file ? ` (${basename(test.file)}${test.line ? ':' + test.line : ''})` : '');

function describe(error) {
  const cause = error?.cause ?? error;
  const text = cause?.stack ?? cause?.message ?? String(cause);
  return text.split('\n').map((line) => '    ' + line).join('\n');
}

const isSetUp = (error) => error?.failureType === 'hookFailed' && error.message === 'failed running before hook';

export default async function* report(events) {
  let passed = 0;
  const failed = [];
  const errors = new Map(); // stderr of each file, printed only if the file itself fails
  const write = () => writeFileSync(process.env.TALLY, JSON.stringify({ passed, failed }));
  for await (const { type, data } of events) {
    const skipped = data.skip !== undefined || data.todo !== undefined;
    if (type === 'test:pass' && !skipped && !isContainer(data)) {
      passed++;
    } else if (type === 'test:fail' && !skipped) {
      const { error } = data.details;
      if (error?.failureType === 'subtestsFailed') continue; // printed already
      failed.push(data.name);
      yield `--- failed: ${data.name}${place(data)}\n${describe(error)}\n`;
      if (isContainer(data)) yield (errors.get(data.file) ?? []).slice(-40).join('');
      if (isSetUp(error)) {
        write();
        yield setUpFailed;
      }
    } else if (type === 'test:stderr') {
      errors.set(data.file, [...(errors.get(data.file) ?? []).slice(-100), data.message]);
    }
  }
  write();
}
