// Say of each table that is wider than the page that it can be scrolled sideways.
(() => {
  const observer = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.previousElementSibling.hidden = target.scrollWidth <= target.clientWidth;
    }
  });
  for (const region of document.querySelectorAll(".wide")) observer.observe(region);
})();
