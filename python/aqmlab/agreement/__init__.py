"""Where simulator and test bed agree: the same comparison by several witnesses, quantity by quantity."""
