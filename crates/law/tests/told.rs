//! What a law is told stands where it stood, and is what the present call is about: so the header has it.

mod built;

use aqm::registry::{Entry, Registry};
use built::written;
use scenario::resolve_with;

/// What every law and discipline here keeps: where it was told something first, and at what rate of the link.
const KEPT: &str = "#include \"aqmlab_law.h\"\n\
    struct kept { const struct aqmlab_facts *told; double rate_bps; int64_t drawn; };\n\
    static int32_t prepare(void *state, const struct aqmlab_facts *facts) {\n\
        struct kept *kept = state; kept->told = facts; kept->rate_bps = facts->rate_bps; return 0; }\n\
    static int is_kept(struct kept *kept, const struct aqmlab_facts *facts) {\n\
        kept->drawn += kept->told->chance(kept->told, 0.5);\n\
        return kept->told == facts && kept->told->rate_bps == kept->rate_bps && kept->rate_bps == 1e7; }\n";

fn driven(entry: &Entry, kind: &str) -> Result<law::check::Counts, (aqm::Fault, Vec<String>)> {
    let registry = Registry::builtin().with(entry.clone()).expect("the name is free");
    let text = format!("[link]\nrate = \"10mbit\"\nqdisc = {{ kind = \"{kind}\" }}\n[[traffic]]\nkind = \"bulk\"");
    let resolved = resolve_with(&registry, &text, "s.toml", &[], &|_| Err(String::new())).expect("it resolves");
    let link = resolved.scenario().expect("no load").links[0].clone();
    law::check::drive(&link.qdiscs[0].entry, &link.qdiscs[0].values, link.rates[0], 1, 5_000, false)
}

#[test]
fn a_law_finds_its_facts_where_prepare_was_told_them() {
    let code = format!(
        "{KEPT}\
         static int32_t on_arrival(void *state, const struct aqmlab_facts *facts) {{\n\
             return is_kept(state, facts) ? AQMLAB_PASS : AQMLAB_FAILED; }}\n\
         static const struct aqmlab_law law = {{ .version = AQMLAB_LAW_VERSION, .state_bytes = sizeof(struct kept),\n\
             .name = \"keeps\", .tick_param = -1, .prepare = prepare, .on_arrival = on_arrival,\n\
             .on_departure = on_arrival }};\n\
         const struct aqmlab_law *aqmlab_law_table(void) {{ return &law; }}\n"
    );
    let (entry, _) = law::open(&written("keeps", &code)).expect("it is a law");
    for kind in ["keeps", "fq_keeps"] {
        assert!(driven(&entry, kind).expect("it finds them").taken > 1000, "{kind}");
    }
}

#[test]
fn a_discipline_finds_its_queue_where_prepare_was_told_it() {
    let code = format!(
        "{KEPT}\
         struct one {{ struct kept kept; int64_t handle; }};\n\
         static int64_t offer(void *state, const struct aqmlab_queue *queue) {{\n\
             struct one *one = state;\n\
             if (!is_kept(&one->kept, &queue->facts)) return AQMLAB_FAILED;\n\
             if (one->handle) return queue->drop(queue, queue->handle, AQMLAB_TAIL);\n\
             one->handle = queue->handle; return 0; }}\n\
         static int64_t take(void *state, const struct aqmlab_queue *queue) {{\n\
             struct one *one = state;\n\
             if (!is_kept(&one->kept, &queue->facts)) return AQMLAB_FAILED;\n\
             int64_t handle = one->handle; one->handle = 0; return handle; }}\n\
         static const struct aqmlab_discipline discipline = {{ .law = {{ .version = AQMLAB_LAW_VERSION,\n\
             .state_bytes = sizeof(struct one), .name = \"keeps_one\", .tick_param = -1, .prepare = prepare }},\n\
             .offer = offer, .take = take }};\n\
         const struct aqmlab_discipline *aqmlab_discipline_table(void) {{ return &discipline; }}\n"
    );
    let (entry, _) = law::open(&written("keeps_one", &code)).expect("it is a discipline");
    assert!(driven(&entry, "keeps_one").expect("it finds it").taken > 500);
}
