"""What studies claim, asked of data.

Each claim is put as measures with bounds that were fixed before any run, and the verdict follows from intervals alone:

- holds: every interval lies within its bounds;
- does not hold: an interval lies outside its bounds as a whole, of several at 95 % of all together; of a curve the band
  that holds all of it;
- cannot be decided: an interval crosses a bound, or there is none.

The studies print curves, hardly any numbers, so words had to be given sizes. The claims themselves are data, in each
study's `claims.toml`.
"""

from aqmlab.claims.verdict import FAILS, HOLDS, NOT_RUN, OPEN, UNEXPLAINED, VERDICTS, Claim, Finding

__all__ = ["FAILS", "HOLDS", "NOT_RUN", "OPEN", "UNEXPLAINED", "VERDICTS", "Claim", "Finding"]
