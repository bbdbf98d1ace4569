// An independent model of billing: instants are microseconds since 1970 (BigInt), and a customer's time is a sequence
// of intervals that are frozen or not.

export const microsOf = (instant) => BigInt(Date.parse(`${instant.slice(0, 19)}Z`)) * 1000n + BigInt(instant.slice(20, 26));
export const instantOf = (micros) =>
  new Date(Number(micros / 1000n)).toISOString().replace(/\.\d+Z/, `.${String(micros % 1000000n).padStart(6, '0')}Z`);

const dayMicros = 86_400_000_000n;
const dayOf = (micros) => new Date(Number(micros / 1000n)).getUTCDate();

/** So many calendar months later, in UTC: on that day of the month, or the last of a shorter one. */
export function monthsLater(micros, months, day) {
  const from = new Date(Number(micros / 1000n));
  const [year, month] = [from.getUTCFullYear(), from.getUTCMonth() + months];
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return BigInt(Date.UTC(year, month, Math.min(day, last))) * 1000n + (micros % dayMicros);
}

/**
 * The instants at which a subscription is charged, up to and including `until`, and the next. A period in microseconds is
 * time that is not frozen; one of `months` ends on the day of the month on which the subscription began, unless freezes
 * move it, after which their day counts.
 */
export function scheduleOf(first, period, freezes, until) {
  const due = [];
  let day = dayOf(first);
  const after = (at) => {
    const behind = freezes.filter((freeze) => freeze.from > at && freeze.to > freeze.from);
    if (period.months) {
      let next = monthsLater(at, period.months, day);
      for (const { from, to } of behind) {
        if (next < from) break;
        next += to - from;
        day = dayOf(next);
      }
      return next;
    }
    let left = period;
    for (const { from, to } of behind) {
      if (at + left < from) break;
      left -= from - at;
      at = to;
    }
    return at + left;
  };
  let at = first;
  for (; at <= until; at = after(at)) due.push(at);
  return { due, next: at };
}

/** How much of the time between two instants lies outside freezes, which may overlap; `to` null: it lasts. */
export function unfrozen(started, ended, freezes) {
  const edges = [started, ended, ...freezes.flatMap(({ from, to }) => [from, to ?? ended])].filter((at) => at >= started && at <= ended).sort((a, b) => (a < b ? -1 : 1));
  let free = 0n;
  for (let n = 1; n < edges.length; n++)
    if (!freezes.some(({ from, to }) => from <= edges[n - 1] && (to === null || to >= edges[n]) && edges[n] > edges[n - 1])) free += edges[n] - edges[n - 1];
  return free;
}

/** One account, with the state expected from the replies. */
export class Account {
  holds = false; // for another reason than a freeze
  charges = new Map(); // reference: { amount, charged, started_at, occurred_at }
  adjustments = new Map(); // reference: amount
  refused = []; // requests that charged nothing
  subscriptions = []; // { id, first, period, amount }

  constructor(id, balance, { subscribes = false } = {}) {
    this.id = id;
    this.filled = balance;
    this.subscribes = subscribes; // then its balance is not predicted, only added up in the end
  }

  get balance() {
    const adjusted = [...this.adjustments.values()].reduce((sum, amount) => sum + amount, this.filled);
    return [...this.charges.values()].reduce((sum, { charged }) => sum - charged, adjusted);
  }

  /** The expected result of a charge for usage that occurred while the customer was `frozen` or not. */
  expected(amount, { frozenThen, frozenNow }) {
    if (this.holds) return [403, 'ACCOUNT_FROZEN'];
    if (frozenThen) return [403, frozenThen === 'now' && frozenNow ? 'ACCOUNT_FROZEN' : 'USAGE_WHILE_FROZEN'];
    if (!this.subscribes && amount > this.balance) return [402, 'BALANCE_TOO_LITTLE'];
    return [201, null, amount];
  }

  /** The same for usage with a length: it is charged for its part outside freezes, rounded down. */
  expectedPart(amount, { started, ended, freezes }) {
    if (this.holds) return [403, 'ACCOUNT_FROZEN'];
    const free = unfrozen(started, ended, freezes);
    if (free === 0n) return [403, freezes.some(({ from, to }) => to === null && from < ended) ? 'ACCOUNT_FROZEN' : 'USAGE_WHILE_FROZEN'];
    const charged = Number((BigInt(amount) * free) / (ended - started));
    if (!this.subscribes && charged > 0 && charged > this.balance) return [402, 'BALANCE_TOO_LITTLE'];
    return [201, null, charged];
  }
}
