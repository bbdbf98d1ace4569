// <reclaim-refresh id="…" pending>: reads the page again until its own part is not pending any more, for some seconds at most.
// Once the page has no such part any more, it is loaded again.
// Without scripts, or when it takes longer, the link inside does the same.
import { localise } from "./times.js";

const PAUSES_MS = [250, 250, 500, 1000, 1000, 2000, 2000, 3000];

class Refresh extends HTMLElement {
  async connectedCallback() {
    for (const pause of PAUSES_MS) {
      if (!this.isConnected || !this.hasAttribute("pending")) return;
      await new Promise((resolve) => setTimeout(resolve, pause));
      const fresh = await this.read().catch(() => false);
      if (fresh === null) location.reload();
      if (!fresh) return;
      this.toggleAttribute("pending", fresh.hasAttribute("pending"));
      localise(fresh);
      if (fresh.innerHTML !== this.innerHTML) this.replaceChildren(...fresh.childNodes); // otherwise the focus would be lost
    }
  }

  async read() {
    const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    return answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(this.id);
  }
}

customElements.define("reclaim-refresh", Refresh);
