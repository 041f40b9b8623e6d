/* The network of FIFO servers: a yardstick for supermarket/runs/jobs/network.py, with the same calendar,
   lists and bookkeeping, described there, in departures.py and in disciplines.py.

   `advance` makes the events up to `until`, or up to one after which something has run out, and
   returns whether there may be more to do; clock = {time of the last arrival}, and progress =
   {arrivals used of the given gaps and services, uniforms spent, events}. The choices are given, or,
   if there are none, made of the uniforms; with `shuffled`, by a shuffle of `order`. */

#include <math.h>
#include <stdint.h>

typedef struct {
    double time, end;
    int32_t length, behind, first, last;
} server;

enum { SOON = 16 }; /* arrivals and days ahead */

typedef struct {
    double mark, came;
    int32_t behind;
} job;

typedef struct {
    int64_t today, in_heap;
    double days_per_unit;
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
    const job *jobs;
} calendar;

static inline int64_t day_of(const calendar *c, double time) {
    const double day = time * c->state->days_per_unit;
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
            const int32_t second = c->days[today + SOON / 2 & c->mask];
            __builtin_prefetch(&c->servers[c->days[today + SOON & c->mask]], 1);
            if (second >= 0) __builtin_prefetch(&c->servers[c->servers[second].behind], 1);
            for (int32_t i = c->days[today + SOON / 4 & c->mask]; i >= 0; i = c->servers[i].behind)
                __builtin_prefetch(&c->jobs[c->servers[i].first], 1);
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

static inline int32_t shortest(const server *servers, int64_t n, int64_t d, const double *uniforms,
                               int64_t *spent, int shuffled, int64_t *order) {
    int64_t joined = -1;
    for (int64_t j = 0; j < d; j++) {
        int64_t q;
        if (shuffled) {
            const int64_t other = j + (int64_t)(uniforms[*spent] * (double)(n - j));
            q = order[other];
            order[other] = order[j];
            order[j] = q;
        } else {
            q = (int64_t)(uniforms[*spent] * (double)n);
        }
        ++*spent;
        if (joined < 0 || servers[q].length < servers[joined].length) {
            joined = q;
            if (servers[q].length == 0) break;
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

int advance(int64_t n, server *servers, job *jobs, int64_t dates, int32_t *days, int32_t *heap,
            desk *state, int64_t room, level *levels, int64_t *sojourns, double *sojourn_sum,
            int64_t d, int64_t ahead, const int32_t *choices, int64_t drawn, const double *uniforms,
            int shuffled, int64_t *order, int64_t given, const double *gaps, const double *services,
            double until, double per_mean, double *clock, int64_t progress[3]) {
    calendar c = {servers, days, heap, dates - 1, state, jobs};
    int64_t used = progress[0], spent = progress[1], events = 0;
    double came = *clock, arrival = came + gaps[used];
    int more = 0;
    for (;;) {
        int32_t q = first_by(&c, arrival < until ? arrival : until);
        if (q >= 0) {
            const double now = servers[q].time;
            remove_first(&c);
            count(&levels[servers[q].length], -1, now);
            if (--servers[q].length > 0) {
                const int32_t first = servers[q].first;
                servers[q].first = jobs[first].behind;
                jobs[first].behind = (int32_t)state->spare;
                state->spare = first;
                schedule(&c, q, jobs[first].mark);
            }
        } else if (arrival <= until) {
            came = arrival;
            if (ahead > 0) {
                q = choices[used];
                for (int64_t j = 1; j < d; j++) {
                    const int32_t other = choices[j * ahead + used];
                    if (servers[other].length < servers[q].length) q = other;
                }
                for (int64_t j = 0; j < d; j++)
                    __builtin_prefetch(&servers[choices[j * ahead + used + SOON]], 1);
            } else {
                q = shortest(servers, n, d, uniforms, &spent, shuffled, order);
            }
            const double service = services[used++];
            double sojourn = service;
            if (servers[q].length++ == 0) {
                servers[q].end = came + service;
                schedule(&c, q, came + service);
            } else {
                const double end = servers[q].end;
                const int32_t place = (int32_t)state->spare;
                state->spare = jobs[place].behind;
                jobs[place].behind = -1;
                jobs[place].mark = servers[q].end = end + service;
                if (servers[q].first < 0)
                    servers[q].first = place;
                else
                    jobs[servers[q].last].behind = place;
                servers[q].last = place;
                sojourn = end - came + service;
            }
            count(&levels[servers[q].length], 1, came);
            *sojourn_sum += sojourn;
            sojourns[step(sojourn * per_mean)]++;
        } else {
            break;
        }
        events++;
        if (used == given || state->spare < 0 || levels[room - 2].count > 0 ||
            (ahead == 0 && drawn - spent < d)) {
            more = 1;
            break;
        }
        arrival = came + gaps[used];
    }
    *clock = came;
    progress[0] = used;
    progress[1] = spent;
    progress[2] = events;
    return more;
}
