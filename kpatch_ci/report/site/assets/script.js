"use strict";
// Filter and sort the index's table. Nothing else needs a script.
const table = document.querySelector("table.sortable");
if (table) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const field = document.getElementById("filter"), said = document.getElementById("found");
  document.querySelector(".tools").hidden = false;
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      shown += !row.hidden;
    }
    said.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };
  field.addEventListener("input", filter);
  const value = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.ariaSort === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sorted = [...rows].sort((a, b) => compare(value(a, column), value(b, column)));
      body.append(...(down ? sorted.reverse() : sorted));
    });
  });
}
// On paper the tables are open.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const node of opened) node.open = true;
});
addEventListener("afterprint", () => {
  for (const node of opened) node.open = false;
});
