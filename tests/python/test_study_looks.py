"""Curves of a study's figures: what they are called, and how they are told apart."""

import re

import matplotlib as mpl
import numpy as np

from aqmlab.figures import coinciding
from aqmlab.figures.drawn import COLOURS
from aqmlab.figures.looks import HUES, INK, PREFERRED, REFERENCE, shaded
from aqmlab.figures.sheet import PAGE
from aqmlab.study import figures
from aqmlab.study.figures import layout
from aqmlab.study.figures.curves import POINT_MARKS, STYLES, WITHOUT_ECN, curves_of, hues_of, noted
from aqmlab.study.figures.layout import panels_of
from study_cells import cell, drawn_curves, finder, spec


def test_a_hue_is_a_family_and_a_dash_is_no_ecn():
    cells = [cell("uncongested"), cell("pfifo-240"), cell("pi-24"), cell("pi-24", "on"), cell("rem-24", "on")]
    found = drawn_curves(cells)
    assert list(found) == ["uncongested", "PFIFO 240", "PI 24, no ECN", "PI 24, ECN", "REM 24, ECN"]
    assert found["uncongested"].look.color == REFERENCE and found["uncongested"].look.style != "-"
    assert (found["PFIFO 240"].look.color, found["PFIFO 240"].look.style) == (INK, "-")
    without, with_ecn = found["PI 24, no ECN"].look, found["PI 24, ECN"].look
    assert without.color == with_ecn.color != found["REM 24, ECN"].look.color
    assert (without.style, with_ecn.style) == (WITHOUT_ECN, "-")
    # Black, blue and green meet: one of the two has marks, for whoever sees no hues.
    assert [curve.mark for curve in found.values()] == ["", "", "", "", "o"]


def test_of_more_than_two_hues_each_has_a_mark_of_its_own():
    for kinds, marks in (
        (("pi-24", "rem-24"), ["", ""]),
        (("pfifo-240", "pi-24", "rem-24", "red-24"), ["", "", "o", "s"]),
    ):
        assert [curve.mark for curve in drawn_curves([cell(kind) for kind in kinds]).values()] == marks
    many = drawn_curves([cell(f"{kind}-{n}") for kind in ("pi", "rem", "red", "codel") for n in (24, 240)])
    assert len({(curve.mark, repr(curve.look.style)) for curve in many.values()}) == 8
    loads = drawn_curves([cell("rem-24", load=load) for load in ("80", "90", "98")])
    assert not any(curve.mark for curve in loads.values()), "shades of one hue are told apart in grey"


def test_the_drop_tail_queue_of_most_figures_is_the_solid_black_one():
    short, usual, long = [cell(f"pfifo-{n}") for n in (24, 240, 2400)]
    specs = [spec(), spec(curves=[{"aqm": ["pfifo-240", "pi-24"]}])]
    find = finder([short, usual, long, cell("pi-24")])
    alone = spec(curves=[{"aqm": ["pfifo-24", "pfifo-240", "pfifo-2400"]}])
    found = {curve.cell.name: curve.look for curve in curves_of(alone, find, hues_of([alone, *specs], find))}
    assert {look.color for look in found.values()} == {INK}
    assert found[usual.name].style == "-" and len({repr(look.style) for look in found.values()}) == 3


def test_a_note_stands_behind_a_name_and_is_a_dash_where_that_is_free():
    cells = [cell("uncongested"), cell("pi-24"), cell("rem-24")]
    found = noted(curves_of(spec(), finder(cells)), lambda one: "35 min" if one is not cells[2] else "")
    assert [curve.label for curve in found] == ["uncongested (35 min)", "PI 24 (35 min)", "REM 24"]
    assert (found[1].look.style, found[2].look.style) == (STYLES[1], "-")
    with_ecn = curves_of(spec(), finder([*cells, cell("pi-24", "on")]))
    styles = [curve.look.style for curve in with_ecn]
    assert [curve.look.style for curve in noted(with_ecn, lambda _: "35 min")] == styles, "there it says no ECN"


def test_where_ecn_does_not_vary_a_dash_is_a_parameter():
    found = drawn_curves([cell(aqm) for aqm in ("pi-24", "pi-240", "rem-24", "rem-240")])
    assert list(found) == ["PI 24", "PI 240", "REM 24", "REM 240"]
    looks = [curve.look for curve in found.values()]
    assert looks[0].color == looks[1].color != looks[2].color == looks[3].color
    assert looks[0].style == looks[2].style == "-" and looks[1].style == looks[3].style != "-"


def test_a_figure_of_one_family_gives_shades_of_its_hue_to_loads():
    found = drawn_curves([cell(aqm, load=load) for load in ("90", "98") for aqm in ("rem-24", "rem-240")])
    looks = {label: curve.look for label, curve in found.items()}
    green = HUES[PREFERRED["rem"]]
    assert looks["REM 24, 90 %"].color == looks["REM 240, 90 %"].color == shaded(green, "pale")
    assert looks["REM 24, 98 %"].color == looks["REM 240, 98 %"].color == shaded(green, "deep")
    assert looks["REM 24, 90 %"].style == looks["REM 24, 98 %"].style != looks["REM 240, 90 %"].style


def test_more_loads_than_there_are_shades_have_hues_after_the_familys_own():
    found = drawn_curves([cell("rem-24", load=load) for load in ("70", "80", "90", "98")])
    colours = [curve.look.color for curve in found.values()]
    assert colours[0] == HUES[PREFERRED["rem"]] and len(set(colours)) == 4


def test_a_discipline_has_the_same_hue_in_all_figures_of_a_study():
    """`red-star` cannot have the hue of RED beside it, nor then alone."""
    find = finder([cell(aqm) for aqm in ("red-12", "red-star-12", "pi-24", "rem-24")])
    for one in find({}):
        one.scenario["link"]["qdisc"]["kind"] = one.at["aqm"].split("-")[0]
    several = [["red-star-12", "pi-24"], ["red-12", "red-star-12"], ["pi-24", "rem-24"], ["red-star-12", "rem-24"]]
    specs = [spec(curves=[{"aqm": names}]) for names in several]
    hues = hues_of(specs, find)
    seen: dict[str, set[str]] = {}
    for one in specs:
        curves = curves_of(one, find, hues)
        assert len({curve.look.color for curve in curves}) == 2
        for curve in curves:
            seen.setdefault(curve.label, set()).add(curve.look.color)
    assert {label: len(colours) for label, colours in seen.items()} == dict.fromkeys(seen, 1)
    assert seen["RED 12"] == {HUES[PREFERRED["red"]]} and seen["PI 24"] == {HUES[PREFERRED["pi"]]}
    (drawn,) = figures.draw(specs[:1], find, whole=specs)
    assert seen["RED STAR 12"].pop() in drawn.svg


def test_twelve_curves_are_all_told_apart():
    cells = [cell(f"{kind}-{n}", ecn) for kind in ("pi", "rem", "red") for n in (24, 240) for ecn in ("off", "on")]
    found = drawn_curves(cells)
    assert len(found) == 12
    assert len({(c.look.color, repr(c.look.style), c.mark) for c in found.values()}) == 12


def test_two_drop_tail_queues_of_other_names_are_told_apart():
    """Both are black: `td` and `td-short` of a study, beside disciplines."""
    cells = [cell(aqm, load=load) for aqm in ("td-240", "td-short-110", "red-24") for load in ("90", "98")]
    for one in cells[:4]:
        one.scenario["link"]["qdisc"]["kind"] = "pfifo"
    against = spec("against", x="load", measure="loss_ratio")
    found = {curve.label: curve for curve in curves_of(against, finder(cells))}
    long, short = found["TD 240"], found["TD SHORT 110"]
    assert long.look.color == short.look.color == INK
    assert (long.look.style, short.look.style) == ("-", STYLES[1]) and not (long.mark or short.mark)


def test_marks_tell_curves_apart_where_each_point_has_one():
    assert len(set(POINT_MARKS.values())) == len(POINT_MARKS) and POINT_MARKS[""] == "o"
    cells = [cell(f"{kind}-{n}", ecn) for kind in ("pi", "rem") for n in (24, 240) for ecn in ("off", "on")]
    against = spec("against", x="load", measure="loss_ratio")
    for drawn in figures.draw([against, spec("loss_runs", id="2")], finder(cells)):
        with mpl.rc_context(PAGE.style(COLOURS)):
            legend = drawn.draw(PAGE).axes[0].get_legend()
        looks = {(line.get_color(), str(line.get_linestyle()), line.get_marker()) for line in legend.get_lines()}
        assert len(looks) == len(cells)


def test_other_ways_to_use_ecn_have_styles_of_their_own():
    cells = [cell("red-1", ecn) for ecn in ("off", "on", "plus")]
    for one in cells:
        one.scenario["link"]["qdisc"]["ecn"] = one.at["ecn"] != "off"
    found = drawn_curves(cells)
    assert len({repr(curve.look.style) for curve in found.values()}) == 3
    assert found["ECN"].look.style == "-" and found["no ECN"].look.style == WITHOUT_ECN


def test_cells_of_several_panels_share_label_and_look():
    cells = [cell(aqm, load=load) for load in ("90", "98") for aqm in ("uncongested", "pi-24", "rem-24")]
    found = curves_of(spec(panels="load"), finder(cells))
    assert [(curve.label, curve.panel) for curve in found[:3]] == [
        ("uncongested", "90"),
        ("PI 24", "90"),
        ("REM 24", "90"),
    ]
    assert [curve.look for curve in found[:3]] == [curve.look for curve in found[3:]]


def test_what_advances_together_with_x_is_not_part_of_a_curves_name():
    cells = [cell("pi-24", load=load) for load in ("90", "98")] + [cell("rem-24", load=load) for load in ("90", "98")]
    for one in cells:
        one.at["buffer"] = one.labels["buffer"] = {"90": "100", "98": "120"}[one.at["load"]]
        one.scenario["link"]["qdisc"]["limit"] = f"{one.at['buffer']}p"
    found = curves_of(spec("against", x="load", measure="loss_ratio"), finder(cells))
    assert [curve.label for curve in found] == ["PI 24", "PI 24", "REM 24", "REM 24"]
    assert len({curve.look.color for curve in found}) == 2 and {curve.look.style for curve in found} == {"-"}


def test_a_selector_may_say_what_its_curve_is_called():
    cells = [cell("pi-24"), cell("rem-24")]
    found = drawn_curves(cells, curves=[{"aqm": "pi-24", "label": "the controller"}, {"aqm": "rem-24"}])
    assert list(found) == ["the controller", "REM 24"]


def test_curves_of_two_grids_with_the_same_name_say_their_grid():
    cells = [cell("pi-24"), cell("rem-24"), cell("pi-24", grid="general"), cell("rem-24", grid="general")]
    assert list(drawn_curves(cells)) == ["PI 24, web", "REM 24, web", "PI 24, general", "REM 24, general"]


def test_of_curves_that_coincide_the_lower_one_is_wider():
    curves = curves_of(spec(), finder([cell("pi-24"), cell("rem-24"), cell("red-24"), cell("uncongested")]))
    x = np.linspace(0, 1, 50)
    lines = [(curve, x, y) for curve, y in zip(curves, (x, x + 0.001, 1 - x, x), strict=True)]
    first, second, alone, reference = layout.widths_of(lines)
    # The reference is drawn beneath all others.
    assert reference > first > second == alone == 1
    many = layout.widths_of([(curve, x, x) for curve in curves] * 5)
    assert many[3] * curves[3].look.width <= min(curve.look.width for curve in curves) + coinciding.WIDEST
    # The first coincides with two, the second with two others: it is wider than what hides it all the same.
    chain = [(curves[0], x, x + 0.005 * k) for k in range(4)]
    assert layout.widths_of(chain) == sorted(set(layout.widths_of(chain)), reverse=True)
    ends = [(curves[0], x, x), (curves[1], x, np.where(x > 0.5, x, 0.8 * x))]
    assert layout.widths_of(ends) == [1, 1]


def test_a_legend_has_lines_of_their_own_width():
    cells = [cell("pi-24"), cell("rem-24")]
    svg = figures.draw([spec("ccdf")], finder(cells))[0].svg
    legend = svg[svg.index('id="legend_1"') :]
    widths = set(re.findall(r"stroke-width: ([\d.]+)", legend))
    assert widths == {"1.7"} and "stroke-width: 3.5;" in svg


def test_a_family_that_is_called_as_its_kind_keeps_its_hue_beside_others_of_the_kind():
    star = cell("red-star-1")
    star.scenario["link"]["qdisc"]["gentle"] = True
    alone = drawn_curves([cell("red-1"), cell("pi-24")])["RED 1"].look.color
    both = drawn_curves([star, cell("red-1"), cell("pi-24")])
    assert both["RED 1"].look.color == alone
    assert len({curve.look.color for curve in both.values()}) == 3


def test_uncongested_links_alone_are_as_grey_as_beside_others():
    found = drawn_curves([cell("uncongested", load=load) for load in ("90", "98")])
    assert [curve.look.color for curve in found.values()] == [REFERENCE] * 2
    assert len({repr(curve.look.style) for curve in found.values()}) == 2


def test_a_panel_says_of_what_its_number_is():
    cells = [cell("pi-24", load=load) for load in ("90", "98")]
    assert [title for title, _ in panels_of(spec(panels="load"), curves_of(spec(panels="load"), finder(cells)))] == [
        "90 % load",
        "98 % load",
    ]
    with mpl.rc_context(PAGE.style(COLOURS)):
        (drawn,) = figures.draw([spec("cdf", panels="load")], finder(cells))
        below = drawn.draw(PAGE).axes[2].get_ylabel()
    assert below.startswith("exchanges completed (%),")


def test_what_cannot_mark_stands_in_the_panels_of_ecn_too():
    cells = [cell("uncongested"), cell("pfifo-240"), cell("pi-24"), cell("pi-24", "on")]
    found = curves_of(spec(panels="ecn"), finder(cells))
    assert [curve.panel for curve in found] == [None, None, "off", "on"]
    assert [len(shown) for _, shown in panels_of(spec(panels="ecn"), found)] == [3, 3]


def test_one_law_marking_and_dropping_under_two_names_is_told_by_its_dash():
    cells = [cell("pi-24"), cell("pi-24", "on"), cell("rem-24", "on")]
    for one in cells[1:]:
        one.at["aqm"] += "-ecn"
        one.labels["aqm"] += " + ECN"
        one.at["ecn"] = one.labels["ecn"] = "as named"
    cells[0].at["ecn"] = cells[0].labels["ecn"] = "as named"
    found = drawn_curves(cells)
    assert list(found) == ["PI 24", "PI 24 + ECN", "REM 24 + ECN"]
    assert found["PI 24"].look.color == found["PI 24 + ECN"].look.color
    assert (found["PI 24"].look.style, found["PI 24 + ECN"].look.style) == (WITHOUT_ECN, "-")


def test_hues_do_not_run_out():
    kinds = ("pi", "rem", "red", "ared", "dcn", "afd", "codel", "fq_codel", "pie", "dualpi2", "cake", "rio_ps")
    found = drawn_curves([cell(kind) for kind in kinds])
    assert len({curve.look.color for curve in found.values()}) == len(HUES)
    assert len({(curve.look.color, curve.mark) for curve in found.values()}) == len(kinds)
