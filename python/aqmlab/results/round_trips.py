"""Round trips of probes that go both ways: a probe and the answer that came back when it had arrived.

How many would follow each other in a minute is what draft-ietf-ippm-responsiveness calls responsiveness, and what
networkQuality and others show as RPM. Theirs are requests over HTTP, of their own load; these are packets over UDP
under whatever load the scenario has.
"""

import numpy as np
import polars as pl

from aqmlab.statistics import Array

SLOWEST = 0.05
"""Share of the round trips, the slowest ones, that are left out of the mean, as the draft does."""


def of_block(probes: pl.DataFrame, block: int) -> tuple[Array, Array]:
    """When each probe of a block was sent forward, and how long it took there and back, both in seconds.

    The way back is that of the answer that would have left when the probe arrived: between the two probes in reverse
    that were sent next to that moment. It is not a number where the probe was lost, or one of these two. Both are empty
    of a block that sends one way only.
    """
    there, back = (
        probes.filter((pl.col("traffic") == block) & (pl.col("direction") == way)).sort("sent_s") for way in (0, 1)
    )
    if not there.height or not back.height:
        return np.empty(0), np.empty(0)
    sent, delay = there["sent_s"].to_numpy(), there["delay_s"].to_numpy()
    answered = np.interp(sent + np.nan_to_num(delay), back["sent_s"].to_numpy(), back["delay_s"].to_numpy())
    return sent, delay + answered


def figures(probes: pl.DataFrame) -> dict[str, float]:
    """Median and 99 % of the round trips in seconds, and how many there are in a minute.

    These are of all blocks that send both ways; there is none where no block does, or where every round trip was lost.
    """
    each = [of_block(probes, block)[1] for block in probes["traffic"].unique().sort()]
    rtt = np.sort(np.concatenate([own[~np.isnan(own)] for own in each])) if each else np.empty(0)
    if not rtt.size:
        return {}
    kept = rtt[: max(1, round((1 - SLOWEST) * rtt.size))]
    median, most = np.quantile(rtt, (0.5, 0.99), method="inverted_cdf")
    return {"rtt_s.p50": float(median), "rtt_s.p99": float(most), "per_minute": 60 / float(kept.mean())}
