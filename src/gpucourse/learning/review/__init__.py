"""An instructor's checks of a bundle: the learner's edits, and whether its runs have the same results when they are
repeated."""
