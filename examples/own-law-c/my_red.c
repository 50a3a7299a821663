/*
 * RED as ns-2 has it (Floyd and Jacobson 1993) as a law of one's own, in C.
 *
 *   cc -O2 -ffp-contract=off -shared -fPIC -I "$(python -c 'import aqmlab; print(aqmlab.include())')" -o my_red.so my_red.c -lm
 *   aqmlab compare web-pi.toml ./my_red.so "red dialect ns2"
 */
#include "aqmlab_law.h"
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

struct my_red {
    double low, high, max_p, wq; /* parameters: the engine writes them */
    int64_t mean_packet;
    double average, probability, slot, slope;
    int64_t inside; /* packets since the last signal, or since the average is above `low` */
    int64_t idle_since, spell;
    bool is_inside, is_busy;
};

/* The average after so many slots of idle: each leaves `keep` of it. */
static double decayed(double value, double keep, int64_t slots)
{
    double result = 1.0, square = keep;
    for (; slots > 0; slots /= 2) {
        if (slots % 2 == 1)
            result *= square;
        square *= square;
    }
    return value * result;
}

static int32_t prepare(void *state, const struct aqmlab_facts *facts)
{
    struct my_red *red = state;
    double nanoseconds;
    red->slot = 1.0 / (facts->rate_bps / (8.0 * (double)red->mean_packet));
    nanoseconds = floor(red->slot * 1e9);
    red->spell = (nanoseconds > 1 ? (int64_t)nanoseconds : 1) - 1;
    red->slope = red->max_p / (red->high - red->low);
    return 0;
}

static void observe(struct my_red *red, const struct aqmlab_facts *facts)
{
    int64_t begun = facts->now_ns > red->spell ? facts->now_ns - red->spell : 0;
    if (!red->is_busy && red->idle_since <= begun) {
        double idle = (double)(facts->now_ns - red->idle_since) * 1e-9;
        if (idle > 0.0 && red->average != 0.0)
            red->average = decayed(red->average, 1.0 - red->wq, (int64_t)(idle / red->slot * (1.0 + 1e-12)));
        if (red->average < DBL_MIN && red->low > 0.0) /* as good as 0, and processors are slow with such numbers */
            red->average = 0.0;
    }
    red->is_busy = true;
    red->average += red->wq * ((double)facts->backlog_packets - red->average);
    red->probability = red->average < red->low    ? 0.0
                       : red->average < red->high ? red->slope * (red->average - red->low)
                                                  : 1.0;
}

static bool is_outside(const struct my_red *red, const struct aqmlab_facts *facts)
{
    return red->average < red->low || facts->backlog_packets <= 1;
}

static void count_from(struct my_red *red, bool is_inside, int64_t count)
{
    red->is_inside = is_inside;
    red->inside = count;
}

static int32_t on_arrival(void *state, const struct aqmlab_facts *facts)
{
    struct my_red *red = state;
    double spent, room;
    observe(red, facts);
    if (is_outside(red, facts)) {
        count_from(red, false, 0);
        return AQMLAB_PASS;
    }
    if (!red->is_inside) {
        count_from(red, true, 1);
        return AQMLAB_PASS;
    }
    red->inside++;
    spent = (double)red->inside * red->probability;
    if (spent < 1.0)
        return AQMLAB_PASS;
    room = 2.0 - spent;
    if (red->probability < room && facts->uniform(facts) * room >= red->probability)
        return AQMLAB_PASS;
    red->inside = 0;
    if (red->average >= red->high)
        return AQMLAB_DROP + (facts->may_mark ? AQMLAB_OVERLOAD : AQMLAB_FORCED);
    return AQMLAB_SIGNAL;
}

static int32_t on_overflow(void *state, const struct aqmlab_facts *facts)
{
    struct my_red *red = state;
    observe(red, facts);
    count_from(red, !is_outside(red, facts), 0);
    return 0;
}

static int32_t on_idle(void *state, const struct aqmlab_facts *facts)
{
    struct my_red *red = state;
    if (red->is_busy)
        red->idle_since = facts->now_ns;
    red->is_busy = false;
    return 0;
}

#define FIELD(name) offsetof(struct my_red, name)

static const struct aqmlab_param params[] = {
    {"low", "Below this average nothing is signalled.", "packets", AQMLAB_KIND_NUMBER, FIELD(low), 5, 0, 1e9},
    {"high", "From this average on everything is lost.", "packets", AQMLAB_KIND_NUMBER, FIELD(high), 15, 0, 1e9},
    {"max_p", "Probability at the upper threshold.", "", AQMLAB_KIND_NUMBER, FIELD(max_p), 0.02, 0, 1},
    {"wq", "Weight of a packet's queue in the average.", "", AQMLAB_KIND_NUMBER, FIELD(wq), 0.002, 0, 1},
    {"mean_packet", "What the average decays by, one a slot of the idle link.", "", AQMLAB_KIND_SIZE,
     FIELD(mean_packet), 500, 1, 65535},
};

static const struct aqmlab_gauge gauges[] = {
    {"probability", "Probability of a signal.", "", FIELD(probability), 0},
    {"average", "The average queue.", "packets", FIELD(average), 0},
};

static const struct aqmlab_law law = {
    .version = AQMLAB_LAW_VERSION,
    .state_bytes = sizeof(struct my_red),
    .name = "my_red",
    .doc = "Signals arriving packets with a probability that rises with a slow average of the queue.",
    .source = "Floyd and Jacobson 1993",
    .built_with = "C compiler " __VERSION__ ", -O2 -ffp-contract=off",
    .year = 1993,
    .marks = 1,
    .params = params,
    .params_count = sizeof params / sizeof *params,
    .gauges = gauges,
    .gauges_count = sizeof gauges / sizeof *gauges,
    .tick_param = -1,
    .prepare = prepare,
    .on_arrival = on_arrival,
    .on_overflow = on_overflow,
    .on_idle = on_idle,
};

const struct aqmlab_law *aqmlab_law_table(void)
{
    return &law;
}
