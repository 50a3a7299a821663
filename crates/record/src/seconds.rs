//! Nanoseconds become the seconds that are written down.

/// Turns nanoseconds into the nearest number of seconds, up to 2^53 ns, which are 104 days.
///
/// It divides, since 1e-9 is no binary fraction: multiplied by it, 300,000,000 ns would be 0.30000000000000004 s. All
/// seconds in tables and summaries come from here; `aqmlab/results/times.py` does the same in Python.
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
