// For pages in Airflow's iframe: follows Airflow's light or dark theme, and opens links that leave the frame (to tickets
// and to Airflow) through Airflow's document, because the sandbox of the frame forbids it.
"use strict";
(() => {
  let airflow;
  try {
    airflow = window.parent !== window && window.parent.document.documentElement;
  } catch {
    return; // not in Airflow's iframe
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
