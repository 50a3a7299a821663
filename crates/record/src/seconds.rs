//! Nanoseconds as the seconds that are written down.

/// Seconds of a number of nanoseconds: the nearest number there is, up to 2^53 ns, which are 104 days.
///
/// Divided, for 1e-9 is no binary fraction: a factor of it would make 0.30000000000000004 of 0.3 s. All that tables and
/// summaries hold in seconds comes from here; `aqmlab/results/times.py` has the other writing of it.
pub const fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;

    /// Text is read as the nearest number: nanoseconds written with a decimal point are what the quotient has to be.
    #[test]
    fn seconds_are_the_nearest_number() {
        let mut stream = Stream::named(1, "seconds");
        for digits in 1..16 {
            for _ in 0..1000 {
                let ns = (stream.unit() * 10f64.powi(digits)) as u64;
                let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
                assert_eq!(seconds(ns as f64).to_bits(), text.parse::<f64>().expect("a number").to_bits(), "{text}");
            }
        }
    }
}
