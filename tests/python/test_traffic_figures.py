"""Pictures of web models: `tools/traffic_figures.py`."""

import sys

import matplotlib as mpl
import numpy as np

from aqmlab.figures.drawn import COLOURS
from aqmlab.figures.sheet import PAGE
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import traffic_figures


def test_models_are_named_below_their_curves_and_none_hides_another():
    rng = np.random.default_rng(1)
    sizes, gaps = (np.sort(rng.exponential(mean, 5000)) for mean in (1e4, 5.0))
    slower = np.sort(rng.exponential(50.0, 5000))
    shown = {"unc2001": (10 * sizes, gaps), "one": (sizes, gaps), "other": (sizes, slower)}
    with mpl.rc_context(PAGE.style(COLOURS)):
        figure = traffic_figures.picture(shown)
    assert [axes.get_legend() for axes in figure.axes] == [None] * 3
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(shown)
    widths = [[line.get_linewidth() for line in axes.lines] for axes in figure.axes]
    assert widths[0][1] > widths[0][2] == widths[0][0] and widths[1][1] > widths[1][2]
    assert widths[2][0] > widths[2][1] == widths[2][2]
