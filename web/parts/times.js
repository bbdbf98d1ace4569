// The server writes times in UTC, in the page's language; here they become the reader's own. The title keeps the exact one.
// Dates are written as the reader's region does, in the language of the page.
const page = document.documentElement.lang;
export const language = navigator.languages.find((one) => one.split("-")[0] === page) ?? (page === "en" ? "en-GB" : page);

export function localise(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const when = new Date(element.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    const shape = "date" in element.dataset ? { dateStyle: "long" } : { dateStyle: "long", timeStyle: "seconds" in element.dataset ? "medium" : "short" };
    element.textContent = new Intl.DateTimeFormat(language, shape).format(when);
    element.title = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" }).format(when);
    element.dataset.local = "";
  }
}

localise(document);
