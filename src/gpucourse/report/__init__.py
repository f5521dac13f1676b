"""The final report as a file: one page of HTML that opens offline, a PDF, or Markdown. The functions are pure: they turn a
Report into bytes."""
