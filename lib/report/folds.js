// Open the folded section that a link jumps to, also where the page is opened at it. Without
// JavaScript a section is opened by its heading.
(() => {
  function open(hash) {
    const target = document.getElementById(hash.slice(1));
    const section = target?.closest("details");
    if (!section) return;
    section.open = true;
    target.scrollIntoView();
  }

  // A second click on the same link changes no hash.
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => open(link.hash));
  }
  addEventListener("hashchange", () => open(location.hash));
  open(location.hash);
})();
