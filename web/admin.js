// The console: keeps a page up to date without losing the focus, what is typed, chosen or unfolded; and chooses all of a list.
import { Idiomorph } from "idiomorph";

import "./parts/countdown.js";
import { language, localise } from "./parts/times.js";

const main = document.getElementById("main");
const every = () => Number(main.querySelector("[data-refresh]")?.dataset.refresh ?? 0);

// What people opened, typed or chose since stays as it is. Rows have ids: a box is kept for its own customer only.
const isTheirs = (old, fresh) =>
  old instanceof Element && (old.matches("input:focus, select:focus, [data-all], [data-offline], .notice") || (old.matches("input:not([type=hidden])") && old.id === fresh.id && old.value !== fresh.value) || (old.matches("input[type=checkbox]") && old.value === fresh.value));
const kept = {
  beforeNodeMorphed: (old, fresh) => !isTheirs(old, fresh),
  beforeNodeRemoved: (old) => !(old instanceof Element && old.matches(".notice")),
  beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
};

function stamp() {
  const place = main.querySelector("[data-updated]");
  if (place) place.textContent = `${place.dataset.updated} ${new Intl.DateTimeFormat(language, { timeStyle: "medium" }).format(new Date())} · `;
}

// Said once, until the server answers again.
function sayReached(reached) {
  const place = document.querySelector("[data-offline]");
  if (place.hidden === reached) return;
  place.hidden = reached;
  place.textContent = reached ? "" : place.dataset.offline;
}

async function refresh() {
  const address = new URL(location.href);
  address.searchParams.delete("every");
  address.searchParams.set("refresh", "1");
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected) return location.assign(answer.url); // signed out meanwhile
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  localise(fresh);
  Idiomorph.morph(main, fresh.getElementById("main"), { callbacks: kept });
  Idiomorph.morph(document.querySelector(".side nav"), fresh.querySelector(".side nav"));
  stamp();
}

// One at a time; nothing is asked for while nobody looks.
async function run() {
  const seconds = every();
  if (!seconds) return;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  try {
    if (document.visibilityState === "visible") {
      await refresh();
      sayReached(true);
    }
  } catch {
    sayReached(false); // the next time it may be back
  }
  run();
}

main.addEventListener("change", ({ target }) => {
  if ("all" in target.dataset) for (const box of main.querySelectorAll("td input[type=checkbox]")) box.checked = target.checked;
});

stamp();
run();
