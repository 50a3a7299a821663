"""What packets captured at the queue say of a run: its figures, worked out once more from outside.

The test bed writes packets down as they come to the queue, as they leave it, and as they are dropped, each on an
interface of its name (`points`). Of these are made what the run's own summary and tables also tell: packets, drops and
marks by reason, throughput, the wait in the queue (`queue`), and the exchanges of each connection (`connections`).
"""
