"use strict";
// Consoles: show the lines that hold what was typed. Nothing else on the page needs a script.
for (const box of document.querySelectorAll("details.console")) {
  const field = box.querySelector("input"), said = box.querySelector("output"), pre = box.querySelector("pre");
  let lines = null;
  box.querySelector(".find").hidden = false;
  field.addEventListener("input", () => {
    lines ??= pre.textContent.split("\n");
    const wanted = field.value.toLowerCase();
    const found = wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines;
    pre.textContent = found.join("\n");
    said.textContent = wanted ? `${found.length} of ${lines.length} lines` : "";
  });
}
// A link to a console, or to anything folded away, opens it.
const unfold = () => {
  const id = decodeURIComponent(location.hash.slice(1));
  for (let node = id && document.getElementById(id); node; node = node.parentElement)
    if (node.tagName === "DETAILS") node.open = true;
};
addEventListener("hashchange", unfold);
unfold();
// On paper the tables are open.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.paper:not([open])")];
  for (const node of opened) node.open = true;
});
addEventListener("afterprint", () => {
  for (const node of opened) node.open = false;
});
