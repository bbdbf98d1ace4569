// <reclaim-countdown until="…" now="…"> holds what the server rendered and keeps it true.
//
// Elements with data-unit="days|hours|minutes|seconds" inside get one number each; without any, its text becomes "4:12". It
// changes once a minute until the last ten minutes, then every second. `now` is the server's time: the reader's clock may
// be wrong. When it ends, an event `ended` fires, and an element named by data-enables can be used.
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
    if (left === 0) return this.end();
    const pause = left > 600 ? ((left - 1) % 60) + 1 : 1;
    this.timer = setTimeout(() => this.tick(), pause * 1000);
  }

  show(left) {
    const units = this.querySelectorAll("[data-unit]");
    const parts = { days: Math.floor(left / 86400), hours: Math.floor(left / 3600) % 24, minutes: Math.floor(left / 60) % 60, seconds: left % 60 };
    for (const unit of units) unit.textContent = parts[unit.dataset.unit];
    if (units.length === 0) this.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
  }

  end() {
    const enabled = this.dataset.enables && document.getElementById(this.dataset.enables);
    if (enabled) enabled.disabled = false;
    this.dispatchEvent(new CustomEvent("ended", { bubbles: true }));
  }
}

customElements.define("reclaim-countdown", Countdown);
