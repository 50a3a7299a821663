//! Connections come and go, and each new one takes the memory of one that is over.

/// `fresh`, in the memory of a former one where there is one.
pub fn renewed<T>(former: Option<Box<T>>, fresh: T) -> Box<T> {
    let Some(mut memory) = former else { return Box::new(fresh) };
    *memory = fresh;
    memory
}
