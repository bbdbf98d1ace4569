// Small SVG plots without background, in colours for light and dark pages.

const width = 640;
const height = 190; // of a panel
const box = { left: 64, right: 16, top: 34, bottom: 28 };
const grey = '#7d7d7d';
const colours = ['#2f86c9', '#8a6fc0', '#3a9a6b'];
const limitColour = '#d9730d';

const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
const text = (x, y, words, { anchor = 'start', fill = grey, size = 12, weight = 400 } = {}) =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${fill}" font-size="${size}" font-weight="${weight}">${escape(words)}</text>`;
const line = (x1, y1, x2, y2, { stroke = grey, dash = '', wide = 1, opacity = 1 } = {}) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="${stroke}" stroke-width="${wide}" stroke-opacity="${opacity}"${dash && ` stroke-dasharray="${dash}"`}/>`;

/** Round numbers for an axis up to the value: its top, and the steps towards it. */
function scale(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const tops = [[1, 5], [1.5, 3], [2, 4], [2.5, 5], [3, 3], [4, 4], [5, 5], [6, 3], [8, 4], [10, 5]];
  const [top, steps] = tops.find(([first]) => first * power >= value * (1 - 1e-9));
  return { top: top * power, steps };
}

const tick = (value) => (Math.abs(value) >= 1000 ? value.toLocaleString('en', { maximumFractionDigits: 0 }) : String(Number(value.toPrecision(3))));

function axis(most) {
  const { top, steps } = scale(most > 0 ? most * 1.08 : 1);
  const y = (value) => height - box.bottom - (Math.min(value, top) / top) * (height - box.top - box.bottom);
  const marks = Array.from({ length: steps + 1 }, (_, i) => {
    const value = (top * i) / steps;
    const at = y(value);
    return line(box.left, at, width - box.right, at, { opacity: 0.25 }) + text(box.left - 8, at + 4, tick(value), { anchor: 'end', size: 11 });
  });
  return { y, marks: marks.join('') };
}

function legend(names) {
  let right = width - box.right;
  return names
    .map((name, i) => {
      const label = text(right, 18, name, { anchor: 'end', fill: colours[i] });
      right -= name.length * 7 + 18;
      return label;
    })
    .join('');
}

/**
 * A point a round for each series { name, values }, its median as a line, and the limit { at, words } if there is one.
 */
export function roundsPanel({ title, series, limit, median }) {
  const finite = series.flatMap(({ values }) => values).filter(Number.isFinite);
  const { y, marks } = axis(Math.max(...finite, limit?.at ?? 0));
  const rounds = Math.max(...series.map(({ values }) => values.length));
  const x = (round) => box.left + ((round + 0.5) * (width - box.left - box.right)) / rounds;
  const parts = [text(box.left, 18, title, { weight: 600 }), marks];
  for (let round = 0; round < rounds; round++) parts.push(text(x(round), height - 10, `${round + 1}`, { anchor: 'middle', size: 11 }));
  series.forEach(({ values }, i) => {
    const middle = y(median(values));
    parts.push(line(box.left, middle, width - box.right, middle, { stroke: colours[i], opacity: 0.7 }));
    values.forEach((value, round) => parts.push(`<circle cx="${x(round).toFixed(1)}" cy="${y(value).toFixed(1)}" r="4" fill="${colours[i]}"/>`));
  });
  if (limit) {
    parts.push(line(box.left, y(limit.at), width - box.right, y(limit.at), { stroke: limitColour, dash: '6 4', wide: 1.5 }));
    parts.push(text(width - box.right, y(limit.at) - 5, limit.words, { anchor: 'end', fill: limitColour, size: 11 }));
  }
  if (series.length > 1) parts.push(legend(series.map(({ name }) => name)));
  return parts.join('');
}

/** A bar for each { label, value, over }; those over a limit take its colour. */
export function barsPanel({ title, bars }) {
  const { y, marks } = axis(Math.max(...bars.map(({ value }) => value)));
  const step = (width - box.left - box.right) / bars.length;
  const parts = [text(box.left, 18, title, { weight: 600 }), marks];
  bars.forEach(({ label, value, over }, i) => {
    const x = box.left + i * step + step * 0.12;
    parts.push(`<rect x="${x.toFixed(1)}" y="${y(value).toFixed(1)}" width="${(step * 0.76).toFixed(1)}" height="${(y(0) - y(value)).toFixed(1)}" fill="${over ? limitColour : colours[0]}"/>`);
    parts.push(text(x + step * 0.38, height - 10, label, { anchor: 'middle', size: 11 }));
  });
  return parts.join('');
}

export function svg(title, about, panels) {
  const head = 52;
  const total = head + panels.length * height;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" width="${width}" height="${total}" font-family="system-ui, sans-serif" role="img">
<title>${escape(`${title}: ${about}`)}</title>
${text(box.left, 20, title, { size: 14, weight: 600 })}
${text(box.left, 38, about, { size: 11 })}
${panels.map((panel, i) => `<g transform="translate(0 ${head + i * height})">${panel}</g>`).join('\n')}
</svg>
`;
}
