//! What applications ask for: web users, bulk transfers and other demands.
