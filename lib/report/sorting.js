// Sort a table by a click (or Enter, or Space) on a header; a second click turns the order round.
// Numbers sort as numbers, texts as texts, and missing values come last in both directions.
(() => {
  const MISSING = new Set(["", "nan", "none", "<na>", "nat"]);
  // A number is written for people ("12 %", "< .001"); its value stands beside it.
  const text = (cell) => (cell ? cell.dataset.value ?? cell.textContent.trim() : "");
  const missing = (value) => MISSING.has(value.toLowerCase());
  const number = (value) => Number(value.replace(/^(-?)inf$/, "$1Infinity"));

  function compare(numeric, direction) {
    const order = new Intl.Collator(undefined, { numeric: true });
    return (a, b) => {
      if (missing(a.value) || missing(b.value)) return missing(a.value) - missing(b.value);
      const sign = numeric ? number(a.value) - number(b.value) : order.compare(a.value, b.value);
      return direction * sign;
    };
  }

  function sort(table, header, column) {
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) {
      other.removeAttribute("aria-sort");
    }
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => ({ row, value: text(row.cells[column]) }));
    const numeric = rows.every(({ value }) => missing(value) || !Number.isNaN(number(value)));
    rows.sort(compare(numeric, down ? -1 : 1));
    body.append(...rows.map(({ row }) => row));
  }

  const part = document.currentScript?.closest(".explore") ?? document;
  for (const table of part.querySelectorAll("table.dataframe")) {
    if (!table.tHead || !table.tBodies.length) continue;
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort by this column";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, column));
    });
  }
})();
