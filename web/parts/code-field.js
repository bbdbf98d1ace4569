// <reclaim-code symbols="8"> around the input for a mailed code: letters become capitals and the hyphen comes by itself.
// What a mail's link has behind the "#" is filled in, and taken out of the address bar. Around a hidden input it only
// keeps that code, shows the element with data-kept, and puts the focus into the form's field for the address.
const isCode = (text) => /^([a-z0-9]{4}-?[a-z0-9]{4}|[0-9]{6})$/i.test(text);
const hideCode = () => history.replaceState(null, "", location.pathname + location.search);

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
    if (!isCode(code)) return;
    hideCode();
    this.input.value = code;
    const kept = this.querySelector("[data-kept]");
    if (!kept) return this.tidy();
    kept.hidden = false;
    this.closest("form").querySelector("input[type=email]")?.focus();
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

// A page without such a field has no use for the code.
const drop = () => !document.querySelector("reclaim-code") && isCode(location.hash.slice(1)) && hideCode();
addEventListener("hashchange", drop);
drop();
