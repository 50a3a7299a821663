"""Figures for a paper: the width and type that were asked for, nothing cut off, bands that are the t-interval."""

import io
import re
from dataclasses import dataclass, replace
from functools import partial

import matplotlib as mpl
import numpy as np
import polars as pl
import pypdf
import pytest
from scipy import stats

import aqmlab
from aqmlab import cli, figures
from aqmlab.errors import BadInput, Doubt
from aqmlab.figures import apart, applications, coinciding, responses
from aqmlab.figures.calibration import _fit, calibration_fit
from aqmlab.figures.drawn import COLOURS, METADATA, Drawn
from aqmlab.figures.looks import HUES, INK, ON_PAGE, PREFERRED, Look, looks_of, shaded
from aqmlab.figures.queue import WORTH_SHOWING, Panel, Series, _in_steps, _ways
from aqmlab.figures.sheet import PAGE, PHONE
from aqmlab.results.window import CDF_TIMES
from conftest import ROOT

LONG = "a variant with a name of its own that somebody wrote out to the last word"


@pytest.fixture
def compared(base, tmp_path):
    words = (base, "pfifo limit 240p", "pi qref 24p ecn", "uncongested")
    found = aqmlab.compare(*words, reps=3, out=tmp_path / "results/demo")
    found.columns[1].name = LONG
    return found


def types(content):
    """Sizes of type of a PDF, points, and whether each of its fonts is embedded."""
    page = pypdf.PdfReader(io.BytesIO(content)).pages[0]
    sizes = set()
    page.extract_text(
        visitor_text=lambda text, _, tm, font, size: text.strip() and sizes.add(round(size * abs(tm[0] or tm[1]), 2))
    )
    fonts = [font.get_object() for font in page["/Resources"]["/Font"].values()]
    described = [font.get("/DescendantFonts", [font])[0].get_object()["/FontDescriptor"] for font in fonts]
    return page, sizes, all(one.get_object().get("/FontFile2") is not None for one in described)


@pytest.mark.parametrize(("width", "size"), [("column", "8pt"), ("page", "8pt"), ("84mm", "9pt")])
def test_a_pdf_has_the_width_and_type_that_were_asked_for(compared, width, size):
    sheet = figures.sheet_of(width, size)
    for drawn in figures.of(compared).values():
        page, sizes, embedded = types(drawn.as_format("pdf", sheet))
        assert float(page.mediabox.width) == pytest.approx(72 * sheet.width, abs=0.01)
        asked = float(size.removesuffix("pt"))
        assert asked in sizes and sizes <= {asked, round(asked * 0.833, 2)}, drawn.name
        assert embedded


@pytest.mark.parametrize("width", ["column", "page"])
@pytest.mark.parametrize("count", [1, 4, 7, 10])
def test_many_panels_are_no_higher_than_a_page_of_a_paper(width, count):
    times = np.geomspace(1, 100, 20)
    curves = tuple((f"variant {k}", Look(INK, "-", 1.8, 5), times, times) for k in range(3))
    panels = [apart.Panel(f"cable {k}, reverse", curves) for k in range(count)]
    sheet = figures.sheet_of(width)
    with mpl.rc_context(sheet.style(COLOURS)):
        figure = apart.panels_drawn(panels, ("queueing delay (ms)", "packets (%)"), False, sheet)
        figure.draw_without_rendering()
        box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
        inner = [axes.get_position() for axes in figure.axes if axes.get_visible()]
    assert wide == sheet.width and high <= 8.0 and len(inner) == count
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= wide and box.y1 <= high
    # Two columns at most, and each panel has room for its curves.
    assert len({round(one.x0, 3) for one in inner}) <= 2
    assert min(one.height * high for one in inner) > 0.7 and min(one.width * wide for one in inner) > 0.7


@pytest.mark.parametrize("width", ["column", "page", "2.5in"])
def test_no_word_is_cut_off(compared, width):
    sheet = figures.sheet_of(width)
    for drawn in figures.of(compared).values():
        with mpl.rc_context(sheet.style(COLOURS)):
            figure = drawn.draw(sheet)
            figure.draw_without_rendering()
            box, (wide, high) = figure.get_tightbbox(), figure.get_size_inches()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= wide and box.y1 <= high, drawn.name


@pytest.mark.parametrize("sheet", [PAGE, PHONE])
def test_laying_out_once_gives_what_savefig_lays_out(compared, sheet):
    for drawn in figures.of(compared).values():
        content = io.BytesIO()
        with mpl.rc_context(sheet.style(COLOURS)):
            drawn.draw(sheet).savefig(content, format="svg", metadata=METADATA["svg"])
        assert drawn.as_format("svg", sheet) == content.getvalue(), drawn.name


def test_an_svg_keeps_words_as_text_in_the_type_that_was_asked_for(compared):
    content = figures.of(compared)["response-cdf"].as_format("svg", figures.sheet_of("3.3in", "7pt", "DejaVu Serif"))
    text = content.decode()
    assert f'width="{72 * 3.3:g}pt"' in text and "response time (s)" in text and "DejaVu Serif" in text
    assert set(re.findall(r"font: (?:\d+ )?([\d.]+)px", text)) <= {"7", "5.831"}


def test_bands_are_the_interval_across_runs(compared):
    drawn = figures.of(compared)["response-cdf"]
    curves = drawn.draw.args[0]
    column = compared.columns[0]
    runs = np.array([window.cdf for window in column.windows])[:, 80]
    around = stats.t.ppf(0.975, 2) * runs.std(ddof=1) / np.sqrt(3)
    low, high = (end[80] for end in curves[0].band)
    assert (low, high) == pytest.approx((100 * (runs.mean() - around), 100 * min(runs.mean() + around, 1.0)))
    assert "Bands: 95 % t-intervals across runs" in drawn.caption


def test_one_run_has_no_bands(base, tmp_path):
    found = figures.of(aqmlab.run(base, out=tmp_path / "one"))
    assert "Bands" not in found["response-cdf"].caption and found["response-cdf"].draw.args[0][0].band is None


def test_a_caption_says_of_how_many_curves_its_interval_is(compared, monkeypatch):
    found = figures.of(compared)["response-cdf"].caption
    assert "95 % interval at most ±" in found and "that have one" not in found
    first = compared.columns[0]
    monkeypatch.setattr(
        responses, "_cdf_half_widths", lambda column: {0.5: 0.003, 1.0: 0.002} if column is first else {}
    )
    assert f"± 0.3 points at 0.5 and 1 s of the 1 of {len(compared.columns)} curves that have one" in (
        responses.response_cdf(compared.columns, looks_of(compared.columns)).caption
    )


def test_times_at_which_nothing_happens_have_no_interval(compared, monkeypatch):
    column = compared.columns[0]
    assert max(responses._cdf_half_widths(column).values()) > 0
    whole = column.statistic
    widths = iter([None, 0.001, 0.004, 0.002, None, None])

    def statistic(read, parts):
        return replace(whole(read, parts), half_width=next(widths))

    monkeypatch.setattr(column, "statistic", statistic)
    found = responses._cdf_half_widths(column)
    assert found == {0.2: 0.001, 0.3: 0.004, 0.5: 0.002}
    assert responses.widest_said([found, {1.0: 0.97}]) == "longer than the scale at 1 s, for there are too few runs"
    assert responses.widest_said([found, {1.0: 0.001}]) == "at most ± 0.4 points at 0.2, 0.3, 0.5 and 1 s"


@pytest.mark.parametrize(
    ("at_once", "later", "is_enlarged"),
    [
        (50.0, 90.0, False),  # begins so low that the part is as large as the whole
        (100.0, 100.0, False),  # nothing is left to show
        (85.0, 95.0, True),
    ],
)
def test_a_part_is_enlarged_where_that_shows_something(at_once, later, is_enlarged):
    shares = np.where(CDF_TIMES < 0.7, at_once, later)
    look = Look("#0072b2", "-", 1.8, 5)
    curve = responses.Curve("x", look, CDF_TIMES, shares, None, 1.0, is_reference=False)
    for sheet in (PAGE, PHONE):
        drawn = Drawn("x", "x", "", partial(responses._distributions, [curve]))
        assert ("enlarged" in drawn.as_format("svg", sheet).decode()) == is_enlarged
    # No curve lies behind it, nor its band, nor the reference.
    low = replace(curve, shares=shares / 2, is_reference=True)
    banded = replace(curve, band=(shares / 2, shares))
    for other in (low, banded):
        drawn = Drawn("x", "x", "", partial(responses._distributions, [curve, other]))
        assert "enlarged" not in drawn.svg


def panel(forward, reverse):
    at = np.arange(4.0)
    series = {way: Series(at, *(np.full(4, top),) * 3) for way, top in (("forward", forward), ("reverse", reverse))}
    return Panel("x", None, series, (0.0, 4.0), 4.0, False)


FOUR = {"pfifo": Look(INK, "-", 2.8, 4)} | {name: Look(HUES[k], "-", 1.8, 5) for k, name in enumerate("abc")}


def drawings_of_four(slope):
    """A figure of each kind with four curves, which lie upon each other where the slope is 0, as their axes and key."""
    x = np.linspace(0.0, 2.0, 200)
    of = {name: (look, 30 * x + 10 + slope * k * x) for k, (name, look) in enumerate(FOUR.items())}
    whole = [responses.Curve(name, look, x, y, None, 0.0, False) for name, (look, y) in of.items()]
    curves = tuple((name, look, x, y) for name, (look, y) in of.items())
    with mpl.rc_context(PAGE.style(COLOURS)):
        yield responses._distributions(whole, PAGE)
        yield responses._tails(whole, PAGE)
        yield apart.panels_drawn([apart.Panel("way", curves)], ("s", "%"), False, PAGE)
        yield applications._drawn([applications.Panel("calls", "s", curves)], PAGE)


def test_of_four_curves_that_coincide_all_are_seen():
    for figure in drawings_of_four(slope=0):
        axes = figure.axes[0]
        lines = sorted(axes.lines[:4], key=lambda line: line.get_zorder())
        widths = np.array([line.get_linewidth() for line in lines])
        # Drop-tail lies at the bottom; each shows by half a point or more on both sides of what lies upon it.
        assert (
            lines[0].get_color() == INK and (widths[:-1] - widths[1:] >= 1).all() and widths[-1] == pytest.approx(1.8)
        )
        assert widths[0] == pytest.approx(1.8 + coinciding.WIDEST)
        legend = axes.get_legend() or figure.legends[0]
        assert sorted(key.get_linewidth() for key in legend.legend_handles) == pytest.approx([1.8, 1.8, 1.8, 2.8])


def test_steps_and_steep_curves_beside_each_other_are_seen():
    look = FOUR["a"]
    at, share = np.array([10.0, 10.0, 12.0, 60.0]), np.array([0.0, 33.0, 66.0, 100.0])
    beneath = [(look, at, share), (look, at + 0.1, share)]
    assert coinciding.widths_along(beneath, in_steps=True) == pytest.approx([2.0, 1.0])
    far = [(look, at, share), (look, at + 5.0, share)]
    assert coinciding.widths_along(far, in_steps=True) == [1.0, 1.0]
    one_value = [(look, np.array([4.0, 4.0]), np.array([0.0, 100.0]))] * 2
    assert coinciding.widths_along(one_value, in_steps=True) == [1.0, 1.0]
    assert coinciding.widths_along([(look, np.empty(0), np.empty(0)), *beneath], in_steps=True)[0] == 1.0
    # A tail that falls from all to a thousandth within a moment.
    x = np.linspace(0.0, 100.0, 300)
    steep = [(look, x, 100 / (1 + np.exp((x - middle) / 1.0)) + 0.1) for middle in (50.0, 50.3)]
    assert coinciding.widths_along(steep, is_log=True) == pytest.approx([2.0, 1.0])


def test_curves_that_are_apart_have_the_width_of_their_look():
    for figure in drawings_of_four(slope=6):
        assert sorted(line.get_linewidth() for line in figure.axes[0].lines[:4]) == pytest.approx([1.8, 1.8, 1.8, 2.8])


def test_a_caption_says_that_lower_curves_are_wider_where_they_are():
    for k, is_said in ((0.0, True), (20.0, False)):
        curves = [
            responses.Curve("x", look, CDF_TIMES, np.full(CDF_TIMES.size, 10.0 + k * n) + CDF_TIMES, None, 0.0, False)
            for n, look in enumerate(FOUR.values())
        ]
        assert ("the lower one is drawn wider" in responses._wider_said(curves)) == is_said


@pytest.mark.parametrize("sheet", [PAGE, PHONE])
@pytest.mark.parametrize("at", [0, -1])
def test_what_is_wanted_of_a_calibration_is_written_where_no_mark_and_no_key_is(at, sheet):
    users = np.array([19_300, 19_500, 21_300, 23_700, 26_000])
    users = users if at == 0 else 45_300 - users[::-1]
    points = [{"users": int(one), "throughput_bps": 4663.0 * one} for one in users]
    confirmed = {"users": int(users[at]) - 20, "confirmed_bps": 4663.0 * users[at], "load_bps": 4663.0 * users[at]}
    facts = {"points": points, "intercept_bps": 0.0, "slope_bps_per_user": 4663.0, **confirmed}
    with mpl.rc_context(sheet.style(COLOURS)):
        figure = _fit(facts, sheet)
        figure.dpi = 72
        figure.get_layout_engine().execute(figure)
        (axes,) = figure.axes
        box = axes.texts[0].get_window_extent()
        marks = np.concatenate([axes.transData.transform(line.get_xydata()) for line in axes.lines[1:3]])
        on_fit = axes.transData.transform(axes.lines[0].get_xydata())
        keys = axes.get_legend().get_window_extent()
        wanted = axes.transData.transform((0, facts["load_bps"] / 1e6))[1]
    along = np.linspace(on_fit[0], on_fit[1], 400)
    assert not any(box.padded(2).contains(x, y) for x, y in [*marks, *along])
    assert not box.overlaps(keys) and not keys.y0 < wanted < keys.y1
    assert axes.get_window_extent().y0 <= box.y0


@pytest.mark.parametrize(("error", "off"), [(-0.00487, "0.49 % less"), (0.0011, "0.11 % more")])
def test_how_far_a_calibration_is_off_is_said_of_what_was_wanted(error, off):
    facts = {"users": 2696, "load_bps": 15e6, "confirmed_bps": 15e6 * (1 + error), "predicted_bps": 15.275e6}
    rates = {"uncongested_rate_bps": 1e9, "uncongested_reverse_rate_bps": 1e9}
    run = {"measured_s": 60.0, "seed": 1, "window_error": None, "error": error, "confirmed_each_bps": {}}
    said = calibration_fit(facts | rates | run).caption
    assert f"{off} than the 15 Mb/s that were wanted" in said and "the line has 15.275 Mb/s there" in said


def test_directions_are_drawn_that_have_a_queue():
    little = 0.9 * WORTH_SHOWING
    assert _ways([panel(50.0, little)]) == ["forward"] and _ways([panel(little, 50.0)]) == ["reverse"]
    assert _ways([panel(50.0, little), panel(little, WORTH_SHOWING)]) == ["forward", "reverse"]
    assert _ways([panel(0.0, 0.0)]) == ["forward"]


@dataclass
class Variant:
    """What a look is given by."""

    name: str
    kind: str
    witness: str = "simulated"
    uncongested: bool = False
    ecn: bool = False

    @property
    def subject(self):
        return self.name.partition(",")[0]

    @property
    def qdisc(self):
        return {"kind": self.kind, "called": self.subject}

    @property
    def scenario(self):
        return {"link": {"qdisc": self.qdisc}}


@pytest.mark.parametrize("witness", ["simulated", "live"])
def test_a_discipline_has_the_same_hue_whatever_it_is_compared_with(witness):
    kinds = ["pie", "choke", "pi", "pfifo", "codel"]
    of = {kind: Variant(f"{kind}, {witness}", kind, witness) for kind in kinds}
    looks = looks_of([of[kind] for kind in kinds])
    assert len({look.color for look in looks.values()}) == len(kinds)
    assert looks[of["pfifo"].name].color == INK
    for kind in ("pi", "pie", "codel"):
        alone = looks_of([of["choke"], of[kind]])[of[kind].name]
        assert looks[of[kind].name].color == alone.color == HUES[PREFERRED[kind]]


def test_two_variants_of_a_kind_are_told_by_hue():
    looks = looks_of([Variant("pi", "pi"), Variant("slow pi", "pi"), *(Variant(f"my {k}", "mine") for k in range(8))])
    assert looks["pi"].color == HUES[PREFERRED["pi"]] and len({look.color for look in looks.values()}) == len(HUES)


def test_on_a_page_a_shade_is_mixed_of_the_colours_of_its_style_sheet():
    for shade, other in (("pale", "--paper"), ("deep", "--ink")):
        colour = shaded(HUES[2], shade)
        assert colour not in HUES
        assert ON_PAGE[colour].startswith("color-mix(in srgb, var(--hue-2) ") and other in ON_PAGE[colour]


def test_bands_over_time_end_at_values_that_occurred():
    rows = {"direction": [0] * 5, "time_s": [0.1, 0.2, 0.3, 0.4, 0.5], "queue_packets": [0, 10, 20, 30, 40]}
    found = _in_steps(pl.DataFrame(rows), "queue_packets", 1, 1.0)["forward"]
    assert (found.low.tolist(), found.high.tolist()) == ([0], [40])
    ends = np.arange(1.0, 101.0)
    assert Series(ends, ends, ends, ends).top == 100


def test_both_directions_are_labelled_where_both_are_drawn(compared):
    drawn = figures.of(compared)["queue"]
    assert "forward direction upwards and reverse direction downwards" in drawn.caption
    assert drawn.svg.count(">forward<") == drawn.svg.count(">reverse<") == 2
    panels, *rest = drawn.draw.args
    alone = [replace(one, series={"forward": one.series["forward"]}) for one in panels]
    assert ">forward<" not in replace(drawn, draw=lambda sheet: drawn.draw.func(alone, *rest, sheet)).svg


def test_the_command_writes_what_is_asked(compared, tmp_path, capsys):
    out = tmp_path / "paper"
    folder = str(compared.folder)
    assert cli.invoke(["figures", folder, "queue", "response-cdf", "--width", "3.3in", "-o", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["queue.pdf", "response-cdf.pdf"]
    assert capsys.readouterr().out.split() == [str(out / "queue.pdf"), str(out / "response-cdf.pdf")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "figure 'nothing': expected one of response-cdf, response-tail"),
        (["--width", "3.3"], "width: '3.3': expected column, page or a length, as in 3.3in"),
        (["--width", "99in"], "expected at most 40in"),
        (["--width", "1in"], "expected at least 2.45in for type of 8pt"),
        (["--size", "large"], "size: 'large': expected points, as in 8pt"),
        (["--font", "No Such Type"], "font: 'No Such Type': expected a family that is installed"),
        (["--format", "eps"], "format: 'eps': expected one of pdf, svg, png"),
    ],
)
def test_what_cannot_be_drawn_is_refused(compared, tmp_path, capsys, words, said):
    assert cli.invoke(["figures", str(compared.folder), *words, "-o", str(tmp_path / "paper")]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "paper").exists()


@pytest.mark.parametrize("size", ["8pt", "9pt", "7.3pt", "10.5pt", "3mm", "40pt"])
def test_the_least_width_that_is_said_will_do(size):
    with pytest.raises(BadInput, match="expected at least") as error:
        figures.sheet_of("0.1in", size)
    (least,) = re.findall(r"at least (\S+) for", str(error.value))
    figures.sheet_of(least, size)


def test_arguments_of_another_kind_are_named(compared, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = figures.of(compared)["queue"]
    asked = [
        (lambda: drawn.save("x.pdf", width=3.3), "width: 3.3: expected column, page or a length, as in 3.3in"),
        (lambda: drawn.save("x.pdf", width=["page"]), r"width: \['page'\]: expected column, page or a length"),
        (lambda: drawn.save("x.pdf", size=8), "size: 8: expected points, as in 8pt"),
        (lambda: drawn.save("x.pdf", font=8), "font: 8: expected a family that is installed"),
        (lambda: drawn.save("nodir/x.pdf"), "nodir/x.pdf: nodir is no folder; expected a place that exists"),
        (lambda: drawn.save(None), "path: None: expected the path of a file whose name ends in .pdf, .svg, .png"),
        (lambda: figures.of("res/cmp"), "found: 'res/cmp': expected a result or a comparison, as aqmlab.run, .*load"),
        (lambda: figures.write("res/cmp", "p"), "found: 'res/cmp': expected a result or a comparison"),
        (
            lambda: figures.write(compared, "p", "queue"),
            r"names: 'queue': expected a list of names of figures, as in \[\"queue\"\]",
        ),
        (lambda: figures.write(compared, "p", [3]), r"names: \[3\]: expected a list of names of figures"),
        (lambda: figures.write(compared, None), "folder: None: expected the path of a folder"),
        (lambda: figures.write(compared, "p", width=84), "width: 84: expected column, page or a length"),
    ]
    for call, said in asked:
        with pytest.raises(BadInput, match=said):
            call()
    assert not {"x.pdf", "nodir", "p"} & {path.name for path in tmp_path.iterdir()}


def test_characters_that_a_font_lacks_are_said_in_a_line(compared, tmp_path, capsys, monkeypatch):
    named = "PI \N{SNOWMAN WITHOUT SNOW} \N{PHOENICIAN LETTER ALF}"
    compared.columns[1].name = named
    monkeypatch.setattr("aqmlab.api.load_to_show", lambda folder: compared)
    assert cli.invoke(["figures", "x", "queue", "--font", "DejaVu Serif", "-o", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"aqmlab: warning: {named!r}: the font DejaVu Serif has no {' '.join(named.split()[1:])}, and boxes are drawn; "
        "expected --font FAMILY with a family that has them"
    ]
    with pytest.warns(Doubt, match="'queue': the font .* expected font=\"FAMILY\" with a family that has them"):
        figures.of(compared)["queue"].save(tmp_path / "queue.pdf", font="DejaVu Serif")


def test_a_file_says_its_format(compared, tmp_path):
    with pytest.raises(BadInput, match=r"expected a name that ends in \.pdf, \.svg, \.png"):
        figures.of(compared)["queue"].save(tmp_path / "queue.eps")


def test_the_guide_s_example_runs(compared, tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/guide/figures.md").read_text()
    (example,) = re.findall(r"<!-- executed -->\n```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(example, {})
    assert (tmp_path / "cdf.pdf").read_bytes().startswith(b"%PDF")
    assert sorted(path.name for path in (tmp_path / "paper").iterdir()) == ["queue.svg", "response-tail.svg"]
    assert capsys.readouterr().out.startswith("Share of exchanges")
