//! This file gives demands to Python as JSON: distributions by their quantiles, connection vectors whole.

use scenario::Quantity as Of;
use serde_json::{Value, json};
use traffic::quantities::{self, Form, Unit};
use traffic::tmix::reading::{self, Malformed};

const PROBABILITIES: [(&str, f64); 7] =
    [("p10", 0.1), ("p25", 0.25), ("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

/// The quantities that a model draws.
pub fn quantities(model: &str) -> Value {
    quantities::quantities(model).iter().map(|drawn| quantity(drawn.name, drawn.unit, &drawn.form)).collect()
}

/// The quantity in the text of a file.
pub fn table_quantity(name: &str, text: &str) -> Result<Value, scenario::Error> {
    let (distribution, of) = scenario::read_table(name, text)?;
    let unit = match of {
        Of::Time => Unit::Seconds,
        Of::Size => Unit::Bytes,
        Of::Count => Unit::Count,
    };
    Ok(quantity(name, unit, &Form::Stated(distribution)))
}

/// The connection vectors in a text. Each has its start, whether it is concurrent, windows, round-trip time, losses,
/// and its units as end, wait and size.
pub fn vectors(text: &str) -> Result<Value, Malformed> {
    let set = reading::read(text)?;
    let rows = set.iter().map(|vector| {
        let units = vector.units().iter().map(|unit| json!([unit.end(), unit.wait().ns() / 1000, unit.bytes()]));
        json!({
            "start_us": vector.start().ns() / 1000,
            "is_concurrent": vector.is_concurrent(),
            "windows": vector.windows(),
            "rtt_us": vector.rtt().ns() / 1000,
            "losses": vector.loss(),
            "units": units.collect::<Vec<_>>(),
        })
    });
    Ok(rows.collect())
}

fn quantity(name: &str, unit: Unit, form: &Form) -> Value {
    let mean = form.mean();
    // No value carries a share of an infinite mean, nor of zero.
    let share = |mass: f64| (mean.is_finite() && mean > 0.0).then(|| mass / mean);
    let unit_name = match unit {
        Unit::Bytes => "bytes",
        Unit::Seconds => "s",
        Unit::Count => "",
    };
    let quantiles: serde_json::Map<String, Value> =
        PROBABILITIES.iter().map(|&(key, u)| (key.to_owned(), json!(form.quantile(u)))).collect();
    let bound = |x: f64| x.is_finite().then_some(x);
    let mut row = json!({
        "name": name,
        "unit": unit_name,
        "mean": bound(mean),
        "quantiles": quantiles,
        "share_of_largest": {"1%": share(form.mass_above(0.99)), "10%": share(form.mass_above(0.9))},
    });
    if unit == Unit::Bytes {
        let up_to: serde_json::Map<String, Value> = [("10kb", 1e4), ("1mb", 1e6)]
            .iter()
            .map(|&(key, x)| {
                let of_values = form.cumulative(x);
                let of_bytes = share(form.mass_above(of_values)).map(|above| 1.0 - above);
                (key.to_owned(), json!({"of_values": of_values, "of_bytes": of_bytes}))
            })
            .collect();
        row["up_to"] = Value::Object(up_to);
    }
    row
}
