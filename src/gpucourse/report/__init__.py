"""The final report as a file: one page of HTML that opens offline, a PDF, or Markdown. Pure: a Report in, bytes out."""
