(() => {
  const rows = [...document.querySelectorAll("[data-verdict]:not(button)")];
  const folded = document.querySelector("details.unrun");
  const buttons = [...document.querySelectorAll(".filter button")];
  const search = document.querySelector(".filter input");
  const choice = document.querySelector(".filter select");
  const none = document.querySelector(".none");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const apply = () => {
    const wanted = buttons.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.verdict);
    const words = (search ? search.value : "").toLowerCase().split(/\s+/).filter(Boolean);
    const study = choice ? choice.value : "";
    let shown = 0;
    rows.forEach((row, k) => {
      const fits =
        (!wanted.length || wanted.includes(row.dataset.verdict)) &&
        (!study || row.dataset.study === study) &&
        words.every((word) => texts[k].includes(word));
      row.hidden = !fits;
      shown += fits;
    });
    if (folded) {
      folded.hidden = !rows.some((row) => folded.contains(row) && !row.hidden);
      folded.open = !folded.hidden && (wanted.length > 0 || words.length > 0);
    }
    if (none) none.hidden = shown > 0;
  };
  buttons.forEach((b) =>
    b.addEventListener("click", () => {
      b.setAttribute("aria-pressed", b.getAttribute("aria-pressed") !== "true");
      apply();
    })
  );
  if (search) search.addEventListener("input", apply);
  if (choice) choice.addEventListener("change", apply);
})();
