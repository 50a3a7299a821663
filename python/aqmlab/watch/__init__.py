"""A live page over runs under way: their notes are followed, and a server of this machine draws them in a browser."""
