/* The explorer: predictions for the reader's own numbers, in the reader's browser.

   The first part is arithmetic alone, the same formulas as the Python package, with which the tests
   compare it. The second part is the page. Plain script, no network. */

"use strict";

// Conventions as in the package: lam = arrivals per server and mean service time, P_k = share of
// queues with at least k jobs as n grows, logarithms natural.
window.SupermarketTheory = (() => {
  const SMALLEST = 1e-40; // levels are computed until P_k is below
  const LEAST_LOG_RATE = -600; // or the arrival rate is
  const MARGIN = 42; // nodes reach down to exp(-42) of the arrival rate
  const EDGE = 46; // weights below exp(-46) of the largest are left out
  const NEGLIGIBLE = 1e-4; // a mean is given if less of it lies beyond the last level

  /** 1 + d + ... + d**(k-1), also where k is not whole. */
  function exponent(d, k) {
    return d === 1 ? k : Math.expm1(k * Math.log(d)) / (d - 1);
  }

  /** log P_k of exponential service: Brightwell & Luczak, equation (1.2). */
  function logFixedPoint(lam, d, k) {
    if (!Number.isInteger(k)) return exponent(d, k) * Math.log(lam);
    if (d === 1) return k * Math.log(lam);
    let sum = 0;
    for (let j = 0; j < k && sum < Infinity; j++) sum = 1 + d * sum;
    return sum * Math.log(lam);
  }

  /** A decimal or a double as a fraction of two BigInts. */
  function decimalFraction(text) {
    const [mantissa, power = "0"] = text.toLowerCase().split("e");
    const [whole, part = ""] = mantissa.split(".");
    const shift = BigInt(Number(power) - part.length);
    const digits = BigInt(whole + part);
    return shift >= 0n ? [digits * 10n ** shift, 1n] : [digits, 10n ** -shift];
  }

  function doubleFraction(x) {
    let halvings = 0n;
    while (!Number.isInteger(x)) {
      x *= 2;
      halvings += 1n;
    }
    return [BigInt(x), 2n ** halvings];
  }

  /** Smallest k with d**k >= 1/(1-lam), exactly; lam as the double or as its shortest decimal,
      whichever is smaller, so that k = 1 at lam = 0.9, d = 10. */
  function kLambdaD(lam, d) {
    if (d < 2) return NaN; // one choice has none
    const shortest = ([top, bottom]) => {
      const spare = bottom - top;
      let k = 1;
      for (let power = BigInt(d); power * spare < bottom; power *= BigInt(d)) k += 1;
      return k;
    };
    return Math.min(shortest(doubleFraction(lam)), shortest(decimalFraction(String(lam))));
  }

  /** Largest k with n P_k >= 1 for exponential service: Brightwell & Luczak, display (1.4). */
  function maxQueueHypothesis(n, lam, d) {
    const largest = Math.log(n) / -Math.log(lam);
    if (d === 1) return Math.floor(largest);
    let k = 0;
    for (let sum = 1; sum <= largest; sum = 1 + d * sum) k += 1;
    return k;
  }

  /** Smallest m with P(max <= m) >= p for n queues with one choice: independent M/M/1 queues. */
  function maxQuantileOneChoice(n, lam, p) {
    const share = -Math.expm1(Math.log(p) / n); // lam**(m + 1) may be this
    return Math.max(0, Math.ceil(Math.log(share) / Math.log(lam) - 1));
  }

  /** Which hypotheses of Theorem 1.2 fail for eps = 1/10, with 1 for the factor in (C). */
  function failedHypotheses(n, lam, d) {
    if (d < 2) return [];
    const k = kLambdaD(lam, d);
    const spare = 1 - lam;
    const holds = {
      A: 2 * Math.log(n) ** 2 <= spare * d ** k,
      B: 100 * k * spare * d ** (k - 1) <= 0.1 && k >= 2,
      C: 1 / spare <= 0.1 * Math.sqrt(n * d),
    };
    return Object.keys(holds).filter((name) => !holds[name]);
  }

  function meanQueueExponential(lam, d) {
    if (d === 1) return lam / (1 - lam);
    let [total, sum, term] = [0, 1, lam];
    while (term > 1e-18 * total) {
      total += term;
      sum = 1 + d * sum;
      term = Math.exp(sum * Math.log(lam));
    }
    return total;
  }

  /** Step of the trapezoidal rule in log x for which its error, 2 |Gamma(beta + i w)| / Gamma(beta)
      with w = 2 pi / step, is below 1e-17; Gamma by Stirling's formula. */
  function quadratureStep(beta) {
    const logGamma = (w) =>
      ((beta - 0.5) / 2) * Math.log(beta * beta + w * w) - w * Math.atan2(w, beta);
    let w = 28;
    while (logGamma(w) - logGamma(0) > -41) w *= 1.05;
    return (2 * Math.PI) / w;
  }

  /** Root of image(x) = x between low and high: secants, and bisections where they are slow. */
  function solve(image, x, low, high) {
    let before = x;
    let gapBefore = 0;
    for (let turn = 0; turn < 200; turn++) {
      const value = image(x);
      const gap = value - x;
      if (Math.abs(gap) <= 4 * Number.EPSILON * x) break;
      if (gap > 0) low = x;
      else high = x;
      let next = value;
      if (turn > 0) next = gap === gapBefore ? low : x - (gap * (x - before)) / (gap - gapBefore);
      if (turn % 16 === 15 || !(low < next && next < high)) next = 0.5 * (low + high);
      if (Math.abs(next - x) <= Number.EPSILON * x) break;
      [before, gapBefore, x] = [x, gap, next];
    }
    return x;
  }

  function geometric(ratio, d) {
    let total = 1;
    for (let j = 1; j < d; j++) total = total * ratio + 1;
    return total;
  }

  /** FIFO cavity equilibrium for Lomax service of mean 1, level by level: supermarket.cavity.

      The service law is a mixture of exponentials of rates x with shares v = weight / x. A node
      carries lam_{k-1} G_{k-1}(x), which flows into level k. The last node stands for all rates
      below: their transforms are the one at 0. */
  class LomaxCavity {
    constructor(beta, d, lam) {
      Object.assign(this, { beta, d, lam });
      this.tail = [1, lam];
      this.ended = false; // further levels are below SMALLEST
      const step = quadratureStep(beta);
      const a = beta - 1;
      const above = Math.log1p(EDGE / beta + Math.sqrt((2 * EDGE) / beta));
      const top = Math.log(beta / a) + above;
      this.logRate = (j) => top - step * j;
      const logShare = (j) => (beta - 1) * this.logRate(j) - a * Math.exp(this.logRate(j));
      const offset = logShare(Math.round(above / step));
      let count = Math.ceil((top + Math.max(EDGE, Math.log(a) + EDGE)) / step) + 1;
      const shares = Array.from({ length: count }, (_, j) => Math.exp(logShare(j) - offset));
      const ratio = Math.expm1(a * step);
      const total = shares.reduce((sum, share) => sum + share, shares[count - 1] / ratio);
      this.share = (j) => Math.exp(logShare(j) - offset) / total; // mean 1
      this.ratio = ratio;
      this.x = [];
      this.v = [];
      this.inflow = [];
      this.fresh = lam * geometric(lam, d) * (1 - lam); // lam_0 p_0, into level 1
      this.reach(Math.log(lam) + (d - 1) * Math.log(lam) - MARGIN, count);
    }

    /** Add nodes down to exp(low). */
    reach(low, least = 0) {
      const nodes = Math.max(0, this.x.length - 1);
      if (nodes && this.logRate(nodes - 1) <= low) return;
      const last = nodes ? this.inflow[nodes] : 0;
      const x = Array.from(this.x).slice(0, nodes);
      const v = Array.from(this.v).slice(0, nodes);
      const inflow = Array.from(this.inflow).slice(0, nodes);
      for (let j = nodes; j < least || this.logRate(j - 1) > low - MARGIN; j++) {
        x.push(Math.exp(this.logRate(j)));
        v.push(this.share(j));
        inflow.push(last);
      }
      x.push(0);
      v.push(v[v.length - 1] / this.ratio);
      inflow.push(last);
      [this.x, this.v, this.inflow] = [x, v, inflow].map((list) => Float64Array.from(list));
    }

    /** Compute P_2, ..., P_levels, as far as they are not below SMALLEST. */
    to(levels) {
      while (!this.ended && this.tail.length <= levels) this.climb();
      return this;
    }

    climb() {
      const { d, lam, tail } = this;
      const k = tail.length - 1;
      const here = tail[k];
      const logLeast = Math.log(lam) + (d - 1) * Math.log(here);
      if (here < SMALLEST || logLeast < LEAST_LOG_RATE) {
        this.ended = true;
        return;
      }
      this.reach(logLeast - MARGIN);
      const { x, v, inflow } = this;
      const fresh = k === 1 ? this.fresh : 0;
      const served = (rate, start) => {
        let total = 0;
        for (let j = 0; j < x.length; j++) total += (v[j] * (start + inflow[j])) / (x[j] + rate);
        return rate * total;
      };
      const rateOf = (after) => Math.exp(logLeast) * geometric(after / here, d);
      const image = (after) => {
        const rate = rateOf(after);
        return lam * after ** d + served(rate, rate * (here - after) + fresh);
      };
      const bottom = served(Math.exp(logLeast), fresh);
      const ratio = here / tail[k - 1];
      let start = bottom;
      if (ratio > 0.5) {
        const change = k > 2 ? ratio - tail[k - 1] / tail[k - 2] : 0;
        start = Math.min(Math.max(bottom, here * (ratio + change)), here * (1 - 1e-12));
      }
      const after = solve(image, start, bottom, here);
      const rate = rateOf(after);
      // The difference that the equation was solved with: another would not balance it.
      const began = rate * (here - after) + fresh;
      for (let j = 0; j < x.length; j++) inflow[j] = (rate * (began + inflow[j])) / (x[j] + rate);
      tail.push(after);
    }

    /** log P_k, -Infinity where it is below SMALLEST. */
    logTail(k) {
      this.to(k);
      return k < this.tail.length ? Math.log(this.tail[k]) : -Infinity;
    }
  }

  /** What kind of tail: Bramson, Lu & Prabhakar 2013, theorems 1.1 to 1.3; beta = Infinity for
      exponential service. */
  function regime(beta, d) {
    const side = beta * (d - 1) - d; // d / (d - 1) without a division by 0
    if (beta === Infinity) return d === 1 ? "exponential" : "doubly exponential";
    if (Math.abs(side) < 1e-12 * d) return "exponential";
    return side > 0 ? "doubly exponential" : "power law";
  }

  /** gamma of P_k ~ K k**-gamma (theorem 1.2, (6)); for d = 1 that of M/G/1. */
  function powerLawExponent(beta, d) {
    return (beta - 1) / (1 - (d - 1) * (beta - 1));
  }

  /** q of log_d log(1/P_k) ~ q k (theorem 1.1, equations (22) and (23)). */
  function qExponent(beta, d) {
    if (beta === Infinity) return 1;
    const whole = Math.floor(beta);
    let [low, high] = [0.5 / d, 1];
    while (high - low > 1e-16) {
      const x = 0.5 * (low + high);
      let sum = (beta - whole) * x ** whole;
      for (let j = 1; j < whole; j++) sum += x ** j;
      if (x <= low || x >= high) break;
      if ((d - 1) * sum > 1) high = x;
      else low = x;
    }
    return -Math.log(0.5 * (low + high)) / Math.log(d);
  }

  /** Mean time in the system, in mean service times; null if the sum has not settled. */
  function meanSojournLomax(cavity) {
    const { beta, d, lam } = cavity;
    if (d === 1) { // Pollaczek and Khinchine
      if (beta <= 2) return Infinity;
      return 1 + (lam * (1 + beta / (beta - 2))) / (2 * (1 - lam));
    }
    const kind = regime(beta, d);
    const gamma = powerLawExponent(beta, d);
    if (kind === "power law" && gamma <= 1) return Infinity;
    for (const levels of [64, 1024, 16384]) {
      const tail = cavity.to(levels).tail;
      const last = Math.min(levels, tail.length - 1);
      let known = 0;
      for (let k = last; k > 0; k--) known += tail[k];
      const ratio = tail[last] / tail[last - 1];
      const beyond = kind === "power law" ? last / (gamma - 1) - 0.5 : ratio / (1 - ratio);
      const rest = tail[last] * beyond;
      if (rest <= NEGLIGIBLE * known) return (known + rest) / lam;
    }
    return null;
  }

  /** One system: the law of a queue and what follows from it. beta = Infinity: exponential. */
  function system(lam, d, beta) {
    const cavity = beta === Infinity ? null : new LomaxCavity(beta, d, lam);
    return {
      lam, d, beta, cavity,
      logTail: (k) => (cavity ? cavity.logTail(k) : logFixedPoint(lam, d, k)),
      meanSojourn: () =>
        cavity ? meanSojournLomax(cavity) : meanQueueExponential(lam, d) / lam,
    };
  }

  /** Largest k with n P_k >= 1, null if it is beyond `most`. */
  function largestQueue(model, n, most) {
    if (!model.cavity) return maxQueueHypothesis(n, model.lam, model.d);
    for (let k = 1; k <= most; k++) if (model.logTail(k) < -Math.log(n)) return k - 1;
    return null;
  }

  /** Smallest d up to `most` for which `enough` holds; null if there is none. A d for which it
      cannot be told (null) ends the search, with NaN. Doubling, then halving, where monotone. */
  function smallestChoices(enough, most, monotone) {
    if (!monotone) {
      for (let d = 1; d <= most; d++) {
        const answer = enough(d);
        if (answer !== false) return answer ? d : NaN;
      }
      return null;
    }
    let [low, high] = [0, 1];
    while (!enough(high)) {
      if (high >= most) return null;
      [low, high] = [high, Math.min(2 * high, most)];
    }
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (enough(middle)) high = middle;
      else low = middle;
    }
    return high;
  }

  /** Smallest d for which the share of queues with at least `jobs` is at most `share`. */
  function choicesForShare(lam, beta, jobs, share, most) {
    const enough = (d) => system(lam, d, beta).logTail(jobs) <= Math.log(share);
    return smallestChoices(enough, most, beta === Infinity);
  }

  /** Smallest d for which the mean time in the system is at most `mean`; NaN if not to be told. */
  function choicesForMean(lam, beta, mean, most) {
    const enough = (d) => {
      const sojourn = system(lam, d, beta).meanSojourn();
      return sojourn === null ? null : sojourn <= mean;
    };
    return smallestChoices(enough, most, beta === Infinity);
  }

  return {
    logFixedPoint, kLambdaD, maxQueueHypothesis, maxQuantileOneChoice, failedHypotheses,
    meanQueueExponential, LomaxCavity, regime, powerLawExponent, qExponent, system, largestQueue,
    choicesForShare, choicesForMean,
  };
})();

/* PAGE */
(() => {
  const theory = window.SupermarketTheory;
  const DEEPEST = 1024; // levels of a Lomax tail that are drawn
  const decades = (from, to, steps) => {
    const list = [];
    for (let e = from; e <= to; e++) for (const step of steps) list.push(Number(`${step}e${e}`));
    return list;
  };
  const SPARE = [0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15]
    .concat(decades(-12, -1, [1, 2, 5]).filter((x) => x <= 0.1).reverse());
  // What a slider runs through.
  const STOPS = {
    n: decades(0, 14, [1, 2, 5]).concat([1e15]),
    d: [...Array(20).keys()].map((i) => i + 1).concat([25, 30, 40, 50, 70],
      decades(2, 8, [1, 2, 5]), [1e9]),
    lam: SPARE.map((spare) => round(1 - spare)),
    beta: [...Array(79).keys()].map((i) => round(1.1 + i / 20)),
  };
  const START = { n: "1000000", d: "2", lam: "0.9", service: "exponential", beta: "1.7",
    jobs: "8", share: "0.000001", mean: "2" };

  const at = (id) => document.getElementById(`explorer-${id}`);
  let planned = 0;
  let spareFault = ""; // what is wrong with 1 - lam, while that is what is typed

  function round(x) {
    return Number(x.toFixed(15));
  }

  /** The allowed range of each field, which depends on the service law. */
  function ranges(service) {
    const lomax = service === "lomax";
    return {
      n: { whole: true, low: 1, high: 1e15 },
      d: { whole: true, low: 1, high: lomax ? 100 : 1e9 },
      lam: { low: 0.001, high: lomax ? 0.999999 : 0.999999999999 },
      beta: { low: 1.1, high: 20 },
      jobs: { whole: true, low: 1, high: lomax ? 200 : 1000 },
      share: { low: 1e-20, high: 0.999 },
      mean: { low: 1.001, high: 1e6 },
    };
  }

  /** The number in a field, or a sentence that says what is wrong with it. */
  function parsed(name, text, range) {
    const example = range.whole ? "1000 or 1e3" : "0.9 or 1e-6";
    if (text === "") return { fault: `${name} is empty: give a number, such as ${example}.` };
    if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) {
      return { fault: `${name} = ${text} is not a number: write it as ${example}.` };
    }
    const value = Number(text);
    if (value < range.low || value > range.high) {
      return { fault: `${name} = ${text} is out of range: ` +
        `choose ${range.low} <= ${name} <= ${range.high}.` };
    }
    if (range.whole && !Number.isInteger(value)) {
      return { fault: `${name} = ${text} is not a whole number: choose ${Math.round(value)}.` };
    }
    return { value };
  }

  /** A number with four digits. */
  function shown(x) {
    if (x === Infinity) return "infinite";
    if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x);
    const small = x !== 0 && Math.abs(x) < 1e-3;
    const digits = Number(x.toPrecision(4));
    return small || digits >= 1e6 ? digits.toExponential().replace("e+", "e") : String(digits);
  }

  /** A number with four digits, from its logarithm: a double might not hold it. */
  function shownExp(log) {
    if (log === -Infinity) return "below 1e-26";
    if (log > -600) return shown(Math.exp(log));
    const power = Math.floor(log / Math.LN10);
    if (power < -1e6) return `1e${power.toExponential(3).replace("e+", "e")}`;
    return `${(10 ** (log / Math.LN10 - power)).toFixed(3)}e${power}`;
  }

  /** A share, which near 1 would lose its digits. */
  function shownShare(log) {
    return log > -1e-3 && log < 0 ? `1 - ${shown(-Math.expm1(log))}` : shownExp(log);
  }

  /** Read the fields; write the sentences beside those that are wrong. */
  function read() {
    const service = at("service").value;
    const values = { service };
    for (const [name, range] of Object.entries(ranges(service))) {
      const used = name !== "beta" || service === "lomax";
      const text = at(name).value.trim();
      let { value, fault } = used ? parsed(name, text, range) : { value: Infinity };
      if (name === "lam" && spareFault) [value, fault] = [undefined, ""];
      values[name] = value;
      at(`${name}-fault`).textContent = fault || "";
      at(name).setAttribute("aria-invalid", fault ? "true" : "false");
      const slider = at(`${name}-slider`);
      if (!slider) continue;
      const stops = STOPS[name];
      slider.max = stops.filter((stop) => stop <= range.high).length - 1;
      if (value === undefined) continue;
      // Not while it is the slider that is moved: it would fight the hand.
      const near = stops.reduce(
        (best, stop, i) => (Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best), 0);
      if (document.activeElement !== slider) slider.value = near;
      slider.setAttribute("aria-valuetext", text);
    }
    at("beta-row").hidden = service !== "lomax";
    at("spare-fault").textContent = spareFault;
    at("spare").setAttribute("aria-invalid", spareFault ? "true" : "false");
    if (!spareFault && document.activeElement !== at("spare")) {
      at("spare").value = values.lam === undefined ? "" : String(round(1 - values.lam));
    }
    return values;
  }

  /** What one may say of the kind of tail. */
  function regimeSentence({ d, lam, beta, service }, model) {
    const kind = theory.regime(beta, d);
    if (service === "exponential") {
      return d === 1
        ? `Exponential: every queue is an M/M/1 queue, P_k = lam^k = ${lam}^k.`
        : `Doubly exponential: log P_k grows like d^k = ${d}^k, whatever the load.`;
    }
    const edge = d === 1 ? "infinity, for there is no choice" : `d/(d-1) = ${shown(d / (d - 1))}`;
    if (kind === "power law") {
      const gamma = theory.powerLawExponent(beta, d);
      return `Power law: beta = ${shown(beta)} is below ${edge}, and P_k falls like k^-gamma ` +
        `with gamma = ${shown(gamma)}.`;
    }
    if (kind === "exponential") {
      const { tail } = model.cavity.to(200);
      const ratio = tail[tail.length - 1] / tail[tail.length - 2];
      return `Exponential: beta is equal to ${edge}, and P_(k+1) / P_k tends to a constant; ` +
        `it is ${shown(ratio)} at k = ${tail.length - 2}.`;
    }
    return `Doubly exponential: beta = ${shown(beta)} is above ${edge}, and log(1/P_k) grows ` +
      `like d^(q k) with q = ${shown(theory.qExponent(beta, d))}.`;
  }

  function kSentence({ n, d, lam, service }) {
    if (d === 1 || service === "lomax") return "Of exponential service and d of at least 2.";
    const failed = theory.failedHypotheses(n, lam, d);
    const why = failed.length
      ? `${failed.map((name) => `(${name})`).join(", ")} of Theorem 1.2 fail${
        failed.length > 1 ? "" : "s"} here, so that it need not be the longest queue`
      : "the hypotheses of Theorem 1.2 hold with eps = 1/10";
    return `${theory.kLambdaD(lam, d)}; ${why}.`;
  }

  function longestSentence(values, model) {
    const { n, d, lam, service } = values;
    const longest = theory.largestQueue(model, n, DEEPEST);
    if (longest === null) {
      let text = `More than ${DEEPEST}`;
      if (theory.regime(values.beta, d) === "power law") {
        const above = (Math.log(n) + model.logTail(DEEPEST)) /
          theory.powerLawExponent(values.beta, d);
        text += `, and about ${shown(DEEPEST * Math.exp(above))} as the power law goes on`;
      }
      return `${text}.`;
    }
    const count = (k) => shownExp(Math.log(n) + model.logTail(k));
    let text = `${shown(longest)}: the largest k with n P_k >= 1. Of n queues, `;
    text += longest > 0 ? `${count(longest)} have at least so many jobs, and ` : "";
    text += `${count(longest + 1)} at least ${shown(longest + 1)}.`;
    if (service === "exponential" && d === 1) {
      const [low, high] = [0.05, 0.95].map((p) => theory.maxQuantileOneChoice(n, lam, p));
      text += ` The exact law puts the maximum between ${shown(low)} and ${shown(high)} ` +
        "nine times in ten.";
    }
    return text;
  }

  function meanSentence(model) {
    const mean = model.meanSojourn();
    if (mean === null) return "Not settled after 16384 levels: near an infinite mean.";
    return mean === Infinity ? "Infinite." : `${shown(mean)} mean service times.`;
  }

  function choicesSentence(found, most, what) {
    if (Number.isNaN(found)) return `Not to be told: a mean has not settled after 16384 levels.`;
    if (found === null) return `No d up to ${shown(most)} gives ${what}.`;
    const fewer = found > 1 ? `, d = ${shown(found - 1)} does not` : "";
    return `d = ${shown(found)} gives ${what}${fewer}.`;
  }

  function commandFor({ n, d, lam, beta, service }) {
    if (service !== "lomax") {
      const call = `simulate(Supermarket(${Math.min(n, 1e8)}, ${d}, ${lam}), 100, seed=1)`;
      return `.venv/bin/python -c "from supermarket import Supermarket, simulate; `
        + `print(${call}.profile)"`;
    }
    // From the equilibrium on: with a heavy tail an empty start is felt for very long.
    const model = `Supermarket(${Math.min(n, 1e5)}, ${d}, ${lam}, service=Lomax(${beta}))`;
    return `.venv/bin/python -c "from supermarket import Lomax, Schedule, Supermarket, simulate; `
      + `run = simulate(${model}, Schedule(20, warmup=0), start='equilibrium', seed=1); `
      + `print(run.profile)"`;
  }

  /** The levels to draw: all of them, or some where they are many. */
  function levels(model, n) {
    const floor = Math.log(Math.min(1e-6, 1e-3 / n));
    let most = DEEPEST;
    if (!model.cavity && model.d === 1) most = Math.ceil(floor / Math.log(model.lam));
    else for (let k = 1; k <= most; k++) if (model.logTail(k) < floor) most = k;
    if (most < 2) most = 2;
    const parts = Math.min(most, 400);
    const evenly = [...Array(parts + 1).keys()].map((i) => Math.round((i * most) / parts));
    const few = [...Array(17).keys()].filter((k) => k <= most);
    for (let k = 32; k <= most; k *= 2) few.push(k);
    const list = [...new Set(evenly.concat(few))].sort((a, b) => a - b);
    return { most, floor, list, few };
  }

  function draw(values, model, { most, floor, list }) {
    const { n, d, lam, beta } = values;
    const box = at("figure");
    const width = Math.max(280, Math.min(box.clientWidth || 640, 900));
    const height = Math.round(Math.min(420, width * 0.72));
    const [left, right, top, bottom] = [62, 14, 34, 48];
    const power = theory.regime(beta, d) === "power law" && most > 30;
    const first = power ? 1 : 0;
    const ks = list.filter((k) => k >= first);
    const x = power
      ? (k) => left + ((width - left - right) * Math.log(k)) / Math.log(most)
      : (k) => left + ((width - left - right) * k) / most;
    const y = (log) => top + ((height - top - bottom) * log) / floor;
    const curve = (points, style) => {
      const at = points.map(([k, log]) => `${x(k).toFixed(1)},${y(log).toFixed(1)}`);
      parts.push(`<polyline points="${at.join(" ")}" fill="none" ${style}/>`);
    };
    // Cut at the floor, on the straight line to the first point below it.
    const path = (system) => {
      const points = [];
      for (const k of ks) {
        const log = Math.max(system.logTail(k), -1e6);
        const last = points[points.length - 1];
        if (log >= floor) points.push([k, log]);
        else {
          if (last) {
            const part = (floor - last[1]) / (log - last[1]);
            points.push([
              power ? last[0] * (k / last[0]) ** part : last[0] + part * (k - last[0]), floor,
            ]);
          }
          break;
        }
      }
      return points;
    };
    const parts = [`<rect width="${width}" height="${height}" fill="#fff"/>`];
    const text = (px, py, content, extra = "") =>
      parts.push(`<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" ${extra}>${content}</text>`);
    const rule = (x1, y1, x2, y2, style) =>
      parts.push(`<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" ` +
        `x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" ${style}/>`);
    const theoremStyle = 'stroke="#000" stroke-width="2.2"';
    const oneStyle = 'stroke="#0072B2" stroke-width="1.8" stroke-dasharray="7 4"';
    const grid = 'stroke="#000" stroke-opacity="0.15"';
    const deepest = Math.floor(-floor / Math.LN10);
    const every = Math.ceil(deepest / 6);
    for (let e = 0; e <= deepest; e += every) {
      const py = y(-e * Math.LN10);
      rule(left, py, width - right, py, grid);
      const power10 = e ? `10<tspan dy="-5" font-size="9">−${e}</tspan>` : "1";
      text(left - 6, py + 4, power10, 'text-anchor="end"');
    }
    const ticks = [];
    if (power) for (let k = 1; k <= most; k *= most > 300 ? 4 : 2) ticks.push(k);
    else {
      const rough = most / Math.max(3, Math.min(8, width / 70));
      const unit = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
      const step = [1, 2, 5, 10].map((s) => s * unit).find((s) => s >= rough);
      for (let k = 0; k <= most; k += step) ticks.push(k);
    }
    for (const k of ticks) {
      rule(x(k), top, x(k), height - bottom, grid);
      text(x(k), height - bottom + 18, shown(k), 'text-anchor="middle"');
    }
    rule(left, height - bottom, width - right, height - bottom, 'stroke="#000"');
    rule(left, top, left, height - bottom, 'stroke="#000"');
    text((left + width - right) / 2, height - 8, "k, jobs in a queue", 'text-anchor="middle"');
    text(14, (top + height - bottom) / 2, "share with at least k",
      `text-anchor="middle" transform="rotate(-90 14 ${(top + height - bottom) / 2})"`);
    if (n > 1) {
      const py = y(-Math.log(n));
      const style = 'stroke="#D55E00" stroke-width="1.5" stroke-dasharray="2 4"';
      rule(left, py, width - right, py, style);
      text(width - right, py - 5, "1/n: one queue", 'text-anchor="end" fill="#A84300"');
    }
    if (d > 1) curve(path(theory.system(lam, 1, beta)), oneStyle);
    curve(path(model), theoremStyle);
    rule(left, 14, left + 26, 14, theoremStyle);
    text(left + 32, 18, `d = ${shown(d)}`);
    if (d > 1) {
      rule(left + 130, 14, left + 156, 14, oneStyle);
      text(left + 162, 18, "d = 1", 'fill="#005A8C"');
    }
    const last = shownExp(model.logTail(Math.min(most, DEEPEST)));
    const label = "Predicted share of queues with at least k jobs, on a logarithmic scale, for k " +
      `up to ${shown(most)}: it falls from 1 at k = 0 and ${lam} at k = 1 to ${last} at the end.`;
    box.innerHTML = `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${label}" ` +
      `viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      `font-size="12" fill="#000">${parts.join("")}</svg>`;
  }

  function tabulate(model, n, { few }) {
    at("rows").innerHTML = few.slice(1).map((k) => {
      const log = model.logTail(k);
      return `<tr><td>${shown(k)}</td><td>${shownShare(log)}</td>` +
        `<td>${log === -Infinity ? "" : shownExp(log + Math.log(n))}</td></tr>`;
    }).join("");
  }

  const RESULTS = ["profile", "k", "longest", "mean-result", "regime", "choices-share",
    "choices-mean", "command"];

  function update() {
    const values = read();
    const blank = ["n", "d", "lam", "beta"].some((name) => values[name] === undefined);
    const say = (id, sentence) => { at(id).textContent = sentence; };
    at("results").hidden = blank;
    if (blank) {
      for (const id of RESULTS) say(id, "");
      at("figure").textContent = "";
      at("rows").textContent = "";
      say("status", "No results: a field needs mending.");
      return;
    }
    const { n, d, lam, beta, service, jobs, share, mean } = values;
    const model = theory.system(lam, d, beta);
    const shares = levels(model, n);
    draw(values, model, shares);
    tabulate(model, n, shares);
    const most = service === "lomax" ? 30 : 1e9;
    say("profile", [1, 2, 3].map(
      (k) => `P_${k} = ${shownShare(model.logTail(k))}`).join(", ") + ".");
    say("k", kSentence(values));
    say("longest", longestSentence(values, model));
    say("mean-result", meanSentence(model));
    say("regime", regimeSentence(values, model));
    say("choices-share", jobs === undefined || share === undefined ? "" : choicesSentence(
      theory.choicesForShare(lam, beta, jobs, share, most), most,
      `a share of at most ${shown(share)} of the queues with ${jobs} jobs or more`));
    say("choices-mean", mean === undefined ? "" : choicesSentence(
      theory.choicesForMean(lam, beta, mean, most), most,
      `a mean time of at most ${shown(mean)}`));
    say("command", commandFor(values));
    const longest = theory.largestQueue(model, n, DEEPEST);
    const place = longest === null ? `above ${DEEPEST}` : `near ${shown(longest)}`;
    say("status", `Longest queue ${place}, mean time in the system: ${meanSentence(model)}`);
  }

  /** Work once the hand rests, so that a slider moves smoothly, and note the state. */
  function plan() {
    clearTimeout(planned);
    planned = setTimeout(() => {
      update();
      const state = new URLSearchParams(
        Object.keys(START).map((name) => [name, at(name).value.trim()]));
      history.replaceState(null, "", `#${state}`);
    }, 60);
  }

  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const [name, start] of Object.entries(START)) {
      const given = state.get(name);
      at(name).value = given === null ? start : given;
    }
    if (at("service").value === "") at("service").value = START.service;
    update();
  }

  function begin() {
    if (!at("form")) return;
    at("form").addEventListener("submit", (event) => event.preventDefault());
    at("form").addEventListener("input", (event) => {
      const name = event.target.id.replace("explorer-", "");
      spareFault = "";
      if (name === "spare") {
        const range = { low: 1e-12, high: 0.999 };
        const { value, fault } = parsed("1 - lam", event.target.value.trim(), range);
        spareFault = fault || "";
        at("lam").value = fault ? "" : String(round(1 - value));
      }
      if (name.endsWith("-slider")) {
        const field = name.replace("-slider", "");
        at(field).value = String(STOPS[field][event.target.value]);
      }
      plan();
    });
    window.addEventListener("hashchange", restore);
    new ResizeObserver(() => { if (!at("results").hidden) update(); }).observe(at("figure"));
    restore();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
