/*
 * PIE (RFC 8033) as a law of one's own, in C, in the shape of a queue discipline of the Linux kernel: private data, and
 * functions init, change, enqueue, dequeue, a timer, reset and dump. Only the lines below "the two sides" know aqmlab.
 *
 *   cc -O2 -ffp-contract=off -shared -fPIC -I "$(python -c 'import aqmlab; print(aqmlab.include())')" -o my_pie.so my_pie.c
 *   aqmlab compare web-pi.toml ./my_pie.so pie
 *
 * What differs from a discipline of the kernel: the queue is the engine's, so that enqueue and dequeue decide and hold
 * nothing; probabilities are floating-point numbers; and random numbers come from the facts.
 */
#include "aqmlab_law.h"
#include <stdbool.h>
#include <stddef.h>

/* What tc would set. The engine writes it. */
struct pie_params {
    int64_t target, tupdate; /* nanoseconds */
    double alpha, beta;      /* hertz */
    int64_t max_burst;       /* nanoseconds */
    double ecn_prob;
    int64_t mean_packet; /* bytes */
};

struct pie_vars {
    double prob;
    double qdelay, qdelay_old; /* seconds */
    int64_t burst_time;        /* nanoseconds */
    int64_t begun;
};

/* What tc -s would show. The engine reads it. */
struct pie_xstats {
    double prob, delay_old;
};

struct pie_sched_data {
    struct pie_params params;
    struct pie_vars vars;
    struct pie_xstats xstats;
};

static void pie_init(struct pie_sched_data *q)
{
    q->vars.burst_time = q->params.max_burst;
}

/* The parameters are new, or have changed while the queue works. */
static void pie_change(struct pie_sched_data *q)
{
    if (!q->vars.begun)
        pie_init(q);
    q->vars.begun = 1;
}

static bool is_short(const struct pie_sched_data *q, double delay)
{
    return delay < (double)q->params.target * 1e-9 / 2.0;
}

static bool drop_early(const struct pie_sched_data *q, const struct aqmlab_facts *sch)
{
    if (q->vars.burst_time > 0)
        return false;
    if (is_short(q, q->vars.qdelay_old) && q->vars.prob < 0.2)
        return false;
    if (sch->backlog_bytes <= 2 * q->params.mean_packet)
        return false;
    return sch->chance(sch, q->vars.prob);
}

static int32_t pie_qdisc_enqueue(struct pie_sched_data *q, const struct aqmlab_facts *sch)
{
    if (!drop_early(q, sch))
        return AQMLAB_PASS;
    if (sch->may_mark && q->vars.prob < q->params.ecn_prob)
        return AQMLAB_MARK;
    return AQMLAB_DROP + (sch->may_mark ? AQMLAB_OVERLOAD : AQMLAB_EARLY);
}

static int32_t pie_qdisc_dequeue(struct pie_sched_data *q, const struct aqmlab_facts *sch)
{
    q->vars.qdelay = sch->backlog_packets > 0 ? (double)sch->sojourn_ns * 1e-9 : 0.0;
    return AQMLAB_PASS;
}

/* A light probability moves in small steps (RFC 8033, section 4.2). */
static double divisor(double prob)
{
    static const struct { double below, by; } steps[] = {
        {1e-6, 2048}, {1e-5, 512}, {1e-4, 128}, {1e-3, 32}, {1e-2, 8}, {0.1, 2},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (prob < steps[i].below)
            return steps[i].by;
    return 1.0;
}

static void pie_timer(struct pie_sched_data *q)
{
    const struct pie_params *params = &q->params;
    struct pie_vars *vars = &q->vars;
    double target = (double)params->target * 1e-9, now = vars->qdelay, old = vars->qdelay_old;
    double delta = (params->alpha * (now - target) + params->beta * (now - old)) / divisor(vars->prob);

    if (vars->prob >= 0.1 && delta > 0.02)
        delta = 0.02;
    vars->prob += delta;
    if (vars->prob < 0)
        vars->prob = 0;
    if (vars->prob > 1)
        vars->prob = 1;
    if (now == 0.0 && old == 0.0)
        vars->prob *= 0.98;
    vars->qdelay_old = now;
    vars->burst_time = vars->burst_time > params->tupdate ? vars->burst_time - params->tupdate : 0;
    if (vars->prob == 0.0 && is_short(q, now) && is_short(q, old))
        vars->burst_time = params->max_burst;
}

static void pie_dump_stats(struct pie_sched_data *q)
{
    q->xstats = (struct pie_xstats){.prob = q->vars.prob, .delay_old = q->vars.qdelay_old};
}

/* The two sides: the calls of aqmlab, and the functions above. */

static int32_t prepare(void *state, const struct aqmlab_facts *facts)
{
    (void)facts;
    pie_change(state);
    return 0;
}

static int32_t on_arrival(void *state, const struct aqmlab_facts *facts)
{
    return pie_qdisc_enqueue(state, facts);
}

static int32_t on_departure(void *state, const struct aqmlab_facts *facts)
{
    return pie_qdisc_dequeue(state, facts);
}

static int32_t tick(void *state, const struct aqmlab_facts *facts)
{
    (void)facts;
    pie_timer(state);
    pie_dump_stats(state);
    return 0;
}

#define PARAM(name) offsetof(struct pie_sched_data, params.name)
#define STAT(name) offsetof(struct pie_sched_data, xstats.name)
#define HOUR 3.6e12

static const struct aqmlab_param params[] = {
    {"target", "The waiting time to settle at.", "", AQMLAB_KIND_TIME, PARAM(target), 15e6, 0, HOUR},
    {"tupdate", "How often the probability is computed.", "", AQMLAB_KIND_TIME, PARAM(tupdate), 15e6, 1e3, HOUR},
    {"alpha", "Gain on the distance of the waiting time from its target.", "Hz", AQMLAB_KIND_NUMBER, PARAM(alpha),
     0.125, 0, 1e6},
    {"beta", "Gain on the change of the waiting time.", "Hz", AQMLAB_KIND_NUMBER, PARAM(beta), 1.25, 0, 1e6},
    {"max_burst", "How long nothing is signalled when congestion begins.", "", AQMLAB_KIND_TIME, PARAM(max_burst),
     150e6, 0, HOUR},
    {"ecn_prob", "Probability from which on packets are dropped that could be marked.", "", AQMLAB_KIND_NUMBER,
     PARAM(ecn_prob), 0.1, 0, 1},
    {"mean_packet", "Nothing is signalled while two such packets wait or less.", "", AQMLAB_KIND_SIZE,
     PARAM(mean_packet), 1500, 0, 65535},
};

static const struct aqmlab_gauge gauges[] = {
    {"probability", "Probability of a signal.", "", STAT(prob), 0},
    {"delay_old", "Waiting time at the last step.", "s", STAT(delay_old), 0},
};

static const struct aqmlab_law law = {
    .version = AQMLAB_LAW_VERSION,
    .state_bytes = sizeof(struct pie_sched_data),
    .name = "my_pie",
    .doc = "Controls the waiting time to a target by an integrating controller whose steps grow with its output.",
    .source = "RFC 8033",
    .built_with = "C compiler " __VERSION__ ", -O2 -ffp-contract=off",
    .year = 2017,
    .marks = 1,
    .params = params,
    .params_count = sizeof params / sizeof *params,
    .gauges = gauges,
    .gauges_count = sizeof gauges / sizeof *gauges,
    .tick_param = 1, /* tupdate */
    .prepare = prepare,
    .on_arrival = on_arrival,
    .on_departure = on_departure,
    .tick = tick,
};

const struct aqmlab_law *aqmlab_law_table(void)
{
    return &law;
}
