"""The live test bed: a scenario between real TCP stacks, on this machine or in a kernel of virtual time."""
