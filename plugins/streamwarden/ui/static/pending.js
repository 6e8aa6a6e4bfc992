// Reloads a page that waits for a result, every 3 seconds; without JavaScript, the page has a link that does.
addEventListener("DOMContentLoaded", () => {
  if (document.querySelector("[data-pending]")) setTimeout(() => location.reload(), 3000);
});
