// Show the rows that hold what is typed. Without JavaScript all rows are shown.
(() => {
  const part = document.currentScript?.closest(".explore");
  if (!part) return;
  const rows = [...part.querySelectorAll("table.dataframe > tbody > tr")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const search = part.querySelector("input");
  const status = part.querySelector("[role=status]");
  search.closest("p").hidden = false;
  search.addEventListener("input", () => {
    const query = search.value.trim().toLowerCase();
    let matches = 0;
    rows.forEach((row, index) => {
      const match = texts[index].includes(query);
      matches += match;
      row.hidden = !match;
    });
    status.textContent = query ? `${matches} of ${rows.length} replies` : "";
  });
})();
