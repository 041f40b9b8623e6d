/* The occupancy chain of the supermarket model, choices with replacement: yardsticks for
   supermarket/runs/counts/engines.py and replicas.py, with the same bookkeeping.

   s[i] = queues of length at least i, for i < levels; s[0] = n. `plain` and `table` make up to
   `events` steps in place and return how many: fewer if the top level is about to need more room.
   With the steps numbered from 1, moved[i] grows by (change of s[i]) * step for every change, and
   at_top[m] by the number of states left whose top level was m. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* NumPy's PCG64, so that a twin can be given the very uniforms of a numpy.random.Generator. */
typedef struct {
    unsigned __int128 state, increment;
} pcg64;

static inline unsigned __int128 wide(uint64_t high, uint64_t low) {
    return (unsigned __int128)high << 64 | low;
}

static inline uint64_t next_word(pcg64 *rng) {
    const unsigned __int128 multiplier = wide(2549297995355413924u, 4865540595714422341u);
    rng->state = rng->state * multiplier + rng->increment;
    const uint64_t high = (uint64_t)(rng->state >> 64), low = (uint64_t)rng->state;
    const uint64_t mixed = high ^ low;
    const unsigned turn = (unsigned)(high >> 58);
    return mixed >> turn | mixed << (-turn & 63);
}

static inline double next_uniform(pcg64 *rng) { return (double)(next_word(rng) >> 11) * 0x1p-53; }

/* words = {state, increment}, the high half of each first. */
static pcg64 load(const uint64_t words[4]) {
    return (pcg64){wide(words[0], words[1]), wide(words[2], words[3])};
}

static void store(const pcg64 *rng, uint64_t words[4]) {
    words[0] = (uint64_t)(rng->state >> 64);
    words[1] = (uint64_t)rng->state;
}

/* The plain way: a uniform an event, a scan of the levels, a `pow` for the one that changed. */
int64_t plain(uint64_t words[4], int64_t *s, int64_t levels, int64_t d, double lam, int64_t events,
              int64_t *moved, int64_t *at_top) {
    pcg64 rng = load(words);
    const double n = (double)s[0], choices = (double)d, arrival = lam / (1.0 + lam);
    double beta[levels]; /* (s[i] / n)**d */
    int64_t top = 0, since = 0, step;
    for (int64_t i = 0; i < levels; i++) {
        beta[i] = pow((double)s[i] / n, choices);
        if (s[i] > 0) top = i;
    }
    for (step = 1; step <= events; step++) {
        const double uniform = next_uniform(&rng);
        int64_t i = top;
        if (uniform < arrival) {
            const double w = uniform / arrival;
            while (beta[i] <= w && i > 0) i--; /* w may round to 1 */
            i++;
            s[i]++;
            moved[i] += step;
        } else {
            const double v = (uniform - arrival) / (1.0 - arrival) * n;
            while ((double)s[i] <= v) i--;
            if (i == 0) continue;
            s[i]--;
            moved[i] -= step;
        }
        beta[i] = pow((double)s[i] / n, choices);
        if (i > top || s[top] == 0) {
            at_top[top] += step - since;
            since = step;
            top += i > top ? 1 : -1;
            if (top == levels - 2) break;
        }
    }
    if (step > events) step = events;
    at_top[top] += step - since;
    store(&rng, words);
    return step;
}

/* The guide table: the functions of occupancy.py, one by one. */

static inline double all_among(int64_t s, double n, int64_t d) {
    if (d == 1) return (double)s / n;
    if (d == 2) return ((double)s / n) * ((double)s / n);
    const double others = n - (double)s;
    if (s <= 0 || (double)d / n * others > 800.0) return 0.0;
    return exp((double)d * log1p(-others / n));
}

/* Count i: its value when the table was made, and what was seen since. */
static inline int64_t now(int64_t i, const int64_t *s, const int64_t *seen) {
    return s[i] + (seen[2 * i] >> 40) - (seen[2 * i + 1] >> 40);
}

/* `only`: the level whose boundary alone has to be compared, or 0 for all. */
static int outcome(double uniform, int64_t only, const int64_t *s, const int64_t *seen, double n,
                   int64_t top, int64_t d, double arrival) {
    int64_t i = only > 0 ? only : top;
    const int64_t last = only > 0 ? only : 1;
    if (uniform < arrival) {
        while (i >= last && uniform >= arrival * all_among(now(i, s, seen), n, d)) i--;
        return (int)(2 * (i + 1));
    }
    const double v = (uniform - arrival) / (1.0 - arrival) * n;
    while (i >= last && (double)now(i, s, seen) <= v) i--;
    return i > 0 ? (int)(2 * i + 1) : 0;
}

static int choose_bands(const int64_t *s, double n, int64_t top, int64_t d, double arrival,
                        int64_t *low, int64_t *high) {
    double touched[top + 1], wandering = 1e-3, beta_below = 1.0;
    for (int64_t i = 1; i <= top; i++) {
        const double beta = all_among(s[i], n, d);
        touched[i] =
            arrival * (beta_below - beta) + (1.0 - arrival) * (double)(s[i] - s[i + 1]) / n;
        const double slope = arrival * (double)d * beta * n / (double)s[i] + 1.0 - arrival;
        wandering += sqrt(touched[i]) * slope;
        beta_below = beta;
    }
    const double rounds = fmin(fmax(pow(15.0 * n / wandering, 2.0 / 3.0), 16.0), 1e10);
    for (int64_t i = 1; i <= top; i++) {
        const int64_t half = (int64_t)(2.0 * sqrt(touched[i] * rounds)) + 1;
        low[i] = s[i] - half > 1 ? s[i] - half : 1;
        high[i] = (double)(s[i] + half) < n ? s[i] + half : (int64_t)n;
    }
    int width = 6;
    while (width < 14 && ldexp(1.0, 2 * width) < 400.0 * (double)(top + 1) * rounds) width++;
    return width;
}

static void make_table(int16_t *table, int bins, const int64_t *low, const int64_t *high, double n,
                       int64_t top, int64_t d, double arrival) {
    int filled = 0;
    for (int64_t j = 0; j < 2 * top + 1; j++) {
        int64_t i;
        double left, right;
        int event;
        if (j < top) {
            i = top - j;
            left = arrival * all_among(low[i], n, d);
            right = arrival * all_among(high[i], n, d);
            event = (int)(2 * (i + 1));
        } else if (j == top) {
            i = 0;
            left = right = arrival;
            event = 2;
        } else {
            i = 2 * top + 1 - j;
            left = arrival + (1.0 - arrival) * (double)low[i] / n;
            right = arrival + (1.0 - arrival) * (double)high[i] / n;
            event = (int)(2 * i + 1);
        }
        const int first = (int)fmax(left * bins - 1e-6, 0.0);
        const int last = (int)fmin(right * bins + 1e-6 + 1.0, bins);
        for (int k = first; k < filled; k++) table[k] = -1;
        while (filled < first) table[filled++] = (int16_t)event;
        while (filled < last) table[filled++] = (int16_t)(-1 - i);
    }
    while (filled < bins) table[filled++] = 0;
}

/* bits: room for events + 3 words of 16 bits. */
int64_t table(uint64_t words[4], int64_t *s, int64_t levels, int64_t d, double lam, int64_t events,
              int64_t *moved, int64_t *at_top, uint16_t *bits) {
    pcg64 rng = load(words);
    for (int64_t k = 0; k < events; k += 4) {
        uint64_t word = next_word(&rng);
        for (int j = 0; j < 4; j++, word >>= 16) bits[k + j] = (uint16_t)word;
    }
    const int64_t one = (int64_t)1 << 40;
    const double n = (double)s[0], arrival = lam / (1.0 + lam);
    int64_t low[levels], high[levels], seen[2 * levels], limit[2 * levels];
    int64_t top = levels - 1, since = 0, done = 0;
    int16_t meaning[1 << 14];
    while (s[top] == 0) top--;
    for (int64_t event = 0; event < 2 * levels; event++) seen[event] = 0;
    limit[0] = one << 22;
    while (done < events && top < levels - 2) {
        low[top + 1] = high[top + 1] = 0;
        const int width = choose_bands(s, n, top, d, arrival, low, high);
        const int shift = 16 - width, bins = 1 << width;
        make_table(meaning, bins, low, high, n, top, d, arrival);
        for (int64_t i = 1; i <= top + 1; i++) {
            limit[2 * i] = (high[i] - s[i] + 1) * one;
            limit[2 * i + 1] = (s[i] - low[i] + 1) * one;
        }
        while (done < events) {
            const int bin = bits[done++] >> shift;
            int64_t event = meaning[bin];
            if (event < 0) {
                const double uniform = (bin + next_uniform(&rng)) / bins;
                event = outcome(uniform, -1 - event, s, seen, n, top, d, arrival);
            }
            seen[event] += one + done;
            if (seen[event] >= limit[event]) {
                const int64_t i = event >> 1, count = now(i, s, seen);
                const int64_t left = event & 1 ? count - low[i] : high[i] - count;
                if (left < 0) break;
                limit[event] = ((seen[event] >> 40) + left + 1) * one;
            }
        }
        for (int64_t i = 1; i <= top + 1; i++) {
            s[i] = now(i, s, seen);
            moved[i] += (seen[2 * i] & (one - 1)) - (seen[2 * i + 1] & (one - 1));
            seen[2 * i] = seen[2 * i + 1] = 0;
        }
        if (s[top] == 0 || s[top + 1] > 0) {
            at_top[top] += done - since;
            since = done;
            top += s[top + 1] > 0 ? 1 : -1;
        }
    }
    at_top[top] += done - since;
    store(&rng, words);
    return done;
}

/* Replicas in lock step: the functions of replicas.py, one by one. */

enum { LANES = 64, BLOCK = 255, NOTHING = -32768 };

static inline uint64_t next_in_lane(uint64_t words[4][LANES], int lane) {
    const uint64_t a = words[0][lane], b = words[1][lane];
    const uint64_t c = words[2][lane] ^ a, d = words[3][lane] ^ b;
    const uint64_t total = a + words[3][lane];
    words[0][lane] = a ^ d;
    words[1][lane] = b ^ c;
    words[2][lane] = c ^ b << 17;
    words[3][lane] = d << 45 | d >> 19;
    return (total << 23 | total >> 41) + a;
}

static void draw(uint64_t words[4][LANES], const uint64_t *cuts, const int16_t *pairs,
                 int64_t width, int16_t events[][LANES]) {
    uint64_t drawn[BLOCK][LANES];
    for (int step = 0; step < BLOCK; step++)
        for (int lane = 0; lane < LANES; lane++) drawn[step][lane] = next_in_lane(words, lane);
    for (int step = 0; step < BLOCK; step++)
        for (int lane = 0; lane < LANES; lane++) {
            const uint64_t k = drawn[step][lane] >> (64 - width);
            events[step][lane] = pairs[2 * k + (drawn[step][lane] >= cuts[k])];
        }
}

typedef struct {
    int16_t count[LANES], moved[LANES], above[LANES];
} row;

static void make_steps(int16_t events[][LANES], int64_t steps, row *rows, int64_t levels) {
    int16_t rank[LANES], above[LANES] = {0}, target[LANES], change[LANES], weighted[LANES];
    for (int lane = 0; lane < LANES; lane++)
        rank[lane] = (int16_t)(events[0][lane] ^ events[0][lane] >> 15);
    for (int64_t i = 1; i < levels; i++)
        for (int lane = 0; lane < LANES; lane++) above[lane] += rows[i].count[lane] > rank[lane];
    for (int64_t step = 1; step <= steps; step++) {
        for (int lane = 0; lane < LANES; lane++) {
            const int16_t falls = events[step - 1][lane] >> 15;
            target[lane] = (int16_t)(above[lane] + 1 + falls);
            change[lane] = falls | 1;
            weighted[lane] = (int16_t)((falls | 1) * step);
            rank[lane] = (int16_t)(events[step][lane] ^ events[step][lane] >> 15);
            above[lane] = 0;
        }
        for (int64_t i = 1; i < levels; i++) {
            row *restrict here = rows + i;
            for (int lane = 0; lane < LANES; lane++) {
                const int16_t before = here->count[lane];
                const int16_t hit = (int16_t)-(target[lane] == (int16_t)i);
                const int16_t after = (int16_t)(before + (change[lane] & hit));
                here->count[lane] = after;
                here->moved[lane] += weighted[lane] & hit;
                here->above[lane] += before > 0;
                above[lane] += after > rank[lane];
            }
        }
    }
}

/* Go on from step `done` up to `last` and return where: sooner if there is need for more levels.
   counts, moved, above: (levels, LANES). */
int64_t replicas(uint64_t words[4][LANES], const uint64_t *cuts, const int16_t *pairs, int64_t width,
                 const int64_t *wanted, int64_t done, int64_t last, int64_t levels,
                 int16_t counts[][LANES], int64_t moved[][LANES], int64_t above[][LANES]) {
    int16_t events[BLOCK + 1][LANES];
    row rows[levels];
    while (done < last) {
        const int64_t steps = last - done < BLOCK ? last - done : BLOCK;
        uint64_t kept[4][LANES];
        memcpy(kept, words, sizeof kept);
        draw(words, cuts, pairs, width, events);
        for (int lane = 0; lane < LANES; lane++) {
            const int64_t left = wanted[lane] > done ? wanted[lane] - done : 0;
            for (int j = 0; left == 0 && j < 4; j++) words[j][lane] = kept[j][lane];
            for (int64_t step = left; step < BLOCK; step++) events[step][lane] = NOTHING;
            events[steps][lane] = NOTHING;
        }
        memset(rows, 0, sizeof rows);
        for (int64_t i = 0; i < levels; i++) memcpy(rows[i].count, counts[i], sizeof counts[i]);
        make_steps(events, steps, rows, levels);
        for (int lane = 0; lane < LANES; lane++)
            if (rows[levels - 1].count[lane] || rows[levels - 1].above[lane]) {
                memcpy(words, kept, sizeof kept);
                return done;
            }
        for (int lane = 0; lane < LANES; lane++) {
            const int64_t left = wanted[lane] > done ? wanted[lane] - done : 0;
            const int64_t made = left < steps ? left : steps;
            above[0][lane] += made;
            for (int64_t i = 1; i < levels; i++) {
                const int64_t count = rows[i].count[lane];
                moved[i][lane] += done * (count - counts[i][lane]) + rows[i].moved[lane];
                above[i][lane] += rows[i].above[lane] - (count > 0 ? steps - made : 0);
                counts[i][lane] = (int16_t)count;
            }
        }
        done += steps;
    }
    return done;
}
