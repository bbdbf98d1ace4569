// <reclaim-wait until="…" now="…">: a button inside cannot be used until then, elements with data-wait are shown meanwhile and
// those with data-ready from then on. Without scripts the button works, and the server says how long to wait.
class Wait extends HTMLElement {
  connectedCallback() {
    const left = Date.parse(this.getAttribute("until")) - Date.parse(this.getAttribute("now"));
    if (!(left > 0)) return;
    this.set(true);
    this.wait(left);
  }

  // Browsers take a longer time-out for none at all.
  wait(left) {
    const part = Math.min(left, 2 ** 31 - 1);
    this.timer = setTimeout(() => (left > part ? this.wait(left - part) : this.set(false)), part);
  }

  disconnectedCallback() {
    clearTimeout(this.timer);
  }

  set(waiting) {
    for (const button of this.querySelectorAll("button")) button.disabled = waiting;
    for (const element of this.querySelectorAll("[data-wait]")) element.hidden = !waiting;
    for (const element of this.querySelectorAll("[data-ready]")) element.hidden = waiting;
  }
}

customElements.define("reclaim-wait", Wait);
