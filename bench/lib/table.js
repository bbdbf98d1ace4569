/** A plain-text table with a heading, in columns as wide as needed. */
export function table(heading, rows) {
  const widths = heading.map((_, column) => Math.max(...[heading, ...rows].map((row) => row[column].length)));
  const write = (row) => row.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd();
  return [heading, widths.map((width) => '-'.repeat(width)), ...rows].map(write).join('\n');
}
