// The console: keeps a page up to date without losing the focus, what is typed, or what is unfolded.
import { Idiomorph } from "idiomorph";

import "./parts/countdown.js";
import { localise } from "./parts/times.js";

const main = document.getElementById("main");
const every = () => Number(main.querySelector("[data-refresh]")?.dataset.refresh ?? 0);
const language = document.documentElement.lang;

// What people opened, typed or chose since stays as it is.
const kept = {
  beforeNodeMorphed: (old) => !(old instanceof Element && old.matches("input:focus, select:focus")),
  beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
};

function stamp() {
  const place = main.querySelector("[data-updated]");
  if (place) place.textContent = `${place.dataset.updated} ${new Intl.DateTimeFormat(language, { timeStyle: "medium" }).format(new Date())} · `;
}

async function refresh() {
  const address = new URL(location.href);
  address.searchParams.delete("every");
  address.searchParams.set("refresh", "1");
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (answer.redirected) return location.assign(answer.url); // signed out meanwhile
  if (!answer.ok) return;
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
    if (document.visibilityState === "visible") await refresh();
  } catch {
    // The server is away: the next time it may be back, and the page says when it was up to date.
  }
  run();
}

stamp();
run();
