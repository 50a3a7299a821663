/*
 * CoDel (RFC 8289) as a law of one's own, in C.
 *
 *   cc -O2 -ffp-contract=off -shared -fPIC -I "$(python -c 'import aqmlab; print(aqmlab.include())')" -o my_codel.so my_codel.c -lm
 *   aqmlab compare web-pi.toml ./my_codel.so codel
 */
#include "aqmlab_law.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* What the packet before was, if it was lost at this same instant. */
enum lost { NOTHING, FIRST, FURTHER };

struct my_codel {
    int64_t target, interval, mtu; /* parameters: the engine writes them */
    int64_t first_above, drop_next, count, last_count, lost;
    bool begun, is_above, has_next, dropping;
    double root, signals;
};

static int64_t after(const struct my_codel *codel, int64_t time_ns)
{
    return time_ns + (int64_t)((double)codel->interval * codel->root + 0.5);
}

static void set_count(struct my_codel *codel, int64_t count)
{
    codel->count = count;
    codel->root = 1.0 / sqrt((double)count);
}

static bool is_standing(struct my_codel *codel, const struct aqmlab_facts *facts)
{
    if (facts->sojourn_ns < codel->target || facts->backlog_bytes <= codel->mtu) {
        codel->is_above = false;
        return false;
    }
    if (!codel->is_above) {
        codel->is_above = true;
        codel->first_above = facts->now_ns + codel->interval;
        return false;
    }
    return facts->now_ns >= codel->first_above;
}

static void begin(struct my_codel *codel, int64_t now_ns)
{
    int64_t delta = codel->count - codel->last_count;
    bool is_recent = codel->has_next && now_ns - codel->drop_next < 16 * codel->interval;
    codel->dropping = true;
    set_count(codel, delta > 1 && is_recent ? delta : 1);
    codel->last_count = codel->count;
    codel->drop_next = after(codel, now_ns);
    codel->has_next = true;
}

static int32_t decide(struct my_codel *codel, const struct aqmlab_facts *facts)
{
    bool stands = is_standing(codel, facts);
    int64_t was = codel->lost;
    codel->lost = NOTHING;
    if (was == FIRST)
        return AQMLAB_PASS;
    if (was == FURTHER && stands)
        codel->drop_next = after(codel, codel->drop_next);
    if (!stands) {
        codel->dropping = false;
        return AQMLAB_PASS;
    }
    if (codel->dropping && facts->now_ns < codel->drop_next)
        return AQMLAB_PASS;
    if (codel->dropping) {
        set_count(codel, codel->count + 1);
        if (facts->may_mark)
            codel->drop_next = after(codel, codel->drop_next);
        else
            codel->lost = FURTHER;
    } else {
        begin(codel, facts->now_ns);
        if (!facts->may_mark)
            codel->lost = FIRST;
    }
    return AQMLAB_SIGNAL;
}

static void show(struct my_codel *codel)
{
    codel->signals = codel->dropping ? (double)codel->count : 0.0;
}

static int32_t prepare(void *state, const struct aqmlab_facts *facts)
{
    struct my_codel *codel = state;
    (void)facts;
    if (!codel->begun)
        codel->root = 1.0;
    codel->begun = true;
    return 0;
}

static int32_t on_departure(void *state, const struct aqmlab_facts *facts)
{
    int32_t verdict = decide(state, facts);
    show(state);
    return verdict;
}

static int32_t on_idle(void *state, const struct aqmlab_facts *facts)
{
    struct my_codel *codel = state;
    (void)facts;
    if (codel->lost != FIRST)
        codel->dropping = false;
    codel->lost = NOTHING;
    codel->is_above = false;
    show(codel);
    return 0;
}

#define FIELD(name) offsetof(struct my_codel, name)
#define HOUR 3.6e12

static const struct aqmlab_param params[] = {
    {"target", "Waiting time that may stand.", "", AQMLAB_KIND_TIME, FIELD(target), 5e6, 0, HOUR},
    {"interval", "How long the target must be exceeded before the first signal.", "", AQMLAB_KIND_TIME,
     FIELD(interval), 100e6, 0, HOUR},
    {"mtu", "A queue of at most so many bytes is never signalled.", "", AQMLAB_KIND_SIZE, FIELD(mtu), 1500, 0, 65535},
};

static const struct aqmlab_gauge gauges[] = {
    {"signals", "Signals in this dropping state; 0 outside of one.", "", FIELD(signals), 0},
};

static const struct aqmlab_law law = {
    .version = AQMLAB_LAW_VERSION,
    .state_bytes = sizeof(struct my_codel),
    .name = "my_codel",
    .doc = "Signals packets at the head of a queue whose waiting time stays above a target, at a rising rate.",
    .source = "RFC 8289",
    .built_with = "C compiler " __VERSION__ ", -O2 -ffp-contract=off",
    .year = 2018,
    .marks = 1,
    .params = params,
    .params_count = sizeof params / sizeof *params,
    .gauges = gauges,
    .gauges_count = sizeof gauges / sizeof *gauges,
    .tick_param = -1,
    .prepare = prepare,
    .on_departure = on_departure,
    .on_idle = on_idle,
};

const struct aqmlab_law *aqmlab_law_table(void)
{
    return &law;
}
