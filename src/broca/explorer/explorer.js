// The live page. Its state is the set, its gate and the prompt; the address carries it.
(() => {
  const find = (id) => document.getElementById(id);
  const about = JSON.parse(find("about").textContent);
  const token = new URLSearchParams(location.search).get("token") ?? "";
  const picture = document.querySelector("#grid svg");
  const { cells, neighbour } = gridOf(picture);
  const colours = new Map([...cells].map(([name, cell]) => [name, cell.getAttribute("class") ?? ""]));

  // ---- what the page asks
  const ask = (path, question, signal) => fetch(path, {
    method: question === undefined ? "GET" : "POST",
    headers: { "Content-Type": "application/json", "X-Token": token },
    body: question === undefined ? undefined : JSON.stringify(question),
    signal,
  });
  const answered = async (path, question) => {
    const reply = await ask(path, question);
    const data = await reply.json();
    if (!reply.ok) throw new Error(data.error ?? reply.statusText);
    return data;
  };
  const showError = (error) => { find("error").textContent = error ? error.message : ""; };

  // ---- the set
  let off = new Set();
  const undone = [];
  const scale = () => Number(find("scale").value);
  const question = () => ({ off: [...off], scale: scale() });
  const key = () => JSON.stringify([[...off].sort(), off.size ? scale() : 0]);
  const remember = () => {
    undone.push([...off]);
    if (undone.length > 200) undone.shift();
  };
  const show = () => {
    const word = scale() === 0 ? "off" : "scaled";
    for (const [name, cell] of cells) {
      const mark = off.has(name) ? word : colours.get(name);
      cell.setAttribute("class", `${mark}${name === current ? " here" : ""}`);
    }
    const names = [...cells.keys()].filter((name) => off.has(name));
    const done = scale() === 0 ? "off" : `at ${scale()}`;
    find("off").textContent = names.length
      ? `${names.length} of ${cells.size} ${done}: ${names.join(", ")}` : "All components are on.";
    find("ablated-title").textContent = scale() === 0 || !off.size
      ? "Without the set" : `With the set at ${scale()}`;
    find("scale-shown").textContent = scale();
    find("undo").disabled = !undone.length;
    find("clear").disabled = !off.size;
    const state = new URLSearchParams({ off: names.join("+"), scale: scale(),
      prompt: find("prompt").value });
    history.replaceState(null, "", `#${state}`);
    for (const chip of chips.values()) chip.show();
  };
  const become = (names) => {
    remember();
    off = new Set(names.filter((name) => cells.has(name)));
    show();
  };
  find("undo").addEventListener("click", () => { off = new Set(undone.pop()); show(); });
  find("clear").addEventListener("click", () => become([]));
  find("scale").addEventListener("input", () => show());
  for (const name of Object.keys(about.sets)) find("sets").append(make("option", name, { value: name }));
  find("sets").addEventListener("change", (event) => {
    if (event.target.value) become(about.sets[event.target.value]);
  });
  find("names").addEventListener("keydown", async (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    showError();
    try { become(await answered("api/set", { text: event.target.value })); } catch (error) { showError(error); }
  });

  // ---- the grid: click, drag, keys
  let current = null;
  let painting = null;
  const nameAt = (event) => event.target.dataset?.component;
  const paint = (name) => {
    if (!name || off.has(name) === painting) return;
    if (painting) off.add(name); else off.delete(name);
    show();
  };
  picture.addEventListener("pointerdown", (event) => {
    const name = nameAt(event);
    if (!name || event.button) return;
    event.target.releasePointerCapture?.(event.pointerId);
    remember();
    painting = !off.has(name);
    current = name;
    paint(name);
  });
  picture.addEventListener("pointerover", (event) => { if (painting !== null) paint(nameAt(event)); });
  addEventListener("pointerup", () => { painting = null; });
  addEventListener("pointercancel", () => { painting = null; });
  find("grid").addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "z") { find("undo").click(); event.preventDefault(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === " " && current) {
      event.preventDefault();
      remember();
      if (off.has(current)) off.delete(current); else off.add(current);
      show();
    } else if (event.key.toLowerCase() === "s" && current) {
      const layer = current.match(/^L\d+/)[0];
      const row = [...cells.keys()].filter((name) => name.match(/^L\d+/)[0] === layer);
      const all = row.every((name) => off.has(name));
      become(all ? [...off].filter((name) => !row.includes(name)) : [...off, ...row]);
    } else {
      const name = neighbour(event, current);
      if (name) { current = name; show(); }
    }
  });

  // ---- answers
  let stopping = null;
  const rows = [[], []];
  const visible = (text) => text.replace(/\n/g, "⏎\n") || "∅";
  const likely = (step) => {
    const box = find("likely");
    const table = make("table");
    table.append(make("caption", `Next-token probabilities, token ${step + 1}`));
    const head = make("tr");
    for (const word of ["intact", "p", find("ablated-title").textContent.toLowerCase(), "p"]) {
      head.append(make("th", word, { scope: "col" }));
    }
    table.append(head);
    const lists = rows.map((row) => row[step]?.likely ?? []);
    for (let n = 0; n < Math.max(lists[0].length, lists[1].length); n += 1) {
      const line = make("tr");
      for (const list of lists) {
        const [text, p] = list[n] ?? ["", ""];
        line.append(make("td", list[n] ? visible(text) : "", { className: "text" }));
        line.append(make("td", p === "" ? "" : p.toFixed(3)));
      }
      table.append(line);
    }
    box.replaceChildren(table);
    box.hidden = false;
  };
  let firstParted = null;
  const drawToken = (row, step) => {
    const piece = rows[row][step];
    const element = make("button", piece.text, { type: "button", className: "token" });
    element.title = `p ${piece.likely[0][1].toFixed(3)}`;
    element.addEventListener("click", () => likely(step));
    find(`answer-${row}`).append(element);
    piece.element = element;
    const counterpart = rows[1 - row][step];
    if (firstParted === null && counterpart && counterpart.likely[0][0] !== piece.likely[0][0]) {
      firstParted = step;
      for (const part of [counterpart.element, element]) part.classList.add("parted");
      find("parted").textContent = `The answers part at token ${step + 1}.`;
    }
  };
  find("question").addEventListener("submit", async (event) => {
    event.preventDefault();
    stopping?.abort();
    stopping = new AbortController();
    const mine = stopping;
    showError();
    show();
    firstParted = null;
    find("parted").textContent = "";
    find("likely").hidden = true;
    rows.forEach((row, number) => { row.length = 0; find(`answer-${number}`).replaceChildren(); });
    find("stop").hidden = false;
    try {
      const reply = await ask("api/answer", { ...question(), prompt: find("prompt").value,
        longest: Number(find("longest").value), chat: find("chat")?.checked ?? false }, mine.signal);
      if (!reply.ok) throw new Error((await reply.json()).error);
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let partial = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done || mine !== stopping) break;
        const lines = (partial + value).split("\n");
        partial = lines.pop();
        for (const line of lines) {
          const got = JSON.parse(line);
          if (got.error) throw new Error(got.error);
          if (got.end) {
            find(`answer-${got.row}`).append(make("span", got.end === "stop" ? " ■" : " …",
              { className: "ended", title: `ended: ${got.end}` }));
            continue;
          }
          rows[got.row].push(got);
          drawToken(got.row, rows[got.row].length - 1);
        }
      }
      if (firstParted === null && rows[0].length !== rows[1].length) {
        find("parted").textContent = "One answer ends where the other goes on.";
      } else if (firstParted === null && rows[0].length) {
        find("parted").textContent = "Both answers are the same.";
      }
    } catch (error) {
      if (error.name !== "AbortError") showError(error);
    } finally {
      if (mine === stopping) find("stop").hidden = true;
    }
  });
  find("stop").addEventListener("click", () => { stopping?.abort(); find("stop").hidden = true; });
  find("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      find("question").requestSubmit();
    }
  });
  find("prompt").addEventListener("change", () => show());

  // ---- tasks
  const chips = new Map();
  const addTask = (task) => {
    const box = make("div", "", { className: "chip" });
    const score = make("p", "not measured", { className: "score old" });
    let scored = null;
    const button = (text, run) => {
      const element = make("button", text, { type: "button" });
      element.setAttribute("aria-label", `${text}: ${task}`);
      element.addEventListener("click", async () => {
        element.disabled = true;
        showError();
        try { await run(); } catch (error) { showError(error); } finally { element.disabled = false; }
      });
      return element;
    };
    const show = () => { score.classList.toggle("old", scored !== key()); };
    const bar = make("div", "", { className: "controls" });
    bar.append(
      button("Score", async () => {
        const requested = key();
        const got = await answered("api/score", { ...question(), task });
        scored = requested;
        score.textContent = `${got.intact.toFixed(3)} → ${got.score.toFixed(3)}; lost ` +
          `${points(got.drop.value)} points [${points(got.drop.low)}, ${points(got.drop.high)}], ` +
          `${got.items} items`;
        show();
      }),
      button("What adds here?", async () => {
        const got = await answered("api/slopes", { ...question(), task });
        const most = Math.max(...Object.values(got).map(Math.abs)) || 1;
        for (const [name, value] of Object.entries(got)) {
          const step = Math.round((16 * Math.abs(value)) / most);
          colours.set(name, step ? `${value < 0 ? "n" : "p"}${step}` : "");
        }
        find("key").textContent = `Colour: what each component adds to ${task} under the present ` +
          `gates (slope of the answer's probability; orange: worse without it, full colour at ` +
          `${most.toPrecision(2)}).`;
        window.broca.show();
      }),
      button("Verify this set", async () => {
        find("verdict").textContent = `Verifying on ${task}: random sets, members, other tasks …`;
        try {
          const got = await answered("api/verify", { task, off: [...off] });
          const link = make("a", "all that was measured", { target: "_blank",
            href: `verification/${got.page}${token ? `?token=${token}` : ""}` });
          find("verdict").replaceChildren(make("b", `${got.label}: `), `${got.text} `, link);
        } catch (error) { find("verdict").textContent = ""; throw error; }
      }),
    );
    box.append(make("h3", task), score, bar);
    find("chips").append(box);
    chips.set(task, { show });
  };
  answered("api/tasks").then((names) => {
    names.forEach(addTask);
    if (!names.length) find("chips").append(make("p", "No tasks suit this model: name some in `tasks`."));
    find("chips").dataset.ready = "";
  }).catch(showError);

  // ---- what is going on, for all tabs
  const watch = async () => {
    if (!document.hidden) {
      try {
        const now = await answered("api/status");
        const parts = [];
        if (now.queued) parts.push(`${now.queued} questions wait`);
        if (now.measuring) parts.push(`${now.measuring}${now.waiting ? `, ${now.waiting} more wait` : ""}`);
        find("busy").textContent = parts.length ? `Busy: ${parts.join("; ")}.` : "";
      } catch { find("busy").textContent = "The model does not answer: is `broca explore` still running?"; }
    }
    setTimeout(watch, 1000);
  };
  watch();

  // ---- what leaves the page
  const copied = async (id, text) => {
    try { await navigator.clipboard.writeText(text); } catch { prompt("Copy:", text); return; }
    const before = find(id).innerHTML;
    find(id).textContent = "Copied";
    setTimeout(() => { find(id).innerHTML = before; }, 1200);
  };
  find("copy").addEventListener("click", () => copied("copy", [...off].join("+")));
  find("link").addEventListener("click", () => copied("link", location.href));
  find("command").addEventListener("click", () => copied("command",
    `broca verify ${about.model} --task ${[...chips.keys()][0] ?? "TASK"} --heads ${[...off].join("+")}`));
  find("export").addEventListener("click", () => copied("export",
    `broca export ${about.model} --heads ${[...off].join("+")} --scale ${scale()} --to DIR`));
  find("json").addEventListener("click", () => {
    const text = JSON.stringify({ model: about.model, components: [...off], scale: scale() }, null, 2);
    save("components.json", "application/json", `${text}\n`);
  });

  // ---- the state of the address
  window.broca = { show };
  const state = new URLSearchParams(location.hash.slice(1));
  find("prompt").value = state.get("prompt") ?? "";
  if (state.has("scale")) find("scale").value = state.get("scale");
  off = new Set((state.get("off") ?? "").split(/[+ ]/).filter((name) => cells.has(name)));
  if (about.unit) find("key").textContent = `Colour: ${about.unit} (orange: worse without it).`;
  show();
})();
