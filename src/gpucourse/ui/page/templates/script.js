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

// Charts: the value under the pointer, zoom, and other runs. `home` is the part of the drawing that is shown when nothing is
// zoomed; `view` is what is shown now. Both are in units of the drawing, so zooming only moves the marks.
const axisLabels = {
  number: (value) => {
    if (Math.abs(value) < 1e8 && value % (Math.abs(value) >= 1e6 ? 1e4 : 10) !== 0 && Number.isInteger(value)) return value.toLocaleString("en");
    const [, scale, letter] = [[1e12, 1e12, " T"], [1e9, 1e9, " G"], [1e6, 1e6, " M"], [1e5, 1e3, " k"]].find(([low]) => Math.abs(value) >= low) ?? [0, 1, ""];
    return (value / scale).toLocaleString("en", { maximumSignificantDigits: 6 }) + letter;
  },
  size: (value) => {
    const power = Math.max(0, Math.min(4, Math.floor(Math.log2(Math.abs(value) || 1) / 10)));
    return `${(value / 1024 ** power).toLocaleString("en", { maximumFractionDigits: 1 })} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
  },
};
const listTicks = ({ log, kind }, low, high) => {
  if (log && high / low > 10) {
    const base = kind === "size" ? 2 : 10;
    const first = Math.floor(Math.log(low) / Math.log(base));
    const powers = Array.from({ length: Math.ceil(Math.log(high / low) / Math.log(base)) + 2 }, (_, index) => base ** (first + index));
    const ticks = powers.flatMap((power) => (base === 10 && high / low < 200 ? [power, 2 * power, 5 * power] : [power]));
    const inside = ticks.filter((tick) => tick >= low && tick <= high);
    return inside.filter((_, index) => index % Math.ceil(inside.length / 8) === 0);
  }
  const rough = (high - low) / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) * power;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, index) => Number(((first + index) * step).toPrecision(12)));
};
const makeShape = (svg, name, attributes, text = "") => {
  const element = document.createElementNS(svg.namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
};
const axisOf = { x: "x", x1: "x", x2: "x", cx: "x", width: "x", y: "y", y1: "y", y2: "y", cy: "y", height: "y" };
const readMark = (element) => {
  const places = Object.keys(axisOf).filter((name) => element.hasAttribute(name)).map((name) => [name, Number(element.getAttribute(name))]);
  const corners = element.getAttribute("points")?.split(" ").map((corner) => corner.split(",").map(Number));
  return { element, places, corners };
};
const zoomable = (figure, svg, area) => {
  const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(area.getAttribute(name)));
  const box = { x: [x, x + width], y: [y, y + height] };
  const scales = { x: JSON.parse(svg.dataset.x), y: JSON.parse(svg.dataset.y) };
  const marks = [...area.querySelectorAll("circle, rect, line, polyline, text")].map(readMark);
  const runs = [...area.querySelectorAll("[data-run]")].map((group) => ({ group, marks: marks.filter((mark) => group.contains(mark.element)) }));
  const groups = { x: svg.querySelector(".ticks-x"), y: svg.querySelector(".ticks-y") };
  const ticks = { x: [...groups.x.childNodes], y: [...groups.y.childNodes] };
  const words = scales.x.kind === "word" ? [...groups.x.querySelectorAll("line, text")].map(readMark) : [];
  let home = box;
  let view = box;
  const place = (axis, at) => box[axis][0] + (at - view[axis][0]) * (box[axis][1] - box[axis][0]) / (view[axis][1] - view[axis][0]);
  const back = (axis, at) => view[axis][0] + (at - box[axis][0]) * (view[axis][1] - view[axis][0]) / (box[axis][1] - box[axis][0]);
  const valueAt = (axis, at) => {
    const { low, high, log } = scales[axis];
    const share = axis === "x" ? (at - box.x[0]) / width : (box.y[1] - at) / height;
    return log ? low * (high / low) ** share : low + share * (high - low);
  };
  const findPosition = (axis, value) => {
    const { low, high, log } = scales[axis];
    const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return place(axis, axis === "x" ? box.x[0] + share * width : box.y[1] - share * height);
  };
  const move = ({ element, places, corners }) => {
    for (const [name, value] of places) {
      const axis = axisOf[name];
      const scaled = (name === "width" || name === "height") ? place(axis, view[axis][0] + value) - box[axis][0] : place(axis, value);
      element.setAttribute(name, scaled.toFixed(1));
    }
    if (corners) element.setAttribute("points", corners.map(([left, top]) => `${place("x", left).toFixed(1)},${place("y", top).toFixed(1)}`).join(" "));
  };
  const drawTicks = (axis) => {
    const isHome = view[axis][0] === box[axis][0] && view[axis][1] === box[axis][1];
    if (axis === "x" && words.length) {
      for (const word of words) {
        move({ ...word, places: word.places.filter(([name]) => axisOf[name] === "x") });
        const at = place("x", word.places.find(([name]) => axisOf[name] === "x")[1]);
        word.element.classList.toggle("off", at < box.x[0] - 1 || at > box.x[1] + 1);
      }
      return;
    }
    if (isHome) return groups[axis].replaceChildren(...ticks[axis]);
    const [first, last] = view[axis].map((at) => valueAt(axis, at)).sort((a, b) => a - b);
    groups[axis].replaceChildren(...listTicks(scales[axis], first, last).flatMap((tick) => {
      const at = findPosition(axis, tick);
      const label = axisLabels[scales[axis].kind](tick);
      return axis === "y"
        ? [makeShape(svg, "line", { class: "grid", x1: box.x[0], x2: box.x[1], y1: at, y2: at }), makeShape(svg, "text", { class: "small", x: box.x[0] - 8, y: at + 4, "text-anchor": "end" }, label)]
        : [makeShape(svg, "line", { class: "axis", x1: at, x2: at, y1: box.y[1], y2: box.y[1] + 5 }), makeShape(svg, "text", { class: "small", x: at, y: box.y[1] + 20, "text-anchor": "middle" }, label)];
    }));
  };
  const draw = () => {
    marks.forEach(move);
    drawTicks("x");
    drawTicks("y");
    svg.classList.toggle("zoomed", view !== home);
    for (const button of buttons.slice(1)) button.disabled = view === home;
  };
  const show = (part) => {
    const inside = (axis) => [Math.max(part[axis][0], home[axis][0]), Math.min(part[axis][1], home[axis][1])];
    const next = { x: inside("x"), y: inside("y") };
    const share = (axis) => (next[axis][1] - next[axis][0]) / (home[axis][1] - home[axis][0]);
    if (share("x") < 0.01 || share("y") < 0.01) return;
    view = share("x") > 0.999 && share("y") > 0.999 ? home : next;
    draw();
  };
  const scaleBy = (factor, center = { x: (view.x[0] + view.x[1]) / 2, y: (view.y[0] + view.y[1]) / 2 }) => {
    const stretch = (axis) => {
      const length = Math.min((view[axis][1] - view[axis][0]) * factor, home[axis][1] - home[axis][0]);
      const share = (center[axis] - view[axis][0]) / (view[axis][1] - view[axis][0]);
      const start = Math.min(Math.max(center[axis] - share * length, home[axis][0]), home[axis][1] - length);
      return [start, start + length];
    };
    show({ x: stretch("x"), y: stretch("y") });
  };
  const pan = (axis, share) => {
    const length = view[axis][1] - view[axis][0];
    const start = Math.min(Math.max(view[axis][0] + share * length, home[axis][0]), home[axis][1] - length);
    show({ ...view, [axis]: [start, start + length] });
  };
  const reset = () => { view = home; draw(); };
  const fit = () => {
    const shown = runs.filter(({ group }) => !group.classList.contains("off")).flatMap((run) => run.marks);
    const reach = (axis) => {
      const places = shown.flatMap(({ element, places: own, corners }) => (element.tagName === "text" || element.tagName === "rect" ? []
        : [...own.filter(([name]) => axisOf[name] === axis).map(([, value]) => value), ...(corners ?? []).map((corner) => corner[axis === "x" ? 0 : 1])]));
      const low = places.reduce((least, value) => Math.min(least, value), box[axis][0]);
      const high = places.reduce((most, value) => Math.max(most, value), box[axis][1]);
      const room = (high - low) * 0.03;
      return [low < box[axis][0] ? low - room : low, high > box[axis][1] ? high + room : high];
    };
    home = { x: reach("x"), y: reach("y") };
    reset();
  };
  const toolbar = document.createElement("div");
  toolbar.className = "zoom";
  const buttons = [["+", "Zoom in", () => scaleBy(1 / 1.6)], ["−", "Zoom out", () => scaleBy(1.6)], ["Reset", "Show the whole chart", reset]].map(([text, name, act]) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text, title: name });
    button.setAttribute("aria-label", name);
    button.addEventListener("click", act);
    return button;
  });
  toolbar.append(...buttons);
  figure.append(toolbar);
  svg.classList.add("zoomable");
  svg.tabIndex = 0;
  const keys = { "+": () => scaleBy(1 / 1.6), "=": () => scaleBy(1 / 1.6), "-": () => scaleBy(1.6), "0": reset, Escape: reset,
    ArrowLeft: () => pan("x", -0.2), ArrowRight: () => pan("x", 0.2), ArrowUp: () => pan("y", -0.2), ArrowDown: () => pan("y", 0.2) };
  svg.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey || (view === home && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    keys[event.key]();
  });
  const pointAt = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const clamp = (value, [low, high]) => Math.min(Math.max(value, low), high);
    return { x: clamp(point.x, box.x), y: clamp(point.y, box.y) };
  };
  let begin = null;
  const selection = makeShape(svg, "rect", { class: "selection" });
  const span = (event) => {
    const end = pointAt(event);
    const across = [begin.x, end.x].sort((a, b) => a - b);
    const down = [begin.y, end.y].sort((a, b) => a - b);
    return { x: across, y: down[1] - down[0] < 12 || event.pointerType === "touch" ? box.y : down };
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    begin = pointAt(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!begin) return;
    const part = span(event);
    for (const [name, value] of [["x", part.x[0]], ["width", part.x[1] - part.x[0]], ["y", part.y[0]], ["height", part.y[1] - part.y[0]]]) selection.setAttribute(name, value);
    if (part.x[1] - part.x[0] > 6) svg.append(selection);
  });
  svg.addEventListener("pointerup", (event) => {
    if (!begin) return;
    const part = span(event);
    begin = null;
    selection.remove();
    if (part.x[1] - part.x[0] > 6) show({ x: part.x.map((at) => back("x", at)), y: part.y.map((at) => back("y", at)) });
  });
  svg.addEventListener("pointercancel", () => { begin = null; selection.remove(); });
  svg.addEventListener("dblclick", reset);
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
    event.preventDefault();
    const point = pointAt(event);
    scaleBy(event.deltaY < 0 ? 1 / 1.25 : 1.25, { x: back("x", point.x), y: back("y", point.y) });
  }, { passive: false });
  draw();
  return (number, isShown) => {
    for (const { group } of runs) if (group.dataset.run === number) group.classList.toggle("off", !isShown);
    fit();
  };
};
const enhanceChart = (figure) => {
  const caption = figure.querySelector(".value");
  const notes = caption.textContent;
  figure.addEventListener("pointerover", (event) => {
    const title = event.target.closest(".p")?.querySelector("title");
    caption.textContent = title ? title.textContent : notes;
  });
  const svg = figure.querySelector("svg[data-x]");
  const area = svg?.querySelector(".area");
  return area ? zoomable(figure, svg, area) : () => {};
};
const showRun = [...document.querySelectorAll("figure.chart")].map(enhanceChart);
for (const box of document.querySelectorAll("input.show-run")) {
  const update = () => { for (const show of showRun) show(box.dataset.run, box.checked); };
  box.addEventListener("change", update);
}

// Browsers break a line after a hyphen: the options of a command, as in --nodes, stay whole.
const texts = document.createTreeWalker(document.querySelector("main") || document.body, NodeFilter.SHOW_TEXT);
const optionTexts = [];
while (texts.nextNode()) {
  const node = texts.currentNode;
  if (/(^|\s)--\w/.test(node.data) && !node.parentElement.closest("pre, script, style, svg")) optionTexts.push(node);
}
for (const node of optionTexts) {
  node.replaceWith(...node.data.split(/(?<=^|\s)(--\w[\w-]{0,30})/).map((words, place) => {
    if (place % 2 === 0) return words;
    const span = document.createElement("span");
    Object.assign(span, { className: "whole", textContent: words });
    return span;
  }));
}

// Copy buttons beside commands.
const addCopyButton = (code, before) => {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "copy", textContent: "Copy", title: "Copy to the clipboard" });
  const text = code.textContent.trim();
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // no access to the clipboard: the text is selected for Ctrl-C
      button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  before.after(button);
};
for (const block of document.querySelectorAll(".prose pre, pre.command")) {
  const wrapper = document.createElement("div");
  wrapper.className = "copyable";
  block.replaceWith(wrapper);
  wrapper.append(block);
  addCopyButton(block, block);
}
for (const code of document.querySelectorAll(":not(pre) > code")) {
  if (code.textContent.startsWith("gpucourse ") && !code.closest("a, summary, button, th, .prose")) addCopyButton(code, code);
}

// The side bar scrolls to the page that is open.
const here = document.querySelector(".side [aria-current=page]");
if (here) here.closest(".side").scrollTop = here.offsetTop - innerHeight / 2;

// Browsers without ::details-content show the side bar and the sections folded, unless they are opened here.
if (!CSS.supports("selector(::details-content)")) {
  for (const [fold, width] of [["details.side", "56.25rem"], ["details.sections", "72rem"]]) {
    const element = document.querySelector(fold);
    if (element) element.open = matchMedia(`(min-width: ${width})`).matches;
  }
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

// Logs: the lines of all ranks, by rank, level and words. A live page adds lines while the run goes on.
const MAX_LINES = 6000, FIRST_LINES = 1500; // of a log that grows, the first lines and the newest ones are kept
const makeLogView = (view) => {
  const find = (id) => document.getElementById(id);
  const tools = find("log-tools"), filter = find("log-filter"), ranks = find("log-ranks"), hits = find("log-hits");
  const levels = [...document.querySelectorAll("input.log-level")];
  const processes = [];
  const counts = { error: 0, warning: 0, info: 0 };
  let isShown = () => true, dropped = 0;

  const levelOf = (line) => line.dataset.level ??= line.className.split(" ").at(-1);
  const showCounts = () => {
    for (const box of levels) box.parentElement.querySelector(".dim").textContent = counts[box.value];
    find("log-error").disabled = counts.error === 0;
  };
  const update = () => {
    const off = new Set([...ranks.querySelectorAll("input:not(:checked)")].map((box) => box.value));
    const offLevels = new Set(levels.filter((box) => !box.checked).map((box) => box.value));
    const words = filter.value.toLowerCase();
    isShown = (line) => !off.has(line.dataset.process) && !offLevels.has(levelOf(line))
      && (!words || line.textContent.toLowerCase().includes(words));
    let shown = 0;
    for (const line of view.children) shown += !(line.hidden = !isShown(line));
    const whole = !words && !off.size && !offLevels.size;
    hits.textContent = whole ? "" : `${shown} of ${view.children.length} lines`;
  };
  const switchRanks = (on) => {
    for (const box of ranks.querySelectorAll("input")) box.checked = on;
    update();
  };
  const addProcesses = (added, off = new Set()) => {
    for (const [prefix, style, title] of added) {
      const label = document.createElement("label"), box = document.createElement("input"), name = document.createElement("b");
      Object.assign(box, { type: "checkbox", checked: !off.has(title), value: String(processes.length) });
      name.textContent = prefix;
      label.className = style;
      label.title = title;
      label.append(box, " ", name, " ");
      ranks.append(label);
      processes.push({ prefix, style });
    }
    ranks.hidden = processes.length < 2;
  };
  const add = (lines) => {
    const isAtEnd = view.scrollHeight - view.scrollTop - view.clientHeight < 40;
    for (const [process, level, text] of lines) {
      const line = document.createElement("span"), name = document.createElement("b");
      line.className = `${processes[process].style} ${level}`;
      line.dataset.process = process;
      name.textContent = processes[process].prefix;
      line.append(name, ` ${text}\n`);
      line.hidden = !isShown(line);
      view.append(line);
      counts[level] += 1;
    }
    while (view.children.length > MAX_LINES) {
      const oldest = view.children[FIRST_LINES + (dropped ? 1 : 0)];
      counts[levelOf(oldest)] -= 1;
      oldest.remove();
      if (!dropped) view.children[FIRST_LINES].before(Object.assign(document.createElement("span"), { className: "gap" }));
      dropped += 1;
      view.children[FIRST_LINES].textContent = `... ${dropped.toLocaleString("en")} lines are left out here\n`;
    }
    showCounts();
    if (isAtEnd) view.scrollTop = view.scrollHeight;
  };

  for (const box of [filter, ...levels, ranks]) box.addEventListener(box === filter ? "input" : "change", update);
  for (const [text, on] of [["All", true], ["None", false]]) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    button.addEventListener("click", () => switchRanks(on));
    ranks.append(button, " ");
  }
  const wrap = find("log-wrap"), showWrapped = () => view.classList.toggle("wrap", wrap.checked);
  wrap.checked = innerWidth < 640;
  wrap.addEventListener("change", showWrapped);
  showWrapped();
  find("log-error").addEventListener("click", () => {
    filter.value = "";
    for (const box of levels) box.checked ||= box.value === "error";
    switchRanks(true);
    const line = view.querySelector(".error");
    view.querySelector(".here")?.classList.remove("here");
    line.classList.add("here");
    view.scrollIntoView({ block: "nearest" });
    view.scrollTop = line.offsetTop - view.clientHeight / 3;
    view.focus({ preventScroll: true });
  });
  addProcesses(JSON.parse(tools.dataset.processes));
  for (const line of view.children) counts[levelOf(line)] += 1;
  showCounts();
  return {
    take: ({ first, processes: added, lines }) => {
      let off;
      if (first) {
        view.replaceChildren();
        off = new Set([...ranks.querySelectorAll("label:has(input:not(:checked))")].map((label) => label.title));
        for (const label of ranks.querySelectorAll("label")) label.remove();
        Object.assign(counts, { error: 0, warning: 0, info: 0 });
        processes.length = dropped = 0;
      }
      addProcesses(added, off);
      if (off) update(); // the ranks that were switched off stay so
      add(lines);
      if (hits.textContent) update();
    },
  };
};
const logView = document.getElementById("log") && makeLogView(document.getElementById("log"));

// Live: a page that `open --serve` serves follows the runs that are under way, and is loaded again when it has changed.
const live = document.querySelector("meta[name=live]");
if (live) {
  const root = `/${location.pathname.split("/")[1]}/`;
  const main = document.querySelector("main");
  let box = document.getElementById("under-way"), stream = null, timer = 0, records = [], change = null;
  const ownRun = box?.dataset.run;
  if (!box) main.prepend(box = Object.assign(document.createElement("div"), { className: "box", id: "under-way", hidden: true }));

  const duration = (seconds) => {
    const minutes = Math.floor(seconds / 60), rest = `${Math.floor(seconds % 60)} s`;
    return minutes >= 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : minutes ? `${minutes} min ${rest}` : rest;
  };
  const showTimes = () => {
    for (const record of records) record.time.textContent = duration(record.seconds + (performance.now() - record.since) / 1000);
  };
  const showRuns = (newRecords) => {
    records = newRecords;
    box.hidden = !records.length && !change;
    box.replaceChildren(...records.map((record) => {
      const line = document.createElement("p"), name = document.createElement(record.id === ownRun ? "strong" : "a");
      Object.assign(record, { since: performance.now(), time: document.createElement("span") });
      if (name.tagName === "A") name.href = root + record.place;
      name.textContent = `${record.subject} ${record.id.split("-").at(-1)}`;
      line.append(Object.assign(document.createElement("span"), { className: "beat" }), name, `: ${record.progress}, `, record.time);
      if (record.id === ownRun) {
        const state = [...main.querySelectorAll("dt")].find((item) => item.textContent === "state");
        if (state) state.nextElementSibling.textContent = record.state;
      }
      return line;
    }), ...(change ? [change] : []));
    showTimes();
  };

  // What a person has typed and opened is restored after the page is loaded again.
  const fields = () => [...main.querySelectorAll("input[id], input.log-level")];
  const valueOf = (field) => (field.type === "search" ? field.value : field.checked);
  const key = `gpucourse ${location.pathname}`;
  const load = () => {
    const open = [...main.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
    const values = fields().map((field) => [field.id || field.value, valueOf(field)]);
    sessionStorage.setItem(key, JSON.stringify({ open, values, scroll: scrollY }));
    location.reload();
  };
  const restore = () => {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
    if (!kept) return;
    sessionStorage.removeItem(key);
    for (const summary of main.querySelectorAll("details > summary")) summary.parentElement.open = kept.open.includes(summary.textContent);
    const values = new Map(kept.values);
    for (const field of fields()) {
      const value = values.get(field.id || field.value);
      if (value === undefined || value === valueOf(field)) continue;
      field[field.type === "search" ? "value" : "checked"] = value;
      field.dispatchEvent(new Event(field.type === "search" ? "input" : "change", { bubbles: true }));
    }
    scrollTo(0, kept.scroll);
  };
  const isBusy = () => document.activeElement?.matches("input[type=search]") || !getSelection().isCollapsed;
  const offer = () => {
    if (!isBusy()) return load();
    change ??= Object.assign(document.createElement("button"), { type: "button", textContent: "This page has changed: show it" });
    change.addEventListener("click", load);
    box.hidden = false;
    box.append(change);
  };

  const close = () => {
    stream?.close();
    stream = null;
    clearTimeout(timer);
  };
  // A browser allows six connections to a server, so only a page that can be seen has one.
  const connect = () => {
    close();
    if (document.hidden) return;
    stream = new EventSource(`?events=${live.content}`);
    stream.addEventListener("runs", (event) => showRuns(JSON.parse(event.data)));
    stream.addEventListener("logs", (event) => logView?.take(JSON.parse(event.data)));
    stream.addEventListener("page", offer);
    stream.addEventListener("error", () => {
      if (stream?.readyState === EventSource.CLOSED) timer = setTimeout(connect, 10000);
    });
  };
  restore();
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && connect());
  setInterval(showTimes, 1000);
  connect();
}
