// The document of a page, its theme, and the start of the page.
"use strict";

async function readDocument() {
  const text = document.getElementById("data").textContent;
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

function theme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    window.dispatchEvent(new Event("resize"));
  });
}

/** Show the page with its document, or why that is impossible. */
function start(show) {
  theme();
  readDocument().then(show).catch((error) => { document.getElementById("sentence").textContent = "This page cannot be shown: " + error.message + ". It needs a browser of 2023 or newer."; });
}
