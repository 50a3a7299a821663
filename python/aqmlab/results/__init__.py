"""Results: folders of finished runs, how they are written, read, condensed and checked."""
