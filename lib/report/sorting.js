// Sort a table by a click (or Enter, or Space) on a header; a second click turns the order round.
// Numbers sort as numbers, texts as texts, and missing values come last in both directions.
(() => {
  const MISSING = new Set(["", "nan", "none", "<na>", "nat"]);
  const text = (cell) => (cell ? cell.textContent.trim() : "");
  const missing = (value) => MISSING.has(value.toLowerCase());
  const number = (value) => Number(value.replace(/^(-?)inf$/, "$1Infinity"));

  // A cell that spans rows (a repeated system) is written into each of them, or rows could not move.
  function fillSpans(body) {
    for (const row of body.rows) {
      for (const cell of [...row.cells]) {
        const below = cell.rowSpan - 1;
        const column = cell.cellIndex;
        cell.removeAttribute("rowspan");
        let next = row;
        for (let k = 0; k < below && next.nextElementSibling; k += 1) {
          next = next.nextElementSibling;
          next.insertBefore(cell.cloneNode(true), next.cells[column] || null);
        }
      }
    }
  }

  // The header of each column: the lowest one that has a name and spans this column alone.
  function headers(head) {
    const found = [];
    for (const row of head.rows) {
      let column = 0;
      for (const cell of row.cells) {
        if (cell.colSpan === 1 && text(cell)) found[column] = cell;
        column += cell.colSpan;
      }
    }
    return found;
  }

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

  for (const table of document.querySelectorAll("table.dataframe")) {
    if (!table.tHead || !table.tBodies.length) continue;
    fillSpans(table.tBodies[0]);
    headers(table.tHead).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort by this column";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header, column));
    });
  }
})();
