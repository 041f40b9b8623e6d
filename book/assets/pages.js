/* For every page: a link to a folded claim opens the fold, a formula a little too wide for the column
   is set smaller, and the scoreboard's table is filtered. */
(() => {
  "use strict";

  const reveal = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target || !target.closest("details")) return;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    target.scrollIntoView();
  };

  const filter = (form) => {
    const folds = [...document.querySelectorAll("details.claims")].map((fold) => ({
      fold,
      rows: [...fold.querySelectorAll("tbody tr")],
      text: fold.querySelector("summary").textContent.toLowerCase(),
    }));
    const fields = [...form.querySelectorAll("select")];
    const said = form.querySelector("output");

    const apply = () => {
      const wanted = fields.filter((field) => field.value);
      const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const asked = wanted.length + words.length > 0;
      let all = 0;
      let shown = 0;
      for (const { fold, rows, text } of folds) {
        let here = 0;
        for (const row of rows) {
          const content = `${text} ${row.textContent.toLowerCase()}`;
          row.hidden = wanted.some((field) => row.dataset[field.name] !== field.value)
            || words.some((word) => !content.includes(word));
          here += row.hidden ? 0 : 1;
        }
        fold.hidden = here === 0;
        fold.open = asked && here > 0;
        all += rows.length;
        shown += here;
      }
      said.textContent = `${shown} of ${all} claims`;
    };

    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(apply));
    apply();
  };

  /* Not on a phone, where formulas scroll; and not by more than a quarter: what is wider than that
     should be broken where it is written. */
  const LEAST = 0.75;
  const fit = () => {
    for (const formula of document.querySelectorAll("mjx-container[display=true]")) {
      formula.style.removeProperty("zoom");
      const share = formula.clientWidth / formula.scrollWidth;
      if (innerWidth >= 640 && share < 1 && share >= LEAST) formula.style.zoom = 0.99 * share;
    }
    document.documentElement.dataset.fitted = "yes";
  };
  const fitWhenSet = async () => {
    if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
    fit();
    window.addEventListener("resize", fit);
  };

  const start = () => {
    if (document.readyState === "complete") fitWhenSet();
    else window.addEventListener("load", fitWhenSet);
    const form = document.querySelector("form.filter");
    if (form) filter(form);
    window.addEventListener("hashchange", reveal);
    reveal();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
