"use strict";
document.documentElement.classList.add("script");

// The book: sections that contain all the words typed.
const search = document.getElementById("search");
if (search) {
  const items = [...document.querySelectorAll("li[data-words]")].map((item) => ({
    item, words: item.dataset.words, low: `${item.textContent} ${item.dataset.words}`.toLowerCase() }));
  const find = () => {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const entry of items) {
      const hit = wanted.every((word) => entry.low.includes(word));
      hits += hit;
      entry.item.hidden = !hit;
      const at = wanted.length ? entry.words.toLowerCase().indexOf(wanted[0]) : -1;
      entry.item.lastElementChild.textContent = hit && at >= 0 ? ` … ${entry.words.slice(Math.max(0, at - 60), at + 120)} …` : "";
    }
    for (const section of document.querySelectorAll("section.found")) section.hidden = !section.querySelector("li:not([hidden])");
    document.getElementById("hits").textContent = wanted.length ? `${hits} ${hits === 1 ? "place" : "places"}` : "";
  };
  search.addEventListener("input", find);
  find();
}

// A number, a duration or a size, as its cell shows it; null for other text.
const scales = { ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, KiB: 1024, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const number = (text) => {
  const parts = [...text.replace(/,/g, "").matchAll(/([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([A-Za-z]*)/g)];
  if (!/^[-+]?\d/.test(text)) return null;
  return parts.reduce((sum, [, value, unit]) => sum + Number(value) * (scales[unit] ?? 1), 0);
};

// Tables that sort: numbers by value, other text by letters, missing values last.
const sort = (table, column, up) => {
  const body = table.tBodies[0];
  const key = (row) => row.cells[column].textContent.trim();
  const rows = [...body.rows].map((row) => ({ row, text: key(row), value: number(key(row)) }));
  const numeric = rows.filter((entry) => entry.value !== null).length > rows.length / 2;
  const absent = (entry) => entry.text === "" || entry.text === "–" || (numeric && entry.value === null);
  rows.sort((a, b) => absent(a) - absent(b)
    || (up ? 1 : -1) * (numeric ? a.value - b.value : a.text.localeCompare(b.text, "en", { numeric: true })));
  body.append(...rows.map((entry) => entry.row));
  for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", up ? "ascending" : "descending");
};
for (const table of document.querySelectorAll("table.sortable")) {
  if (table.tBodies[0].rows.length < 2) continue;
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, column, head.getAttribute("aria-sort") !== "ascending"));
  }
}

// Rows that contain all the words typed above their table.
for (const input of document.querySelectorAll("input.filter")) {
  const table = input.closest(".tools").nextElementSibling.querySelector("table");
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
    }
  });
}

// Logs: only the lines that contain the words typed.
const logFilter = document.getElementById("log-filter");
if (logFilter) {
  const logs = [...document.querySelectorAll("pre.log")].map((element) => ({ element, lines: element.textContent.split("\n") }));
  logFilter.addEventListener("input", () => {
    const wanted = logFilter.value.toLowerCase();
    let hits = 0;
    for (const { element, lines } of logs) {
      const kept = wanted ? lines.filter((line) => line.toLowerCase().includes(wanted)) : lines;
      element.textContent = kept.join("\n");
      hits += kept.length;
      if (wanted && kept.length) element.closest("details").open = true;
    }
    document.getElementById("log-hits").textContent = wanted ? `${hits} ${hits === 1 ? "line" : "lines"}` : "";
  });
  document.getElementById("log-open").addEventListener("click", () => {
    for (const { element } of logs) element.closest("details").open = true;
  });
}

// Charts: show the value under the pointer below the chart.
for (const figure of document.querySelectorAll("figure.chart")) {
  const caption = figure.querySelector(".value");
  const notes = caption.textContent;
  figure.addEventListener("pointerover", (event) => {
    const title = event.target.closest(".p")?.querySelector("title");
    caption.textContent = title ? title.textContent : notes;
  });
}

// Runs side by side: which runs are shown, and which run the others are compared with.
const compared = document.querySelector("table.compare");
if (compared) {
  const boxes = [...document.querySelectorAll("input.show-run")];
  const bases = [...document.querySelectorAll("input.base-run")];
  const onlyDifferences = document.getElementById("only-differences");
  const name = (column) => compared.tHead.rows[0].cells[column].querySelector("a").textContent;
  const difference = (base, value) => {
    if (base === undefined || value === undefined || base === value) return "";
    const signed = (amount) => `${amount > 0 ? "+" : ""}${amount.toLocaleString("en", { maximumSignificantDigits: 3 })}`;
    return base === 0 ? signed(value) : `${signed((value - base) / Math.abs(base) * 100)} %`;
  };
  const numberOf = (cell) => (cell.dataset.number === undefined ? undefined : Number(cell.dataset.number));
  const update = () => {
    const shown = boxes.filter((box) => box.checked).map((box) => Number(box.value));
    const base = Number(bases.find((radio) => radio.checked).value);
    document.getElementById("base-name").textContent = name(base);
    for (const box of boxes) compared.tHead.rows[0].cells[Number(box.value)].hidden = !box.checked;
    for (const row of compared.querySelectorAll("tbody tr:not(.group)")) {
      const texts = new Set(shown.map((column) => row.cells[column].firstChild.textContent.trim()));
      row.hidden = onlyDifferences.checked && texts.size < 2;
      row.classList.toggle("same", texts.size < 2);
      for (const box of boxes) {
        const cell = row.cells[Number(box.value)];
        cell.hidden = !box.checked;
        const delta = cell.querySelector(".delta");
        delta.dataset.first ??= delta.textContent; // the difference from the first column, with its mark
        delta.textContent = base === 1 ? delta.dataset.first : difference(numberOf(row.cells[base]), numberOf(cell));
      }
    }
  };
  for (const input of [...boxes, ...bases, onlyDifferences]) input.addEventListener("change", update);
}
