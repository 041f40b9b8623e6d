/* Two rows of queues with the same arrivals and the same servers: in the upper row a job looks at one
   queue, in the lower one at d. Where motion is unwanted they stand still until someone starts them. */
(() => {
  "use strict";

  /* Uniform numbers in [0, 1) from 32 bits of state, of which the tests have a twin. */
  const uniforms = (seed) => {
    let state = seed | 0;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  };

  class Rows {
    constructor(n, d, load, seed) {
      Object.assign(this, { n, d, load, time: 0, random: uniforms(seed) });
      this.one = new Int32Array(n);
      this.several = new Int32Array(n);
    }

    /* An arrival, or a server's chance to finish a job, in both rows. */
    event() {
      const { n, d, load, random, one, several } = this;
      this.time += 1 / (n * (1 + load));
      const where = Math.floor(random() * n);
      if (random() * (1 + load) >= load) {
        one[where] -= one[where] > 0 ? 1 : 0;
        several[where] -= several[where] > 0 ? 1 : 0;
        return;
      }
      one[where] += 1;
      let shortest = where; // the first look is the same in both rows
      for (let look = 1; look < d; look += 1) {
        const other = Math.floor(random() * n);
        if (several[other] < several[shortest]) shortest = other;
      }
      several[shortest] += 1;
    }

    until(time) {
      while (this.time < time) this.event();
      return this;
    }
  }

  const JOB = 5; // height of a job, in pixels
  const SPEED = 2.5; // mean service times a second
  const START = 1500; // the rows are shown as they are after so many mean service times

  const element = (name, attributes = {}, text = "") => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };

  const live = (place) => {
    const n = Number(place.dataset.queues) || 60;
    let d = 2;
    let load = Number(place.dataset.load) || 0.9;
    let rows = new Rows(n, d, load, 1).until(START);
    let running = false;
    let last = 0;

    const canvas = element("canvas", { role: "img" });
    const pause = element("button", { type: "button" });
    const slider = (label, options) => {
      const input = element("input", { type: "range", "aria-label": label, ...options });
      const shown = element("output");
      const whole = element("label", {}, `${label} `);
      whole.append(input, shown);
      return { input, shown, whole };
    };
    const looks = slider("looks d", { min: 2, max: 10, step: 1, value: d });
    const busy = slider("load λ", { min: 0.5, max: 0.98, step: 0.02, value: load });
    const controls = element("div", { class: "controls" });
    controls.append(pause, looks.whole, busy.whole);
    place.replaceChildren(canvas, controls);

    const mean = (row) => row.reduce((sum, jobs) => sum + jobs, 0) / n;
    const longest = (row) => row.reduce((most, jobs) => Math.max(most, jobs), 0);

    const draw = () => {
      const style = getComputedStyle(place);
      const ratio = window.devicePixelRatio || 1;
      const width = place.clientWidth;
      const heights = [180, 76];
      const below = 26;
      const height = heights[0] + heights[1] + 2 * below;
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const pen = canvas.getContext("2d");
      pen.scale(ratio, ratio);
      pen.clearRect(0, 0, width, height);
      pen.font = `14px ${style.fontFamily}`;
      const step = width / n;
      const gap = step > 4 ? 1 : 0;
      let bottom = 0;
      [rows.one, rows.several].forEach((row, which) => {
        bottom += heights[which];
        pen.fillStyle = style.getPropertyValue(which ? "--several" : "--one");
        row.forEach((jobs, queue) => {
          const fits = Math.floor(heights[which] / JOB);
          for (let job = 0; job < Math.min(jobs, fits); job += 1) {
            pen.fillRect(queue * step, bottom - (job + 1) * JOB, step - gap, JOB - 1);
          }
        });
        pen.fillStyle = style.color;
        pen.fillRect(0, bottom, width, 1);
        const name = which ? `${d} looks` : "one look";
        pen.fillText(
          `${name}: longest ${longest(row)}, mean ${mean(row).toFixed(1)}`, 0, bottom + below - 10,
        );
        bottom += below;
      });
      looks.shown.textContent = String(d);
      busy.shown.textContent = load.toFixed(2);
      pause.textContent = running ? "Pause" : "Run";
      canvas.setAttribute(
        "aria-label",
        `${n} queues at load ${load}. One look: longest ${longest(rows.one)}, mean `
          + `${mean(rows.one).toFixed(1)}. ${d} looks: longest ${longest(rows.several)}, mean `
          + `${mean(rows.several).toFixed(1)}.`,
      );
    };

    const frame = (now) => {
      if (!running) return;
      requestAnimationFrame(frame);
      if (now - last < 40) return; // as often as the eye needs
      const passed = Math.min(now - last, 100) / 1000;
      last = now;
      rows.until(rows.time + passed * SPEED);
      draw();
    };
    const run = (wanted) => {
      if (wanted && !running) {
        running = true;
        last = performance.now();
        requestAnimationFrame(frame);
      }
      running = wanted;
      draw();
    };
    const change = () => {
      d = Number(looks.input.value);
      load = Number(busy.input.value);
      rows = new Rows(n, d, load, 1).until(START);
      draw();
    };

    let wanted = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    pause.addEventListener("click", () => {
      wanted = !running;
      run(wanted);
    });
    looks.input.addEventListener("input", change);
    busy.input.addEventListener("input", change);
    addEventListener("resize", draw);
    new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    new IntersectionObserver(([seen]) => run(wanted && seen.isIntersecting)).observe(canvas);
    draw();
  };

  window.supermarketQueues = { Rows, uniforms };
  addEventListener("DOMContentLoaded", () => {
    for (const place of document.querySelectorAll(".living-queues")) live(place);
  });
})();
