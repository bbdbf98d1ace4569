// <reclaim-countdown until="…" now="…"> holds what the server rendered and keeps it true.
//
// Elements with data-unit="days|hours|minutes|seconds" inside get one number each, and the element behind it the word in its
// data-one or data-other. Without any, its text becomes "4:12", and above ten minutes the attribute `minutes`, `hours` or
// `days` with {n} filled in: "about 11 minutes". It changes once a minute until the last ten minutes, then every second. `now` is the
// server's time: the reader's clock may be wrong.
class Countdown extends HTMLElement {
  connectedCallback() {
    const until = Date.parse(this.getAttribute("until"));
    const now = Date.parse(this.getAttribute("now"));
    if (Number.isNaN(until)) return;
    this.until = until + (Number.isNaN(now) ? 0 : Date.now() - now);
    this.setAttribute("role", "timer");
    this.tick();
  }

  disconnectedCallback() {
    clearTimeout(this.timer);
  }

  tick() {
    const left = Math.max(0, Math.ceil((this.until - Date.now()) / 1000));
    this.show(left);
    if (left === 0) return;
    const pause = left > 600 ? ((left - 1) % 60) + 1 : 1;
    this.timer = setTimeout(() => this.tick(), pause * 1000);
  }

  show(left) {
    const units = this.querySelectorAll("[data-unit]");
    const parts = { days: Math.floor(left / 86400), hours: Math.floor(left / 3600) % 24, minutes: Math.floor(left / 60) % 60, seconds: left % 60 };
    for (const unit of units) {
      const count = parts[unit.dataset.unit];
      const label = unit.nextElementSibling;
      unit.textContent = count;
      if (label?.dataset.one) label.textContent = count === 1 ? label.dataset.one : label.dataset.other;
    }
    if (units.length === 0) this.textContent = this.words(left);
  }

  words(left) {
    const [unit, seconds] = left < 5400 ? ["minutes", 60] : left < 172800 ? ["hours", 3600] : ["days", 86400];
    const about = left > 600 && this.getAttribute(unit);
    if (about) return about.replace("{n}", Math.ceil(left / seconds));
    return `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }
}

customElements.define("reclaim-countdown", Countdown);
