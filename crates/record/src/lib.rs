//! What a run leaves behind: histograms, tables and summaries.
