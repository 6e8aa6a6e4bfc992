// Shows results below the search field while typing. Without this script, Enter opens the page with the results.
"use strict";
addEventListener("DOMContentLoaded", () => {
  const field = document.querySelector("#search-field");
  const list = document.querySelector("#search-results");
  if (!field || !list) return;
  let newest = 0;
  let timer;

  const hide = () => {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
  };
  const show = async () => {
    const asked = ++newest;
    const words = field.value.trim();
    if (words.length < 2) return hide();
    const address = `${field.form.action}/suggestions?q=${encodeURIComponent(words)}`;
    const answer = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
    if (asked !== newest || !answer || !answer.ok || answer.redirected) return;
    list.innerHTML = await answer.text(); // escaped by the server; the policy of the page forbids scripts in it
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
  };
  const move = (step) => {
    const links = [...list.querySelectorAll("a")];
    const next = links.indexOf(document.activeElement) + step;
    (next < 0 ? field : links[Math.min(next, links.length - 1)] || field).focus();
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  });
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      if (field.offsetParent) field.focus();
      else location.assign(field.form.action);
    } else if (event.key === "Escape" && !list.hidden) {
      event.preventDefault(); // Chromium would clear the field
      hide();
      field.focus();
    } else if (!list.hidden && event.target.closest("#search") && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      move(event.key === "ArrowDown" ? 1 : -1);
    }
  });
  addEventListener("click", (event) => {
    if (!event.target.closest("#search")) hide();
  });
});
