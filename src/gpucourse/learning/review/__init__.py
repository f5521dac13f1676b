"""An instructor's checks of a bundle: its edits, and whether its runs give the same results when repeated."""
