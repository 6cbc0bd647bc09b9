"use strict";
// The library comes compressed within the page; nothing is fetched from anywhere.
async function unpacked(id) {
  const text = document.getElementById(id).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function colours(printing) {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  const ink = dark ? "#e8ecf1" : "#1d2530";
  const rule = dark ? "#303842" : "#dfe4ea";
  const axis = { gridcolor: rule, zerolinecolor: rule, linecolor: rule };
  return {
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font.color": ink,
    "hoverlabel.bgcolor": dark ? "#1c2229" : "#ffffff",
    ...Object.fromEntries(["xaxis", "yaxis"].flatMap((a) =>
      Object.entries(axis).map(([k, v]) => [`${a}.${k}`, v]))),
  };
}

// Dark lines on white paper are light lines on black.
const LIGHTER = { "#0072B2": "#56B4E9", "#009E73": "#4FD1A5", "#D55E00": "#FF8A3D", "#7F7F7F": "#B0B8C0",
  "#000000": "#FFFFFF" };

function trace_colours(place, printing) {
  const dark = !printing && matchMedia("(prefers-color-scheme: dark)").matches;
  if (!place.colours.length) return {};
  const shown = place.colours.map((c) => (dark && LIGHTER[c]) || c);
  return { "line.color": shown, "marker.color": shown };
}

async function draw() {
  const script = document.createElement("script");
  script.textContent = await unpacked("plotly");
  document.head.append(script);
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const drawn = [];
  for (const [id, figure] of Object.entries(figures)) {
    const place = document.getElementById(id);
    if (!place) continue;
    place.textContent = "";
    figure.layout.font = { family: getComputedStyle(document.body).fontFamily, size: 13 };
    await Plotly.newPlot(place, figure.data, figure.layout,
      { responsive: true, displayModeBar: false, displaylogo: false });
    // a heat map has no colour of its own to exchange
    place.colours = figure.data.map((t) => (t.marker || t.line || {}).color).filter(Boolean);
    drawn.push(place);
  }
  const paint = (printing) => Promise.all(drawn.map((p) =>
    Plotly.update(p, trace_colours(p, printing), colours(printing))));
  await paint(false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => paint(false));
  addEventListener("beforeprint", () => paint(true));
  addEventListener("afterprint", () => paint(false));
  document.body.dataset.drawn = "yes";
}

draw().catch(() => {
  for (const place of document.querySelectorAll(".figure")) {
    place.textContent = "This browser is too old to draw the chart.";
  }
});
