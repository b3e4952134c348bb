"use strict";
// Draws the charts of the page, lazily on screen and all of them for print, and offers them as SVG and CSV.
(() => {
  const payload = JSON.parse(document.getElementById("wulf-data").textContent);
  const root = document.documentElement;
  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const charts = new Map(); // figure id → {element, figure, variant, view, drawn}
  const views = {};
  let printing = false;

  const themeName = () => {
    if (printing) return "light";
    return root.dataset.theme || (systemDark.matches ? "dark" : "light");
  };

  function rows(columns) {
    const names = Object.keys(columns);
    const count = names.length ? columns[names[0]].length : 0;
    return Array.from({ length: count }, (_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  }

  function specification(chart, theme, width) {
    const datasets = {};
    for (const [name, columns] of Object.entries(chart.variant.datasets)) datasets[name] = rows(columns);
    const config = structuredClone(payload.themes[theme]);
    // A colour scale stays across: upright it would leave no room for the chart.
    if (width < 520)
      config.legend = { ...config.legend, columns: 1, direction: undefined, symbolDirection: "vertical", gradientDirection: "horizontal" };
    // Rows with words beside them need room; where there is less, the words stand above the marks.
    const spec = structuredClone((width < 760 && chart.figure.narrow) || chart.figure.spec);
    // Its equations take lines of their own there.
    if (width < 520 && chart.element.dataset.kind === "regression") spec.height += 110;
    // Vega makes the description the accessible name of the drawing, and of the SVG that is downloaded.
    return { ...spec, width, datasets, config, description: chart.variant.summary };
  }

  // `ast` makes Vega interpret its expressions, so the page needs no eval and can forbid it.
  function embed(target, chart, theme, width) {
    const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, tooltip: { theme } };
    return vegaEmbed(target, specification(chart, theme, width), options);
  }

  function widthOf(chart) {
    // On paper box plots stand side by side.
    if (printing) return chart.element.dataset.kind === "spread" ? 330 : 660;
    const own = chart.element.clientWidth;
    const main = document.getElementById("main");
    return own || main.clientWidth - 2 * parseFloat(getComputedStyle(main).paddingLeft) - 2;
  }

  async function draw(chart) {
    if (!chart.variant) return;
    const state = `${chart.variant.label}|${themeName()}|${widthOf(chart)}`;
    if (chart.drawn === state) return;
    chart.drawn = state;
    const plot = chart.element.querySelector(".plot");
    const result = await embed(plot, chart, themeName(), widthOf(chart));
    if (chart.drawn !== state) return result.finalize();
    if (chart.view) chart.view.finalize();
    chart.view = result.view;
    views[chart.element.id] = result.view;
  }

  const nearScreen = (chart) => {
    const box = chart.element.getBoundingClientRect();
    return box.width > 0 && box.bottom > -400 && box.top < innerHeight + 400;
  };
  const redraw = () => charts.forEach((chart) => nearScreen(chart) && draw(chart));

  // Charts out of sight are drawn while the browser has nothing else to do.
  function drawRest() {
    const next = [...charts.values()].find((chart) => !chart.drawn && chart.variant);
    if (!next) return;
    draw(next).then(() => (window.requestIdleCallback || setTimeout)(drawRest));
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name.replace(/[^\w.-]+/g, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  async function svg(chart) {
    const result = await embed(document.createElement("div"), chart, "light", 720);
    const text = await result.view.toSVG();
    result.finalize();
    return text;
  }

  function csv(chart) {
    const columns = chart.variant.datasets.main;
    const quote = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const names = Object.keys(columns);
    const lines = rows(columns).map((row) => names.map((name) => quote(row[name])).join(","));
    return [names.join(","), ...lines, ""].join("\r\n");
  }

  async function download(chart, kind) {
    if (!chart.variant) return;
    const name = [payload.run, chart.element.id, chart.variant.label].filter(Boolean).join("-");
    if (kind === "svg") save(`${name}.svg`, "image/svg+xml", await svg(chart));
    else save(`${name}.csv`, "text/csv", csv(chart));
  }

  function choosePair(select) {
    const section = document.getElementById(select.dataset.operation);
    for (const block of section.querySelectorAll(".pair-detail")) block.hidden = block.dataset.pair !== select.value;
    const label = payload.pairs[section.id][Number(select.value)];
    section.querySelector(".chosen").textContent = label;
    for (const chart of charts.values()) {
      if (!section.contains(chart.element) || !chart.figure.variants[0].label) continue;
      chart.variant = chart.figure.variants.find((variant) => variant.label === label);
      const plot = chart.element.querySelector(".plot");
      const caption = chart.variant ? chart.variant.caption : `Not drawn: no line was fitted for ${label}.`;
      plot.hidden = !chart.variant;
      plot.setAttribute("aria-label", chart.variant ? chart.variant.summary : caption);
      chart.element.querySelector("figcaption").textContent = caption;
      for (const button of chart.element.querySelectorAll("button")) button.disabled = !chart.variant;
      draw(chart);
    }
  }

  function chooseOperation(id) {
    for (const section of document.querySelectorAll("section.operation")) section.hidden = section.id !== id;
    redraw();
  }

  function show(id) {
    const radio = document.querySelector(`input[name=operation][value="${id}"]`);
    if (radio) radio.checked = true;
    chooseOperation(id);
  }

  function labelTheme() {
    const dark = themeName() === "dark";
    document.getElementById("theme").textContent = dark ? "Light" : "Dark";
  }

  function print(on) {
    printing = on;
    // Vega draws in microtasks: they run before the page is laid out on paper.
    if (on) charts.forEach(draw);
    else redraw();
  }

  // Findings: only those of the chosen severities that contain all words that are searched for.
  function sieve(form) {
    const audit = form.closest(".audit");
    const wanted = new Set([...form.querySelectorAll("input[name=severity]:checked")].map((box) => box.value));
    const words = form.elements.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (element) => words.every((word) => element.dataset.words.includes(word));
    const findings = [...audit.querySelectorAll(".findings > li")];
    findings.forEach((item) => { item.hidden = !(wanted.has(item.dataset.severity) && has(item)); });
    const left = findings.filter((item) => !item.hidden).length;
    form.querySelector(".left").textContent = left === findings.length ? "" : `${left} of ${findings.length} findings shown`;
  }

  function listen() {
    document.querySelectorAll("form.sieve").forEach((form) => {
      form.addEventListener("input", () => sieve(form));
      form.addEventListener("submit", (event) => event.preventDefault());
      sieve(form);
    });
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.theme = themeName() === "dark" ? "light" : "dark";
      labelTheme();
      redraw();
    });
    systemDark.addEventListener("change", () => { labelTheme(); redraw(); });
    document.addEventListener("click", (event) => {
      const button = event.target.closest("button[data-save]");
      if (button) download(charts.get(button.closest("figure").id), button.dataset.save);
      // A link to figures of an operation that is not shown.
      const link = event.target.closest("a[data-operation]");
      if (link) show(link.dataset.operation);
    });
    document.addEventListener("change", (event) => {
      if (event.target.matches("select[data-operation]")) choosePair(event.target);
      if (event.target.matches("input[name=operation]")) chooseOperation(event.target.value);
    });
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    let waiting = 0;
    addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redraw, 150); });
    addEventListener("scroll", () => { if (!printing) redraw(); }, { passive: true });
  }

  for (const [id, figure] of Object.entries(payload.figures)) {
    const element = document.getElementById(id);
    charts.set(id, { element, figure, variant: figure.variants[0], view: null, drawn: "" });
  }
  const checked = document.querySelector("input[name=operation]:checked");
  if (checked) chooseOperation(checked.value);
  // A browser may restore what was chosen before a reload.
  document.querySelectorAll("select[data-operation]").forEach((select) => select.value !== "0" && choosePair(select));
  labelTheme();
  listen();
  redraw();
  drawRest();
  window.wulf = { views, payload, csv: (id) => csv(charts.get(id)), svg: (id) => svg(charts.get(id)) };
})();
