"""Drop-tail, written outside: the same runs as `pfifo`. The least that a discipline is."""

from collections import deque

import aqmlab


@aqmlab.discipline(marks=False)
class MyFifo:
    """First in, first out; what finds a full queue is lost."""

    def __init__(self):
        self.waiting = deque()

    def offer(self, packet, queue):
        if queue.is_full:
            queue.drop(packet, aqmlab.TAIL)
        else:
            self.waiting.append(packet)

    def take(self, queue):
        return self.waiting.popleft() if self.waiting else None
