// Draws the figures in the colours of the theme, and sorts tables. Runs after plotly, at the end of the page.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Set();

  // The style sheet defines the colours for light and dark.
  const theme = () => {
    const style = getComputedStyle(root);
    return (value) =>
      typeof value === "string" && /^\$[a-z]+[0-9]?$/.test(value)
        ? style.getPropertyValue(`--${value.slice(1)}`).trim() || value
        : value;
  };

  const resolved = (value, colour) => {
    if (Array.isArray(value)) return value.map((one) => resolved(one, colour));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, colour)]));
    }
    return colour(value);
  };

  const axis = (own, colour) => ({
    gridcolor: colour("$grid"),
    linecolor: colour("$muted"),
    zerolinecolor: colour("$muted"),
    automargin: true,
    fixedrange: false,
    ...own,
  });

  // Two figures fit side by side, and four on an A4 page.
  const onPaper = (place) => ({ width: 490, height: Math.min(620, 0.7 * parseFloat(place.style.height)) });

  const layoutOf = (own, colour, size) => ({
    ...own,
    ...size,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("$text"), family: "system-ui, sans-serif", size: 12 },
    margin: { l: 56, r: 16, t: 12, b: 44 },
    hoverlabel: { bgcolor: colour("$panel"), bordercolor: colour("$muted"), font: { color: colour("$text") }, align: "left" },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11 } },
    dragmode: false,
    xaxis: axis(own.xaxis, colour),
    yaxis: axis(own.yaxis, colour),
  });

  const draw = (key, printed) => {
    const place = document.getElementById(key);
    const colour = theme();
    const { data, layout } = resolved(figures[key], colour);
    const config = { responsive: true, displaylogo: false, displayModeBar: false, showTips: false };
    Plotly.react(place, data, layoutOf(layout, colour, printed ? onPaper(place) : {}), config);
    drawn.add(key);
  };

  // One figure at a time, so that a large page stays usable meanwhile.
  const waiting = Object.keys(figures);
  const soon = window.requestIdleCallback || ((callback) => setTimeout(callback, 1));
  const next = () => {
    const key = waiting.shift();
    if (key === undefined) {
      root.dataset.drawn = String(drawn.size);
      return;
    }
    draw(key);
    soon(next);
  };
  soon(next);

  const redraw = (printed) => drawn.forEach((key) => draw(key, printed));
  dark.addEventListener("change", () => redraw(false));

  window.addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
    waiting.splice(0).forEach((key) => draw(key));
    redraw(true);
  });
  window.addEventListener("afterprint", () => {
    delete root.dataset.theme;
    redraw(false);
  });

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if ("sort" in cell.dataset) return Number(cell.dataset.sort);
    return ["", "-"].includes(cell.textContent) ? null : cell.textContent;
  };

  // In both orders numbers come before texts, and absent values last.
  const order = (one, other, sign) => {
    const absent = [one === null, other === null];
    if (absent[0] || absent[1]) return absent[0] - absent[1];
    const numbers = [typeof one === "number", typeof other === "number"];
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    return sign * (numbers[0] ? one - other : one.localeCompare(other, "en", { numeric: true }));
  };

  document.querySelectorAll("table.sortable").forEach((table) => {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      heading.querySelector("button").addEventListener("click", () => {
        const ascending = heading.getAttribute("aria-sort") !== "ascending";
        headings.forEach((one) => one.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((one, other) => order(valueOf(one, column), valueOf(other, column), ascending ? 1 : -1));
        table.tBodies[0].append(...rows);
      });
    });
  });
})();
