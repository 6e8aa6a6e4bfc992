// Two things a page can't do by itself when Airflow shows it in its frame: look like Airflow (light or dark is chosen
// there), and follow links that leave the frame, to tickets and to Airflow itself (the frame's sandbox forbids it;
// Airflow's own document may).
"use strict";
(() => {
  let airflow;
  try {
    airflow = window.parent !== window && window.parent.document.documentElement;
  } catch {
    return; // not Airflow's frame
  }
  if (!airflow) return;
  const own = document.documentElement;
  own.classList.add("framed");
  const follow = () => {
    own.dataset.theme = airflow.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  const watch = new MutationObserver(follow);
  watch.observe(airflow, { attributes: true, attributeFilter: ["class"] });
  addEventListener("pagehide", () => watch.disconnect());
  addEventListener("click", (event) => {
    const link = event.target.closest("a[target]");
    if (!link) return;
    event.preventDefault();
    const twin = window.parent.document.createElement("a");
    twin.href = link.href;
    twin.target = link.target === "_top" ? "_self" : link.target;
    twin.rel = "noopener";
    twin.click();
  });
})();
