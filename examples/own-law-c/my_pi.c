/*
 * PI (Hollot, Misra, Towsley and Gong 2001) as a law of one's own, in C.
 *
 *   cc -O2 -ffp-contract=off -shared -fPIC -I "$(python -c 'import aqmlab; print(aqmlab.include())')" -o my_pi.so my_pi.c
 *   aqmlab compare web-pi.toml ./my_pi.so pi
 */
#include "aqmlab_law.h"
#include <stddef.h>

struct my_pi {
    double qref, a, b, w;       /* parameters: the engine writes them */
    double probability, before; /* what the law has learnt: zero at first */
    double error;               /* what it shows besides */
};

static int32_t prepare(void *state, const struct aqmlab_facts *facts)
{
    struct my_pi *pi = state;
    (void)facts;
    pi->error = pi->before - pi->qref;
    return 0;
}

static int32_t on_arrival(void *state, const struct aqmlab_facts *facts)
{
    const struct my_pi *pi = state;
    return facts->chance(facts, pi->probability) ? AQMLAB_SIGNAL : AQMLAB_PASS;
}

static int32_t tick(void *state, const struct aqmlab_facts *facts)
{
    struct my_pi *pi = state;
    double queue = (double)facts->backlog_packets;
    double p = pi->probability + (pi->a * (queue - pi->qref) - pi->b * (pi->before - pi->qref));
    pi->probability = p < 0 ? 0 : p > 1 ? 1 : p;
    pi->before = queue;
    pi->error = queue - pi->qref;
    return 0;
}

#define FIELD(name) offsetof(struct my_pi, name)

static const struct aqmlab_param params[] = {
    {"qref", "The queue to settle at.", "packets", AQMLAB_KIND_NUMBER, FIELD(qref), 50, 0, 1e9},
    {"a", "Gain on the queue now, per packet.", "", AQMLAB_KIND_NUMBER, FIELD(a), 1.822e-5, 0, 1},
    {"b", "Gain on the queue one period ago, per packet.", "", AQMLAB_KIND_NUMBER, FIELD(b), 1.816e-5, 0, 1},
    {"w", "How often the probability is computed.", "", AQMLAB_KIND_FREQUENCY, FIELD(w), 170, 0.1, 1e6},
};

static const struct aqmlab_gauge gauges[] = {
    {"probability", "Probability of a signal.", "", FIELD(probability), 0},
    {"error", "Distance of the queue from qref at the last tick.", "packets", FIELD(error), 0},
};

static const struct aqmlab_law law = {
    .version = AQMLAB_LAW_VERSION,
    .state_bytes = sizeof(struct my_pi),
    .name = "my_pi",
    .doc = "Controls the queue to a reference length by an integrating controller.",
    .source = "Hollot, Misra, Towsley and Gong 2001",
    .built_with = "C compiler " __VERSION__ ", -O2 -ffp-contract=off",
    .year = 2001,
    .marks = 1,
    .params = params,
    .params_count = sizeof params / sizeof *params,
    .gauges = gauges,
    .gauges_count = sizeof gauges / sizeof *gauges,
    .tick_param = 3, /* w */
    .prepare = prepare,
    .on_arrival = on_arrival,
    .tick = tick,
};

const struct aqmlab_law *aqmlab_law_table(void)
{
    return &law;
}
