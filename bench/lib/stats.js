// Statistics over rounds.

/** The value below which the share q of the values lies, interpolated. */
export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
}

export const median = (values) => quantile(values, 0.5);

export const spread = (values) => ({ low: Math.min(...values), high: Math.max(...values) });
