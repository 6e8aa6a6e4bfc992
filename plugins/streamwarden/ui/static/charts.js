// Draws the charts of a page with vega-embed: as wide as their place, in the theme of the page. Vega interprets expressions
// (`ast`) and leaves style sheets to us, because the Content Security Policy forbids `eval` and inline styles.
"use strict";
(() => {
  const PANEL_PIXELS = 92; // axis labels and title left of the panels of a chart with two
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
  const CHARACTER_PIXELS = 8;
  const wrapped = (lines, width) => lines.join(" ").split(" ").reduce((done, word) => {
    const longer = `${done.at(-1)} ${word}`.trim();
    return longer.length * CHARACTER_PIXELS <= width ? [...done.slice(0, -1), longer] : [...done, word];
  }, [""]);
  const fit = (spec, width) => {
    const margin = spec.usermeta?.margin ?? PANEL_PIXELS;
    for (const panel of spec.vconcat ?? [spec]) panel.title = wrapped([panel.title].flat(), width - margin);
    spec.config.legend.columns = width < 480 ? 1 : 2;
    if (spec.vconcat) spec.vconcat.forEach((panel) => { panel.width = width - margin; });
    else Object.assign(spec, { width, autosize: { type: "fit-x", contains: "padding" } });
    return spec;
  };
  const draw = async (figure) => {
    const canvas = figure.querySelector(".chart-canvas");
    const wanted = `${theme()} ${figure.clientWidth}`;
    if (figure.dataset.drawn === wanted) return;
    figure.dataset.drawn = wanted;
    const answer = await fetch(`${figure.dataset.spec}&theme=${theme()}`);
    if (!answer.ok) throw new Error(String(answer.status));
    const spec = await answer.json();
    canvas.hidden = false;
    figure.view?.finalize();
    figure.view = await vegaEmbed(canvas.firstElementChild, fit(spec, canvas.clientWidth - 18), {
      actions: false, ast: true, renderer: "svg", defaultStyle: false, tooltip: { disableDefaultStyle: true },
    });
    figure.querySelector(".chart-help").hidden = !spec.usermeta?.zoom;
  };
  const drawAll = () => document.querySelectorAll("figure.chart:not(.failed)").forEach((figure) => {
    draw(figure).catch(() => { // the pictures need no script
      figure.classList.add("failed");
      figure.querySelector(".chart-canvas").hidden = true;
      figure.append(figure.querySelector("template").content.cloneNode(true));
    });
  });
  drawAll();
  dark.addEventListener("change", drawAll);
  new MutationObserver(drawAll).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  let later;
  addEventListener("resize", () => { clearTimeout(later); later = setTimeout(drawAll, 200); });
})();
