/* Claims: a link to one that is folded opens the fold, and the scoreboard's table is filtered. */
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

  const start = () => {
    const form = document.querySelector("form.filter");
    if (form) filter(form);
    window.addEventListener("hashchange", reveal);
    reveal();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
