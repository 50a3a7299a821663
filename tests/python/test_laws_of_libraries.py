"""What shared libraries do not keep of what a law in C is: they are refused, or named. Needs the compiled engine."""

import pytest

import aqmlab
from aqmlab import sweep
from aqmlab.errors import BadInput, Misbehaved
from aqmlab.laws import brought, patience
from aqmlab.progress import Silent
from own_laws import command, library, of_a_sweep

pytestmark = pytest.mark.usefixtures("nothing_allowed")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("_Exit(0);", "ended its process with exit code 0 while it was loaded; expected a library that can be loaded"),
        ("_Exit(1);", "ended its process with exit code 1 while it was loaded"),
        ("__builtin_trap();", "was ended by SIG(ILL|TRAP) while it was loaded; expected a library that can be loaded"),
        ("for (volatile int k = 0;;) k++;", "still runs 1 s after it was loaded"),
    ],
)
@pytest.mark.parametrize("where", ["int aqmlab_law_table", "__attribute__((constructor)) static int begins"])
def test_a_library_that_breaks_or_never_ends_while_it_is_loaded_is_refused(tmp_path, monkeypatch, code, said, where):
    monkeypatch.setattr(patience, "LOADING_S", 1.0)
    (tmp_path / "bad.c").write_text(f"#include <stdlib.h>\n{where}(void) {{ {code} return 0; }}\n")
    made = library("bad", tmp_path, source=tmp_path / "bad.c")
    with pytest.raises(BadInput, match=f"bad.so: {said}"):
        brought.of_file(made)


TABLE = """
#include "aqmlab_law.h"
static int32_t passes(void *state, const struct aqmlab_facts *facts) {{ return (state && facts) ? AQMLAB_PASS : 0; }}
static const struct aqmlab_param one[] = {{{{"one", "a rate", "", AQMLAB_KIND_RATE, 0, 9e6, 1, 1e9}}}};
static const struct aqmlab_law law = {{
    .version = AQMLAB_LAW_VERSION, .state_bytes = 8, .name = "mine", .doc = {doc}, .params = {params},
    .params_count = 1, .tick_param = -1, .on_arrival = passes}};
const struct aqmlab_law *aqmlab_law_table(void) {{ return one[0].name ? &law : 0; }}
"""


@pytest.mark.parametrize("wrong", [{}, {"doc": "(const char *)16"}, {"params": "(const struct aqmlab_param *)16"}])
def test_a_library_whose_table_points_nowhere_is_refused_with_its_file(tmp_path, wrong):
    (tmp_path / "mine.c").write_text(TABLE.format(**{"doc": '"Passes all."', "params": "one", **wrong}))
    made = library("mine", tmp_path, source=tmp_path / "mine.c")
    refused = f"aqmlab: {made}: was ended by SIGSEGV while it was loaded; expected a library that can be loaded\n"
    assert command("explain", str(made)) == (refused if wrong else "")


def test_a_library_that_breaks_its_process_is_named(link, tmp_path):
    code = tmp_path / "breaks.c"
    code.write_text(
        '#include "aqmlab_law.h"\nstatic int32_t arrival(void *s, const struct aqmlab_facts *f)\n'
        "{ return f->now_ns > 1000000000 ? *(volatile int32_t *)0 : 0; }\n"
        'static const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, .name = "breaks", .tick_param = -1,\n'
        ".on_arrival = arrival};\nconst struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n"
    )
    made = library("breaks", tmp_path, "-Wno-unused-parameter", source=code)
    with pytest.raises(Misbehaved) as failed:
        aqmlab.compare(link, "pfifo", str(made), set={"duration": "3s"}, out=tmp_path / "out", jobs=1)
    assert "was ended by SIGSEGV" in str(failed.value) and "breaks (" in str(failed.value)
    assert (tmp_path / "out/pfifo/manifest.json").exists()
    with pytest.raises(Misbehaved, match=r"was ended by SIGSEGV .* it ran the code of breaks \("):
        list(sweep.Processes(1).each(of_a_sweep(link, made), Silent()))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "mine: decides nothing: expected on_arrival or on_departure, which answer a verdict"),
        (".params_count = 3,", "says params_count = 3 and has params = NULL: expected 3 of them, or 0"),
    ],
)
def test_a_table_in_c_that_lacks_what_it_says_is_refused(tmp_path, table, said):
    (tmp_path / "mine.c").write_text(
        '#include "aqmlab_law.h"\nstatic const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, '
        f'.name = "mine", {table} .tick_param = -1}};\n'
        "const struct aqmlab_law *aqmlab_law_table(void) { return &law; }\n"
    )
    made = library("mine", tmp_path, source=tmp_path / "mine.c")
    with pytest.raises(BadInput) as refused:
        brought.of_file(made)
    assert str(refused.value) == f"{made}: {said}"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            ".on_arrival = arrival, .tick = tick",
            "mine: ticks every 0 ns, or by parameter 0; expected tick_param = -1 wh",
        ),
        (
            ".on_arrival = arrival, .tick_param = -1, .params = params, .params_count = 1",
            "mine: the parameter share lies outside the state, or not at 8 bytes; expected a multiple of 8, at least 8",
        ),
    ],
)
def test_what_is_expected_of_a_table_is_about_what_is_wrong_with_it(tmp_path, table, said):
    (tmp_path / "mine.c").write_text(
        '#include "aqmlab_law.h"\n'
        "static int32_t arrival(void *s, const struct aqmlab_facts *f) { (void)s; (void)f; return 0; }\n"
        "static int32_t tick(void *s, const struct aqmlab_facts *f) { (void)s; (void)f; return 0; }\n"
        'static const struct aqmlab_param params[] = {{.name = "share", .offset = 4}};\n'
        'static const struct aqmlab_law law = {.version = AQMLAB_LAW_VERSION, .name = "mine", .state_bytes = 8,\n'
        f"{table}}};\nconst struct aqmlab_law *aqmlab_law_table(void) {{ (void)tick; (void)params; return &law; }}\n"
    )
    made = library("mine", tmp_path, "-Wno-missing-field-initializers", source=tmp_path / "mine.c")
    with pytest.raises(BadInput) as refused:
        brought.of_file(made)
    assert str(refused.value).startswith(f"{made}: {said}") and "exports" not in str(refused.value)


def test_a_library_that_lacks_another_one_is_refused_with_where_that_is_looked_for(tmp_path):
    (tmp_path / "other.c").write_text("int other(void);\nint other(void) { return 1; }\n")
    library("libother", tmp_path, source=tmp_path / "other.c")
    (tmp_path / "mine.c").write_text("int other(void);\nint mine(void);\nint mine(void) { return other(); }\n")
    words = (f"-L{tmp_path}", "-Wl,--no-as-needed", "-lother", "-Wl,-rpath,$ORIGIN")
    made = library("mine", tmp_path, *words, source=tmp_path / "mine.c")
    with pytest.raises(BadInput, match=r"libother.so: cannot open shared .*; expected libraries that the loader finds"):
        brought.of_file(made)
