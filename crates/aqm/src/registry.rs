//! Every discipline there is: one row each. Nothing else names them.
