//! TCP endpoints as state machines: no sockets, no clock.
