// Open the folded section that a link jumps to, also where the page is opened at it. Without
// JavaScript a section is opened by its heading.
(() => {
  function open(hash) {
    const section = document.getElementById(hash.slice(1))?.closest("details");
    if (!section) return;
    section.open = true;
    section.scrollIntoView();
  }

  // A second click on the same link changes no hash.
  for (const link of document.querySelectorAll('nav a[href^="#"]')) {
    link.addEventListener("click", () => open(link.hash));
  }
  addEventListener("hashchange", () => open(location.hash));
  open(location.hash);
})();
