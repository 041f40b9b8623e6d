/* What does not fit, of a page as it is shown: formulas cut off, tables that need side-scroll. */
() => {
  const faults = [];
  const where = (e) => (e.textContent || "").trim().replace(/\s+/g, " ").slice(0, 50);
  for (const fold of document.querySelectorAll("main details, body > details, .judged details")) {
    if (fold.querySelector("table.verdicts, .math")) fold.open = true;
  }
  const phone = innerWidth < 640;

  /* The nearest ancestor that clips or scrolls what sticks out of it, or the screen. */
  const edge = (e) => {
    for (let box = e.parentElement; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX !== "visible") {
        const { left } = box.getBoundingClientRect();
        return Math.min(innerWidth, left + box.clientLeft + box.clientWidth);
      }
    }
    return innerWidth;
  };
  const sticksOut = (e) => {
    const { left, right, width } = e.getBoundingClientRect();
    return width > 0 && (right > edge(e) + 1.5 || left < -1.5);
  };

  if (!phone) {
    for (const formula of document.querySelectorAll("main mjx-container, body > p mjx-container")) {
      const inner = formula.querySelector("mjx-math, svg") || formula;
      const cut = formula.scrollWidth > formula.clientWidth + 2 && formula.clientWidth > 0
        && getComputedStyle(formula).overflowX !== "visible";
      if (cut || sticksOut(inner)) {
        const text = formula.closest(".math, p, li, td");
        faults.push(`a formula cut off, below ${where((text || formula).parentElement)}`);
      }
    }
  }
  for (const table of document.querySelectorAll("table.verdicts, table.parameters")) {
    if (sticksOut(table)) faults.push(`a table that has to be scrolled: ${where(table)}`);
    const needed = table.matches(".verdicts")
      ? ["outcome", "claim", "predicted", "measured"] : ["parameter", "value", "meaning"];
    for (const row of table.querySelectorAll("tbody tr")) {
      if (!row.checkVisibility()) continue;
      for (const name of needed) {
        const cell = row.querySelector(`td.${name}`);
        const shown = cell && cell.getClientRects().length > 0
          && cell.getBoundingClientRect().height > 0;
        if (!cell || (cell.textContent.trim() && (!shown || sticksOut(cell)
            || cell.scrollWidth > cell.clientWidth + 2))) {
          faults.push(`${name} is not all to be seen: ${where(row)}`);
        }
      }
    }
  }
  return [...new Set(faults)];
}
