//! Mathematics that gives the same bits on every machine: the platform's own `exp`, `ln` and `pow` do not.

/// e to the `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// The natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `x` to the `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The cube root.
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}

/// The gamma function.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// The standard normal distribution function.
pub fn normal_cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// `x` to a whole power by repeated squaring: exact operations only, and cheap for the powers queue laws need.
pub fn powi(x: f64, mut n: u64) -> f64 {
    let (mut result, mut square) = (1.0, x);
    while n > 0 {
        if n & 1 == 1 {
            result *= square;
        }
        square *= square;
        n >>= 1;
    }
    result
}

/// The standard normal quantile of `p` in (0, 1): Acklam's rational approximation, relative error below 1.2e-9.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.383_577_518_672_69e2,
        -3.066479806614716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] =
        [-5.447609879822406e1, 1.615858368580409e2, -1.556989798598866e2, 6.680131188771972e1, -1.328068155288572e1];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416];
    const LOW: f64 = 0.02425;
    let tail = |q: f64| {
        (((((C[0] * q + C[1]) * q + C[2]) * q + C[3]) * q + C[4]) * q + C[5])
            / ((((D[0] * q + D[1]) * q + D[2]) * q + D[3]) * q + 1.0)
    };
    if p < LOW {
        tail((-2.0 * ln(p)).sqrt())
    } else if p > 1.0 - LOW {
        -tail((-2.0 * ln(1.0 - p)).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        (((((A[0] * r + A[1]) * r + A[2]) * r + A[3]) * r + A[4]) * r + A[5]) * q
            / (((((B[0] * r + B[1]) * r + B[2]) * r + B[3]) * r + B[4]) * r + 1.0)
    }
}

/// The finalizer of splitmix64 (Steele, Lea and Flood 2014): a fixed mixing of 64 bits.
pub const fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_powers() {
        assert_eq!(powi(0.998, 0), 1.0);
        assert!((powi(0.998, 100) - 0.8185668046884279).abs() < 1e-14);
    }

    #[test]
    fn normal_quantiles() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959963985), (0.001, -3.090232306)] {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
            assert!((normal_cumulative(z) - p).abs() < 1e-9, "{p}");
        }
    }
}
