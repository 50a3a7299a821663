/* Drop-tail as a discipline that holds packets: the same runs as pfifo has with a limit of up to 1024 packets. */

#include "aqmlab_law.h"

struct ring {
    int64_t first, count, handles[1024];
};

static int64_t offer(void *state, const struct aqmlab_queue *queue) {
    struct ring *ring = state;
    if (queue->is_full || ring->count == 1024) {
        return queue->drop(queue, queue->handle, AQMLAB_TAIL);
    }
    ring->handles[(ring->first + ring->count++) % 1024] = queue->handle;
    return 0;
}

static int64_t take(void *state, const struct aqmlab_queue *queue) {
    struct ring *ring = state;
    (void)queue;
    if (ring->count == 0) {
        return 0;
    }
    int64_t handle = ring->handles[ring->first];
    ring->first = (ring->first + 1) % 1024;
    ring->count--;
    return handle;
}

static const struct aqmlab_discipline my_fifo = {
    .law = {
        .version = AQMLAB_LAW_VERSION,
        .state_bytes = sizeof(struct ring),
        .name = "my_fifo_in_c",
        .doc = "First in, first out; what finds a full queue is lost.",
        .tick_param = -1,
    },
    .offer = offer,
    .take = take,
};

const struct aqmlab_discipline *aqmlab_discipline_table(void) {
    return &my_fifo;
}
