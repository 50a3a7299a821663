//! Distributions of round-trip times, in words and in files.

use super::{BULK, check};

#[test]
fn distributions() {
    check(
        &[
            ("80", "s.toml:1: path.rtt = 80: expected a time such as 15ms"),
            ("\"80\"", "s.toml:1: path.rtt = \"80\": expected a time such as 15ms"),
            ("\"80s\"", "s.toml:1: path.rtt = \"80s\": expected a time from 0s to 60s"),
            ("[\"10ms\"]", "s.toml:1: path.rtt = [\"10ms\"]: expected a time such as 15ms"),
            (
                "{}",
                "s.toml:1: path.rtt = { }: expected one of uniform, exponential, pareto, weibull, lognormal, table, even",
            ),
            (
                "{ uniform = [\"10s\", \"150s\"] }",
                "s.toml:1: path.rtt = { uniform = [\"10s\", \"150s\"] }: expected round-trip times of at most 60s",
            ),
            (
                "{ unifrom = [\"10ms\", \"150ms\"] }",
                "s.toml:1: path.rtt.unifrom = [\"10ms\", \"150ms\"]: unknown key, did you mean uniform?",
            ),
            (
                "{ uniform = [\"150ms\", \"10ms\"] }",
                "s.toml:1: path.rtt.uniform = [\"150ms\", \"10ms\"]: expected two values, the smallest first",
            ),
            (
                "{ uniform = \"10ms\" }",
                "s.toml:1: path.rtt.uniform = \"10ms\": expected two values, the smallest first",
            ),
            ("{ uniform = [10, 150] }", "s.toml:1: path.rtt.uniform.0 = 10: expected a time such as 15ms"),
            (
                "{ uniform = [\"10ms\", \"150ms\"], step = \"3ms\" }",
                "s.toml:1: path.rtt.step = \"3ms\": expected a step that divides the range",
            ),
            (
                "{ uniform = [\"10ms\", \"150ms\"], step = \"0ms\" }",
                "s.toml:1: path.rtt.step = \"0ms\": expected more than zero",
            ),
            (
                "{ even = [\"10ms\", \"150ms\"], step = \"1ms\" }",
                "s.toml:1: path.rtt.step = \"1ms\": does not go with even",
            ),
            (
                "{ exponential = \"50ms\", step = \"1ms\" }",
                "s.toml:1: path.rtt.step = \"1ms\": does not go with exponential",
            ),
            ("{ exponential = \"0ms\" }", "s.toml:1: path.rtt.exponential = \"0ms\": expected more than zero"),
            (
                "{ exponential = \"50ms\", uniform = [\"1ms\", \"2ms\"] }",
                "s.toml:1: path.rtt = { exponential = \"50ms\", uniform = [\"1ms\", \"2ms\"] }: expected one of \
                 uniform, exponential, pareto, weibull, lognormal, table, even",
            ),
            (
                "{ pareto = { mean = \"50ms\", shape = 0.9 } }",
                "s.toml:1: path.rtt.pareto = { mean = \"50ms\", shape = 0.9 }: expected a shape above 1: below, the \
                 mean is infinite",
            ),
            (
                "{ pareto = { shape = 1.2 } }",
                "s.toml:1: path.rtt.pareto = { shape = 1.2 }: expected either scale or mean",
            ),
            ("{ pareto = { mean = \"50ms\" } }", "s.toml:1: path.rtt.pareto.shape: missing, expected a number"),
            (
                "{ weibull = { scale = \"50ms\", shape = nan } }",
                "s.toml:1: path.rtt.weibull.shape = NaN: expected a number from 0.01 to 1000",
            ),
            ("{ table = \"nowhere.csv\" }", "s.toml:1: path.rtt.table = \"nowhere.csv\": cannot be read: no such file"),
            (
                "{ table = \"negative.csv\" }",
                "negative.csv:2: path.rtt.table = -0.02,0.5: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"words.csv\" }",
                "words.csv:3: path.rtt.table = long,1: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"odd_probability.csv\" }",
                "odd_probability.csv:2: path.rtt.table = 20ms,half: expected value,cumulative probability, neither \
                 negative",
            ),
            (
                "{ table = \"one_column.csv\" }",
                "one_column.csv:1: path.rtt.table = 10ms: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"infinite.csv\" }",
                "infinite.csv:2: path.rtt.table = inf,1: expected value,cumulative probability, neither negative",
            ),
            (
                "{ table = \"nan.csv\" }",
                "nan.csv:2: path.rtt.table = 0.02,nan: expected a cumulative probability from 0 to 1",
            ),
            (
                "{ table = \"falling.csv\" }",
                "falling.csv:4: path.rtt.table = 0.01,1: expected values and probabilities that do not fall from one \
                 line to the next",
            ),
            (
                "{ table = \"falling_probability.csv\" }",
                "falling_probability.csv:2: path.rtt.table = 0.02,0.4: expected values and probabilities that do not \
                 fall from one line to the next",
            ),
            (
                "{ table = \"percent.csv\" }",
                "percent.csv:2: path.rtt.table = 0.02,100: expected a cumulative probability from 0 to 1",
            ),
            (
                "{ table = \"short.csv\" }",
                "short.csv:2: path.rtt.table = 0.02,0.9: expected 1 as the last cumulative probability",
            ),
            (
                "{ table = \"empty.csv\" }",
                "empty.csv:1: path.rtt.table: expected lines of value,cumulative probability",
            ),
            (
                "{ table = \"heading.csv\" }",
                "heading.csv:1: path.rtt.table = delay,probability: expected a heading such as value_s,probability",
            ),
            (
                "{ table = [[\"10ms\", 0.5]] }",
                "s.toml:1: path.rtt.table = [[\"10ms\", 0.5]]: expected 1 as the last cumulative probability",
            ),
            (
                "{ table = [\"10ms\"] }",
                "s.toml:1: path.rtt.table.0 = \"10ms\": expected the name of a file, or pairs such as [\"10ms\", 0.5]",
            ),
        ],
        |text| format!("path.rtt = {text}{BULK}"),
    );
}
