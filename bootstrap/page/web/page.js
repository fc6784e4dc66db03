"use strict";
// The document is asked for again when the journal has grown. Everything on it is there without this script.
const keys = Array.from(document.querySelectorAll("nav a"));
document.addEventListener("keydown", (e) => {
  const n = "1234567890".indexOf(e.key);
  if (n >= 0 && !e.ctrlKey && !e.metaKey && !e.altKey && !(e.target instanceof HTMLInputElement) && keys[n]) keys[n].click();
});
let asked = false, again = false;
async function refresh() {
  if (asked) { again = true; return; }
  asked = true;
  const began = performance.now();
  let took = 0;
  try {
    const answer = await fetch(location.href);
    const text = await answer.text();
    took = performance.now() - began;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const focus = document.activeElement && document.activeElement.id;
    for (const part of ["main", "#ready"]) document.querySelector(part).replaceWith(fresh.querySelector(part));
    if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
  } catch (e) {
    document.querySelector("#ready").textContent = "the agent does not answer";
  }
  // A hundred times as long as it took: a viewer costs the agent at most 1 % of a core, however much happens.
  setTimeout(() => { asked = false; if (again) { again = false; refresh(); } }, Math.min(Math.max(250, 100 * took), 3000));
}
let live = null;
function watch() {
  if (document.hidden) { if (live) { live.close(); live = null; } return; }
  if (live) return;
  live = new EventSource("/live");
  live.onmessage = () => { if (!(document.activeElement instanceof HTMLInputElement)) refresh(); };
  live.onopen = () => { document.documentElement.dataset.live = "on"; };
  live.onerror = () => { document.documentElement.dataset.live = "off"; };
}
document.addEventListener("visibilitychange", () => { watch(); if (!document.hidden) refresh(); });
watch();
