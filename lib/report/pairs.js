// Show 20 pairs at first and more on demand, and search all of them. Without JavaScript all pairs
// are shown.
(() => {
  const STEP = 20;
  const list = document.getElementById("pairs");
  if (!list) return;
  const items = [...list.children];
  const texts = items.map((item) => item.textContent.toLowerCase());
  const more = document.getElementById("more");
  const search = document.getElementById("search");
  const status = document.getElementById("matches");
  let limit = STEP;

  function show() {
    const query = search.value.trim().toLowerCase();
    let matches = 0;
    items.forEach((item, index) => {
      const match = texts[index].includes(query);
      matches += match;
      item.hidden = !match || matches > limit;
    });
    more.hidden = matches <= limit;
    status.textContent = query ? `${matches} of ${items.length} pairs` : "";
  }

  search.closest("p").hidden = false;
  search.addEventListener("input", () => { limit = STEP; show(); });
  more.addEventListener("click", () => { limit += STEP; show(); });
  show();
})();
