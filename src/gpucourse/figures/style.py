"""The style of every picture: its colours, its markers, its font."""

# Okabe and Ito's colours, without yellow and black: people with any kind of colour vision can tell them apart
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
MAX_MARKS = 40  # a line with more points has no marks: they would hide it
INK, GREY, PALE = "#1a1a1a", "#6b6b6b", "#e3e3e3"

STYLE = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial", "sans-serif"],
    "font.size": 10,
    "svg.fonttype": "none",  # text stays text, so files are small and can be searched
    "svg.hashsalt": "gpucourse",  # the same metrics produce the same bytes
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign does not begin a formula
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}
