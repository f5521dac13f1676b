"""An instructor's checks of a bundle: the learner's edits, and whether its runs give the same results when repeated."""
