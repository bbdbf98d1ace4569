// An independent model of billing: instants are microseconds since 1970 (BigInt), and a customer's time is a sequence
// of intervals that are frozen or not.

export const microsOf = (instant) => BigInt(Date.parse(`${instant.slice(0, 19)}Z`)) * 1000n + BigInt(instant.slice(20, 26));
export const instantOf = (micros) =>
  new Date(Number(micros / 1000n)).toISOString().replace(/\.\d+Z/, `.${String(micros % 1000000n).padStart(6, '0')}Z`);

/**
 * The instants at which a subscription is charged, up to and including `until`: a period is time that is not frozen.
 */
export function scheduleOf(first, period, freezes, until) {
  const due = [];
  for (let at = first; at <= until; ) {
    due.push(at);
    let left = period;
    for (const { from, to } of freezes.filter((freeze) => freeze.from > at)) {
      if (at + left < from) break;
      left -= from - at;
      at = to;
    }
    at += left;
  }
  return due;
}

/** One account, with the state expected from the replies. */
export class Account {
  holds = false; // for another reason than a freeze
  charges = new Map(); // reference: { amount, occurred_at }
  refused = []; // requests that charged nothing
  subscriptions = []; // { id, first, period, amount }

  constructor(id, balance, { subscribes = false } = {}) {
    this.id = id;
    this.filled = balance;
    this.subscribes = subscribes; // then its balance is not predicted, only added up in the end
  }

  get balance() {
    return [...this.charges.values()].reduce((sum, { amount }) => sum - amount, this.filled);
  }

  /** The expected result of a charge for usage that occurred while the customer was `frozen` or not. */
  expected(amount, { frozenThen, frozenNow }) {
    if (this.holds) return [403, 'ACCOUNT_FROZEN'];
    if (frozenThen) return [403, frozenThen === 'now' && frozenNow ? 'ACCOUNT_FROZEN' : 'USAGE_WHILE_FROZEN'];
    if (!this.subscribes && amount > this.balance) return [402, 'BALANCE_TOO_LITTLE'];
    return [201];
  }
}
