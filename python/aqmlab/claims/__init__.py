"""What Le, Aikat, Jeffay and Smith found in 2003 and 2007, asked of a comparison's own data.

Each claim is put as measures with bounds that were fixed before any run, and the verdict follows from intervals alone:

- holds: every interval lies within its bounds;
- does not hold: an interval lies outside its bounds as a whole;
- cannot be decided: an interval crosses a bound, or there is none.

The studies print curves, hardly any numbers, so words had to be given sizes. A claim is asked only if the comparison
has the disciplines and the load it speaks of.
"""

from aqmlab.claims import ared, dropping, lighter, marking
from aqmlab.claims.bench import Bench
from aqmlab.claims.verdict import FAILS, HOLDS, LE2003, LE2007, OPEN, Claim, Finding
from aqmlab.comparison import Comparison

__all__ = ["FAILS", "HOLDS", "LE2003", "LE2007", "OPEN", "Claim", "Finding", "claims"]


def claims(comparison: Comparison) -> list[Claim]:
    """Every claim that this comparison's data can answer."""
    bench = Bench(comparison)
    match bench.load_percent:
        case 98:
            return [*dropping.drops(bench), *ared.modes(bench), *marking.marks(bench), *dropping.tail(bench)]
        case 90:
            return list(lighter.at_90(bench))
    return []
