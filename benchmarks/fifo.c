/* The network of FIFO servers: a yardstick for supermarket/chains/fifo.py, with the same calendar,
   lists and bookkeeping, described there, in departures.py and in disciplines.py.

   `advance` makes the events up to `until`, or up to one after which something has run out, and
   returns whether there may be more to do; clock = {time of the last arrival}, and progress =
   {arrivals used of the given gaps and services, events}. Distinct servers are drawn by rejection;
   with `shuffled`, by a shuffle of `order`. */

#include <math.h>
#include <stdint.h>

/* NumPy's PCG64, so that the twin can be given the very uniforms of a numpy.random.Generator. */
typedef struct {
    unsigned __int128 state, increment;
} pcg64;

static inline unsigned __int128 wide(uint64_t high, uint64_t low) {
    return (unsigned __int128)high << 64 | low;
}

static inline double next_uniform(pcg64 *rng) {
    const unsigned __int128 multiplier = wide(2549297995355413924u, 4865540595714422341u);
    rng->state = rng->state * multiplier + rng->increment;
    const uint64_t high = (uint64_t)(rng->state >> 64), low = (uint64_t)rng->state;
    const uint64_t mixed = high ^ low;
    const unsigned turn = (unsigned)(high >> 58);
    return (double)((mixed >> turn | mixed << (-turn & 63)) >> 11) * 0x1p-53;
}

typedef struct {
    double time;
    int32_t behind, first, last;
} server;

typedef struct {
    double mark, came;
    int32_t behind;
} job;

typedef struct {
    int64_t today, in_heap;
    double days_a_unit;
    int64_t spare;
} desk;

typedef struct {
    int64_t count;
    double since, area, squares, present;
} level;

typedef struct {
    server *servers;
    int32_t *days, *heap;
    int64_t mask;
    desk *state;
} calendar;

static inline int64_t day_of(const calendar *c, double time) {
    const double day = time * c->state->days_a_unit;
    return day < 0x1p62 ? (int64_t)day : (int64_t)1 << 62;
}

static inline void rise(calendar *c, int32_t q, int64_t i) {
    const double time = c->servers[q].time;
    while (i > 0 && time < c->servers[c->heap[(i - 1) / 2]].time) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->heap[i] = q;
}

static inline void enter(calendar *c, int32_t q, int64_t day) {
    c->servers[q].behind = c->days[day & c->mask];
    c->days[day & c->mask] = q;
}

static inline void schedule(calendar *c, int32_t q, double time) {
    c->servers[q].time = time;
    const int64_t day = day_of(c, time);
    if (day <= c->state->today)
        rise(c, q, c->state->in_heap++);
    else
        enter(c, q, day);
}

static inline int32_t first_by(calendar *c, double time) {
    desk *state = c->state;
    if (state->in_heap == 0) {
        const int64_t last = day_of(c, time);
        while (state->in_heap == 0 && state->today < last) {
            const int64_t today = ++state->today;
            int32_t q = c->days[today & c->mask];
            c->days[today & c->mask] = -1;
            while (q >= 0) {
                const int32_t behind = c->servers[q].behind;
                const int64_t day = day_of(c, c->servers[q].time);
                if (day == today)
                    rise(c, q, state->in_heap++);
                else
                    enter(c, q, day);
                q = behind;
            }
        }
    }
    return state->in_heap > 0 && c->servers[c->heap[0]].time <= time ? c->heap[0] : -1;
}

static inline void remove_first(calendar *c) {
    const int64_t size = --c->state->in_heap;
    if (size == 0) return;
    const int32_t moved = c->heap[size];
    int64_t i = 0;
    while (2 * i + 1 < size) {
        int64_t child = 2 * i + 1;
        if (child + 1 < size &&
            c->servers[c->heap[child + 1]].time < c->servers[c->heap[child]].time)
            child++;
        if (c->servers[moved].time <= c->servers[c->heap[child]].time) break;
        c->heap[i] = c->heap[child];
        i = child;
    }
    rise(c, moved, i);
}

static inline int32_t shortest(pcg64 *rng, const int32_t *length, int64_t n, int64_t d,
                               int shuffled, int64_t *order, int distinct, int64_t *chosen) {
    int64_t joined = -1;
    for (int64_t j = 0; j < d; j++) {
        int64_t q;
        if (shuffled) {
            const int64_t other = j + (int64_t)(next_uniform(rng) * (double)(n - j));
            q = order[other];
            order[other] = order[j];
            order[j] = q;
        } else {
            int again;
            do {
                q = (int64_t)(next_uniform(rng) * (double)n);
                again = 0;
                if (distinct)
                    for (int64_t i = 0; i < j; i++) again |= chosen[i] == q;
            } while (again);
            if (distinct) chosen[j] = q;
        }
        if (joined < 0 || length[q] < length[joined]) {
            joined = q;
            if (length[q] == 0) break;
        }
    }
    return (int32_t)joined;
}

static inline void count(level *one, int64_t change, double now) {
    if (one->count > 0) {
        const double held = now - one->since, number = (double)one->count;
        one->area += number * held;
        one->squares += number * (number * held);
        one->present += held;
    }
    one->since = now;
    one->count += change;
}

static inline int64_t step(double sojourn) {
    int exponent;
    const double mantissa = frexp(sojourn, &exponent);
    const int64_t found = 8 * (exponent - 1 + 12) + (int64_t)((2 * mantissa - 1) * 8);
    return found < 0 ? 0 : found > 511 ? 511 : found;
}

int advance(uint64_t words[4], int64_t n, int32_t *length, server *servers, job *jobs,
            int64_t dates, int32_t *days, int32_t *heap, desk *state, int64_t room, level *levels,
            int64_t *sojourns, double *sojourn_sum, int64_t d, int shuffled, int64_t *order,
            int distinct, int64_t *chosen, int64_t given, const double *gaps,
            const double *services, double until, double a_mean, double *clock,
            int64_t progress[2]) {
    pcg64 rng = {wide(words[0], words[1]), wide(words[2], words[3])};
    calendar c = {servers, days, heap, dates - 1, state};
    int64_t used = progress[0], events = 0;
    double came = *clock, arrival = came + gaps[used];
    int more = 0;
    for (;;) {
        int32_t q = first_by(&c, arrival < until ? arrival : until);
        if (q >= 0) {
            const double now = servers[q].time;
            remove_first(&c);
            count(&levels[length[q]], -1, now);
            if (--length[q] > 0) {
                const int32_t first = servers[q].first;
                servers[q].first = jobs[first].behind;
                jobs[first].behind = (int32_t)state->spare;
                state->spare = first;
                schedule(&c, q, jobs[first].mark);
            }
        } else if (arrival <= until) {
            came = arrival;
            q = shortest(&rng, length, n, d, shuffled, order, distinct, chosen);
            const double service = services[used++];
            double sojourn = service;
            if (length[q]++ == 0) {
                schedule(&c, q, came + service);
            } else {
                const double end =
                    length[q] == 2 ? servers[q].time : jobs[servers[q].last].mark;
                const int32_t place = (int32_t)state->spare;
                state->spare = jobs[place].behind;
                jobs[place].behind = -1;
                jobs[place].mark = end + service;
                if (servers[q].first < 0)
                    servers[q].first = place;
                else
                    jobs[servers[q].last].behind = place;
                servers[q].last = place;
                sojourn = end - came + service;
            }
            count(&levels[length[q]], 1, came);
            *sojourn_sum += sojourn;
            sojourns[step(sojourn * a_mean)]++;
        } else {
            break;
        }
        events++;
        if (used == given || state->spare < 0 || levels[room - 2].count > 0) {
            more = 1;
            break;
        }
        arrival = came + gaps[used];
    }
    words[0] = (uint64_t)(rng.state >> 64);
    words[1] = (uint64_t)rng.state;
    *clock = came;
    progress[0] = used;
    progress[1] = events;
    return more;
}
