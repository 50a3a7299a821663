// A table that is wider than a sheet of paper is printed in pieces one below the other, each with its first column.
"use strict";
{
  const sheet = 680;  // pixels between the margins of A4 or letter
  const pieces = [];
  // Each cell with its first column and the one after its last.
  const placed = (table) => {
    const taken = [];
    return [...table.rows].map((row, y) => {
      let x = 0;
      return [...row.cells].map((cell) => {
        while (taken[y]?.[x]) x++;
        const found = { cell, from: x, to: x + cell.colSpan };
        for (let down = y; down < y + cell.rowSpan; down++)
          for (let across = x; across < found.to; across++) (taken[down] ??= [])[across] = true;
        return found;
      });
    });
  };
  const piece = (table, rows, from, to) => {
    const copy = table.cloneNode(true);
    for (const name of Object.keys(copy.dataset)) delete copy.dataset[name];
    [...copy.rows].forEach((row, y) => {
      const cells = [...row.cells];
      rows[y].forEach((at, k) => {
        const kept = Math.min(at.to, to) - Math.max(at.from, from);
        if (at.from > 0 && kept <= 0) cells[k].remove();
        else if (at.from > 0 && kept < at.to - at.from) cells[k].colSpan = kept;
      });
    });
    return copy;
  };
  addEventListener("beforeprint", () => {
    const type = matchMedia("print").matches ? 1 : 0.68;  // a table on paper against that on the screen
    for (const box of document.querySelectorAll(".scroll")) {
      const table = box.querySelector("table");
      if (!table || !table.offsetWidth) continue;
      const rows = placed(table), widths = [];
      box.classList.add("narrowest");
      for (const { cell, from, to } of rows.flat())
        if (to === from + 1) widths[from] = Math.max(widths[from] ?? 0, cell.offsetWidth * type);
      const isWide = table.offsetWidth * type > sheet;
      box.classList.remove("narrowest");
      if (!isWide) continue;
      const [first, ...others] = widths, room = sheet - first, all = others.reduce((sum, one) => sum + one, 0);
      const most = Math.min(room, all / Math.ceil(all / room) + Math.max(...others) / 2);
      const ends = [1];
      let taken = 0;
      others.forEach((width, k) => {
        if (taken && taken + width > most) {
          ends.push(k + 1);
          taken = 0;
        }
        taken += width;
      });
      ends.push(widths.length);
      if (ends.length < 3) continue;
      const whole = document.createElement("div");
      whole.className = "pieces";
      for (let k = 1; k < ends.length; k++) whole.append(piece(table, rows, ends[k - 1], ends[k]));
      box.after(whole);
      box.classList.add("in-pieces");
      pieces.push([box, whole]);
    }
  });
  addEventListener("afterprint", () => {
    for (const [box, whole] of pieces.splice(0)) {
      whole.remove();
      box.classList.remove("in-pieces");
    }
  });
}
