// A strict parser of the Prometheus text format.

import assert from 'node:assert/strict';

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (NaN|[+-]Inf|[-+0-9.eE]+)$/;
const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/y;

function labelsOf(text) {
  const labels = {};
  label.lastIndex = 0;
  while (text && label.lastIndex < text.length) {
    const [, name, value] = label.exec(text) ?? assert.fail(`labels «${text}»`);
    assert.ok(!(name in labels), `label ${name} twice`);
    labels[name] = value;
  }
  return labels;
}

const familyOf = (families, name) => {
  if (families.has(name)) return name;
  const stem = name.replace(/_(bucket|sum|count)$/, '');
  return families.get(stem)?.type === 'histogram' ? stem : undefined;
};

/** Throws on anything that Prometheus rejects or would misread. */
export function parseMetrics(text) {
  assert.ok(text.endsWith('\n'), 'ends with a line feed');
  const families = new Map();
  const samples = [];
  const seen = new Set();
  let current;
  for (const line of text.slice(0, -1).split('\n')) {
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line);
    if (comment) {
      const [, kind, name, rest] = comment;
      if (kind === 'HELP') {
        assert.ok(!families.has(name), `${name} is described twice`);
        families.set(name, { help: rest });
      } else {
        assert.match(rest, /^(counter|gauge|histogram)$/);
        assert.ok(families.has(name), `${name} has a type before its help`);
        families.get(name).type = rest;
      }
      current = name;
      continue;
    }
    const [, name, labelText, value] = sampleLine.exec(line) ?? assert.fail(`no sample: «${line}»`);
    assert.equal(familyOf(families, name), current, `${name} stands outside its family`);
    const key = `${name}{${labelText ?? ''}}`;
    assert.ok(!seen.has(key), `${key} twice`);
    seen.add(key);
    samples.push({ name, labels: labelsOf(labelText), value: value === '+Inf' ? Infinity : Number(value) });
  }
  const metrics = { families, samples };
  for (const [name, family] of families) {
    assert.ok(family.type, `${name} has no type`);
    if (family.type === 'histogram') checkHistogram(metrics, name);
    if (family.type === 'counter') for (const one of samples) assert.ok(one.name !== name || one.value >= 0);
  }
  return metrics;
}

function checkHistogram({ samples }, name) {
  const series = new Map();
  for (const { name: full, labels, value } of samples) {
    if (familyKey(full, name) === undefined) continue;
    const { le, ...others } = labels;
    const key = JSON.stringify(others);
    if (!series.has(key)) series.set(key, { buckets: [] });
    if (full.endsWith('_bucket')) series.get(key).buckets.push([le === '+Inf' ? Infinity : Number(le), value]);
    else series.get(key)[familyKey(full, name)] = value;
  }
  for (const { buckets, sum, count } of series.values()) {
    assert.ok(buckets.length > 1 && buckets.at(-1)[0] === Infinity, `${name} ends with +Inf`);
    for (let n = 1; n < buckets.length; n++) {
      assert.ok(buckets[n][0] > buckets[n - 1][0], `${name}: bounds grow`);
      assert.ok(buckets[n][1] >= buckets[n - 1][1], `${name}: counts are cumulative`);
    }
    assert.equal(buckets.at(-1)[1], count);
    assert.ok(sum >= 0);
  }
}

function familyKey(full, name) {
  return { [`${name}_bucket`]: 'bucket', [`${name}_sum`]: 'sum', [`${name}_count`]: 'count' }[full];
}

/** The sum of the samples with this name and these labels; 0 without any. */
export function valueOf({ samples }, name, labels = {}) {
  return samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, sample) => sum + sample.value, 0);
}
