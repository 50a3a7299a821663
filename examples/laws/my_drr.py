"""Deficit round robin, written outside: the same runs as `drr` has with so many queues that no two flows share one.

Source: Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", 1996.
"""

from collections import deque

import aqmlab


@aqmlab.discipline(marks=False, gauges={"flows": "Queues of flows that hold packets."})
class MyDrr:
    """Flows take turns by bytes, and the longest queue loses its oldest packet when all is full."""

    quantum = aqmlab.parameter("1514b", "Bytes that a turn adds to what a flow may send.", low="1b")
    flows = 0

    def __init__(self):
        self.queues = {}  # by flow, in the order of turns
        self.deficits = {}
        self.has_quantum = False

    def offer(self, packet, queue):
        if packet.flow not in self.queues:
            self.queues[packet.flow] = deque()
            self.deficits[packet.flow] = 0
        self.queues[packet.flow].append(packet)
        while queue.is_full:
            # Of several that are longest, the one whose turn is next.
            longest = max(self.queues, key=lambda flow: sum(held.size for held in self.queues[flow]))
            victim = self.queues[longest].popleft()
            queue.drop(victim, aqmlab.TAIL)
            self.rest_if_empty(longest)
        self.flows = len(self.queues)

    def take(self, queue):
        while self.queues:
            flow, waiting = next(iter(self.queues.items()))
            if not self.has_quantum:
                self.deficits[flow] += self.quantum
                self.has_quantum = True
            if waiting[0].size <= self.deficits[flow]:
                packet = waiting.popleft()
                self.deficits[flow] -= packet.size
                self.rest_if_empty(flow)
                self.flows = len(self.queues)
                return packet
            self.has_quantum = False
            self.queues[flow] = self.queues.pop(flow)  # to the end of the turns
        return None

    def rest_if_empty(self, flow):
        if not self.queues[flow]:
            self.has_quantum = self.has_quantum and next(iter(self.queues)) != flow
            del self.queues[flow], self.deficits[flow]
