
// Two ticked results, side by side: their sets and the scores that both know.
(() => {
  const runs = JSON.parse(document.getElementById("comparable").textContent);
  const place = document.getElementById("compared");
  let ticked = [];
  const boxes = [...document.querySelectorAll("[data-compare]")];
  const tasks = (run) => Object.keys(run.scores);
  const comparable = (a, b) => tasks(a).some((task) => tasks(b).includes(task));
  const show = () => {
    const chosen = ticked.length && runs[Number(ticked[ticked.length - 1].dataset.compare)];
    for (const box of boxes) { // what has no task in common with the ticked one cannot be compared
      const run = runs[Number(box.dataset.compare)];
      box.disabled = Boolean(chosen) && !box.checked && !comparable(chosen, run);
      box.title = box.disabled ? `has no task in common with ${chosen.name}` : "";
    }
    if (ticked.length < 2) {
      place.replaceChildren(make("p", ticked.length ? "Tick one more." : "Tick two results.",
        { className: "note" }));
      return;
    }
    const [first, second] = ticked.map((box) => runs[Number(box.dataset.compare)]);
    const common = first.selected.filter((name) => second.selected.includes(name));
    const list = make("dl");
    const line = (name, text) => list.append(make("dt", name), make("dd", text || "none"));
    for (const run of [first, second]) {
      line(run.name, `${run.model}, ${run.task}: ${run.finding}`);
    }
    line("in both sets", common.join(", "));
    for (const [run, peer] of [[first, second], [second, first]]) {
      line(`only in ${run.name}`, run.selected.filter((n) => !peer.selected.includes(n)).join(", "));
    }
    const table = make("table");
    table.append(make("caption", "Points that each task loses without the set"));
    const head = make("tr");
    for (const text of ["task", first.name, second.name, "difference"]) {
      head.append(make("th", text, { scope: "col" }));
    }
    table.append(make("thead"));
    table.lastChild.append(head);
    const body = make("tbody");
    for (const task of new Set([...tasks(first), ...tasks(second)])) {
      const [a, b] = [first, second].map((run) => run.scores[task] &&
        run.scores[task][0] - run.scores[task][1]);
      const row = make("tr");
      row.append(make("th", task, { scope: "row" }), make("td", points(a)), make("td", points(b)),
        make("td", a === undefined || b === undefined ? "" : points(b - a)));
      body.append(row);
    }
    table.append(body);
    place.replaceChildren(list, table);
  };
  for (const box of boxes) {
    box.addEventListener("change", () => {
      ticked = ticked.filter((tick) => tick !== box);
      if (box.checked) ticked.push(box);
      while (ticked.length > 2) ticked.shift().checked = false;
      show();
    });
  }
})();
