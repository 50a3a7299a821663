//! What Python sees of aqmlab: bindings, nothing else.
