// <reclaim-code symbols="8"> around the input for a mailed code: letters become capitals and the hyphen comes by itself.
// What a mail's link has behind the "#" is filled in, and taken out of the address bar. Around a hidden input it only
// keeps that code, and shows the element with data-kept.
class CodeField extends HTMLElement {
  connectedCallback() {
    this.input = this.querySelector("input");
    this.input.addEventListener("input", () => this.tidy());
    addEventListener("hashchange", this.take);
    if (this.input.type !== "hidden") this.tidy();
    this.take();
  }

  disconnectedCallback() {
    removeEventListener("hashchange", this.take);
  }

  take = () => {
    const code = location.hash.slice(1);
    if (!/^([a-z0-9]{4}-?[a-z0-9]{4}|[0-9]{6})$/i.test(code)) return;
    history.replaceState(null, "", location.pathname + location.search);
    this.input.value = code;
    const kept = this.querySelector("[data-kept]");
    if (kept) kept.hidden = false;
    else this.tidy();
  };

  shape(text) {
    if (this.getAttribute("symbols") === "6") return text.replace(/[\s-]/g, "");
    const symbols = text.toUpperCase().replace(/[\s-]/g, "");
    return symbols.length > 4 ? `${symbols.slice(0, 4)}-${symbols.slice(4)}` : symbols;
  }

  // The caret stays behind the symbol that it was behind.
  tidy() {
    const { value, selectionStart } = this.input;
    const shaped = this.shape(value);
    if (shaped === value) return;
    const caret = this.shape(value.slice(0, selectionStart)).length;
    this.input.value = shaped;
    if (document.activeElement === this.input) this.input.setSelectionRange(caret, caret);
  }
}

customElements.define("reclaim-code", CodeField);
