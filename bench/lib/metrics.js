// Reads a server's /metrics, in Prometheus' text format.

import { ops } from '../../tests/service/lib/http.js';

const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;

const number = (text) => (text === '+Inf' ? Infinity : Number(text));

export class Metrics {
  constructor(text) {
    this.samples = [];
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = sample.exec(line) ?? [];
      if (name) this.samples.push({ name, labels: Object.fromEntries([...labels.matchAll(label)].map(([, k, v]) => [k, v])), value: number(value) });
    }
  }

  static async of(server) {
    const answer = await ops(server, '/metrics', { check: false });
    if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}`);
    return new Metrics(answer.body);
  }

  matching(name, labels = {}) {
    const wanted = Object.entries(labels);
    return this.samples.filter((one) => one.name === name && wanted.every(([k, v]) => one.labels[k] === v));
  }

  /** A gauge or a counter, summed over the labels that are not given; 0 if absent. */
  value(name, labels) {
    return this.matching(name, labels).reduce((sum, one) => sum + one.value, 0);
  }

  histogram(name, labels) {
    const counts = new Map();
    for (const one of this.matching(`${name}_bucket`, labels)) {
      const bound = number(one.labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + one.value);
    }
    return new Histogram([...counts].sort(([a], [b]) => a - b).map(([bound, upTo]) => ({ bound, upTo })));
  }
}

/** Buckets { bound, upTo }, where upTo counts everything not above the bound. */
export class Histogram {
  constructor(buckets) {
    this.buckets = buckets;
  }

  get count() {
    return this.buckets.at(-1)?.upTo ?? 0;
  }

  /** The difference between two readings of the same metric. */
  since(earlier) {
    const before = new Map(earlier.buckets.map(({ bound, upTo }) => [bound, upTo]));
    return new Histogram(this.buckets.map(({ bound, upTo }) => ({ bound, upTo: upTo - (before.get(bound) ?? 0) })));
  }

  /** Interpolated inside its bucket, exact at the bounds; Infinity beyond the last. */
  quantile(q) {
    if (this.count === 0) return NaN;
    const wanted = q * this.count;
    let below = { bound: 0, upTo: 0 };
    for (const bucket of this.buckets) {
      if (bucket.upTo >= wanted) {
        if (bucket.bound === Infinity) return Infinity;
        const inside = bucket.upTo - below.upTo;
        return below.bound + (inside ? ((wanted - below.upTo) / inside) * (bucket.bound - below.bound) : 0);
      }
      below = bucket;
    }
    return Infinity;
  }

  /** The share of each bucket alone. */
  shares() {
    let below = 0;
    return this.buckets.map(({ bound, upTo }) => {
      const share = (upTo - below) / (this.count || 1);
      below = upTo;
      return { bound, share };
    });
  }
}
