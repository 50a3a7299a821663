// Figures that answer to the pointer: what each curve is at its place, or the mark that is nearest, and curves that can be turned off.
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const drawings = [...figure.querySelectorAll("svg[data-plots]")]
    .map((svg) => ({ svg, plots: JSON.parse(svg.dataset.plots) }))
    .filter(({ plots }) => plots.length);
  if (!drawings.length) continue;

  const bar = document.createElement("div");
  bar.className = "pointer";
  const said = document.createElement("output");
  const what = drawings[0].plots[0].marks ? "mark" : "curve";
  const labels = new Set(drawings.flatMap(({ plots }) => plots.flatMap(({ curves }) => curves.map(({ label }) => label))));
  said.textContent = `Point at a ${what}, or tap it, to read it${labels.size > 1 ? `; tap a name to hide its ${what}s` : ""}.`;
  const off = new Set();
  // A piece of its curve, or of its colour, for the button of a name.
  const swatch = (label) => {
    const ids = drawings.flatMap(({ plots }) => plots.flatMap(({ curves }) => curves)).filter((one) => one.label === label).flatMap((one) => one.ids);
    const drawn = ids.flatMap((id) => drawings.flatMap(({ svg }) => [...(svg.getElementById(id)?.querySelectorAll("path, use") ?? [])]));
    const look = drawn.map((one) => one.style).find(({ stroke }) => stroke && stroke !== "none");
    if (!look) return "";
    const piece = document.createElement("i");
    piece.style.borderTop = `${look.strokeDasharray && look.strokeDasharray !== "none" ? "dashed" : "solid"} ${parseFloat(look.strokeWidth) > 2 ? 3 : 2}px ${look.stroke}`;
    return piece;
  };
  const show = () => {
    for (const { svg, plots } of drawings)
      for (const { curves } of plots)
        for (const { label, ids } of curves)
          for (const id of ids) {
            const drawn = svg.getElementById(id);
            if (drawn) drawn.style.display = off.has(label) ? "none" : "";
          }
  };
  if (labels.size > 1)
    for (const label of labels) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(swatch(label), label);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!off.delete(label)) off.add(label);
        button.setAttribute("aria-pressed", String(!off.has(label)));
        show();
      });
      bar.append(button);
    }
  bar.append(said);
  drawings.at(-1).svg.after(bar);

  // Corners of a curve within its SVG, from left to right; none of one that goes back.
  const corners = new Map();
  const cornersOf = (svg, id) => {
    if (!corners.has(id)) {
      const path = svg.getElementById(id)?.querySelector("path");
      const numbers = (path?.getAttribute("d").match(/-?\d*\.?\d+(?:e-?\d+)?/g) ?? []).map(Number);
      const found = [];
      for (let k = 0; k + 1 < numbers.length; k += 2) found.push([numbers[k], numbers[k + 1]]);
      corners.set(id, found.every(([x], k) => !k || x >= found[k - 1][0] - 0.2) ? found : []);
    }
    return corners.get(id);
  };
  const heightAt = (points, x) => {
    if (!points.length || x < points[0][0] || x > points.at(-1)[0]) return null;
    let after = points.findIndex(([px]) => px > x);
    if (after < 0) after = points.length - 1;
    const [x0, y0] = points[Math.max(0, after - 1)], [x1, y1] = points[after];
    return x1 > x0 ? y0 + ((y1 - y0) * (x - x0)) / (x1 - x0) : y1;
  };
  // Marks of what is shown, as SVGs of Matplotlib have them: copies, each at its place.
  const marksOf = (svg, { curves }) =>
    curves.flatMap(({ label, ids }) =>
      off.has(label)
        ? []
        : ids.flatMap((id) =>
            [...(svg.getElementById(id)?.querySelectorAll("use") ?? [])].map((mark) => ({
              label,
              x: Number(mark.getAttribute("x")),
              y: Number(mark.getAttribute("y")),
            })),
          ),
    );
  const value = ({ scale, ends: [low, high] }, share) =>
    scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
  const rounded = (number) => String(Number(number.toPrecision(3))).replace("-", "−");

  for (const { svg, plots } of drawings) {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "pointed");
    line.style.display = "none";
    svg.append(line);
    const away = () => {
      line.style.display = "none";
    };
    svg.addEventListener("pointerleave", away);
    const point = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      // Of a plot within another one the smaller.
      const over = plots
        .filter(({ box: [l, t, r, b] }) => at.x >= l && at.x <= r && at.y >= t && at.y <= b)
        .sort((one, other) => one.box[2] - one.box[0] - (other.box[2] - other.box[0]))[0];
      if (!over) return away();
      const [left, top, right, bottom] = over.box;
      if (over.marks) {
        const far = (mark) => Math.hypot(mark.x - at.x, mark.y - at.y);
        const nearest = marksOf(svg, over).sort((one, other) => far(one) - far(other))[0];
        if (!nearest) return away();
        for (const [name, to] of [["x1", nearest.x], ["x2", nearest.x], ["y1", top], ["y2", bottom]]) line.setAttribute(name, to);
        line.style.display = "";
        const [x, y] = [(nearest.x - left) / (right - left), (bottom - nearest.y) / (bottom - top)];
        said.textContent = `${nearest.label}: ${over.x.title} ${rounded(value(over.x, x))}; ${over.y.title} ${rounded(value(over.y, y))}`;
        return;
      }
      for (const [name, to] of [["x1", at.x], ["x2", at.x], ["y1", top], ["y2", bottom]]) line.setAttribute(name, to);
      line.style.display = "";
      const read = [];
      for (const { label, ids } of over.curves) {
        const y = off.has(label) ? null : heightAt(cornersOf(svg, ids[0]), at.x);
        if (y !== null) read.push(`${label} ${rounded(value(over.y, (bottom - y) / (bottom - top)))}`);
      }
      const x = rounded(value(over.x, (at.x - left) / (right - left)));
      said.textContent = `${over.x.title} ${x}: ${read.join(" · ") || "no curve"}; ${over.y.title}`;
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point); // a finger
  }
}
