// The live page. Its state is the set, its gate and the prompt; the address carries it.
(() => {
  const find = (id) => document.getElementById(id);
  const about = JSON.parse(find("about").textContent);
  const { search } = location; // it carries the token
  const picture = document.querySelector("#grid svg");
  const { cells, neighbour } = gridOf(picture, (name) =>
    (name in about.effects ? `: ${about.effects[name].toFixed(3)}, ${about.unit}` : ""));
  const colours = new Map([...cells].map(([name, cell]) => [name, cell.getAttribute("class") ?? ""]));

  // ---- what the page asks
  const ask = (path, question, signal) => fetch(path + search, {
    method: question === undefined ? "GET" : "POST",
    headers: { "Content-Type": "application/json" },
    body: question === undefined ? undefined : JSON.stringify(question),
    signal,
  });
  const accepted = async (reply) => {
    if (reply.ok) return reply;
    if (reply.status === 413) throw new Error("This is larger than the 256 KiB that the page takes at once: send less.");
    throw new Error((await reply.json()).error);
  };
  const answered = async (path, question) => (await accepted(await ask(path, question))).json();
  const showError = (error, id = "error") => { find(id).textContent = error ? error.message : ""; };

  // ---- the set: what is off, and its gate; every change is shown, answered and scored
  let off = new Set();
  let gate = 0;
  let chosen = null;
  const undone = [];
  const rowsOfTasks = new Map();
  const question = () => ({ off: [...off], scale: gate });
  const key = () => JSON.stringify([[...off].sort(), off.size ? gate : 0]);
  const label = () => {
    if (!off.size) return "Without a set: nothing is off";
    const names = off.size > 4 ? `${off.size} components` : [...off].join(", ");
    return gate === 0 ? `Without ${names}` : `With ${names} at ${gate}`;
  };
  const remember = () => {
    undone.push([[...off], gate]);
    if (undone.length > 200) undone.shift();
  };
  const show = () => {
    const word = gate === 0 ? "off" : "scaled";
    for (const [name, cell] of cells) {
      const mark = off.has(name) ? word : colours.get(name);
      cell.setAttribute("class", `${mark}${name === current ? " here" : ""}`);
    }
    const names = [...cells.keys()].filter((name) => off.has(name));
    const done = gate === 0 ? "off" : `at ${gate}`;
    find("off").textContent = names.length
      ? `${names.length} of ${cells.size} ${done}: ${names.join(", ")}` : "All components are on.";
    find("scale").value = gate;
    find("scale-shown").textContent = gate;
    find("undo").disabled = !undone.length;
    find("clear").disabled = !off.size;
    for (const id of ["copy", "command", "export"]) find(id).disabled = !off.size;
    find("slopes").disabled = !chosen;
    find("verify").disabled = !chosen || !off.size;
    find("slopes").textContent = `What adds to ${chosen ?? "a task"}?`;
    find("verify").textContent = `Verify this set on ${chosen ?? "a task"}`;
    const state = new URLSearchParams({ off: names.join("+"), scale: gate, prompt: find("prompt").value });
    if (chosen) state.set("task", chosen);
    history.replaceState(null, "", `#${state}`);
    fade();
  };
  const fade = () => { // what is of another set or prompt is grey, and its title says so
    const old = shownAnswer.key !== null && shownAnswer.key !== `${key()} ${find("prompt").value}`;
    find("answer-0").classList.toggle("old", old && shownAnswer.prompt !== find("prompt").value);
    find("answer-1").classList.toggle("old", old);
    find("ablated-title").textContent = shownAnswer.title + (old ? " (before the change)" : "");
    for (const row of rowsOfTasks.values()) row.show();
    find("measure").hidden = live() || ![...rowsOfTasks.values()].some((row) => row.key !== key());
    for (const said of [find("known"), find("verdict")]) said.classList.toggle("old", (said.dataset.key ?? key()) !== key());
  };
  const changed = () => { show(); follow(); };
  const become = (names) => {
    remember();
    off = new Set(names.filter((name) => cells.has(name)));
    changed();
  };
  find("undo").addEventListener("click", () => {
    const [names, before] = undone.pop();
    off = new Set(names);
    gate = before;
    changed();
  });
  find("clear").addEventListener("click", () => become([]));
  let sliding = false; // one movement of the slider is undone at once
  find("scale").addEventListener("input", () => {
    if (!sliding) remember();
    sliding = true;
    gate = Number(find("scale").value);
    changed();
  });
  find("scale").addEventListener("change", () => { sliding = false; });
  for (const name of Object.keys(about.sets)) find("sets").append(make("option", name, { value: name }));
  find("sets").addEventListener("change", (event) => {
    if (event.target.value) become(about.sets[event.target.value]);
  });
  find("names").addEventListener("keydown", async (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    showError(null, "names-error");
    try { become(await answered("api/set", { text: event.target.value })); } catch (error) { showError(error, "names-error"); }
  });

  // ---- the grid: click, drag, keys
  let current = null;
  let painting = null;
  const nameAt = (event) => event.target.dataset?.component;
  const paint = (name) => {
    if (!name || off.has(name) === painting) return;
    if (painting) off.add(name); else off.delete(name);
    changed();
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
      changed();
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
  const FAST = 1500; // milliseconds within which a change is answered without being asked
  let stopping = null;
  let answerTook = 0;
  const shownAnswer = { key: null, prompt: "", title: "Without the set" };
  const rows = [[], []];
  const visible = (text) => text.replace(/\n/g, "⏎\n") || "∅";
  const likely = (step) => {
    const box = find("likely");
    const table = make("table");
    table.append(make("caption", `Next-token probabilities, token ${step + 1}`));
    const head = make("tr");
    for (const word of ["intact", "p", shownAnswer.title, "p"]) {
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
    if (firstParted === null && counterpart && counterpart.token !== piece.token) {
      firstParted = step;
      for (const part of [counterpart.element, element]) part.classList.add("parted");
      find("parted").textContent = `The answers part at token ${step + 1}.`;
    }
  };
  const begin = (title, sent, prompt) => {
    Object.assign(shownAnswer, { key: sent, title, prompt });
    firstParted = null;
    find("parted").textContent = "";
    find("likely").hidden = true;
    rows.forEach((row, number) => { row.length = 0; find(`answer-${number}`).replaceChildren(); });
    fade();
  };
  const answer = async () => {
    stopping?.abort();
    stopping = new AbortController();
    const prompt = find("prompt").value;
    const [mine, title, sent, started] = [stopping, label(), `${key()} ${prompt}`, performance.now()];
    showError();
    find("stop").hidden = false;
    try {
      const reply = await accepted(await ask("api/answer", { ...question(), prompt,
        longest: Number(find("longest").value), chat: find("chat")?.checked ?? false }, mine.signal));
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let partial = "";
      let begun = false; // until the first token, the old answer stays, in grey
      for (;;) {
        const { value, done } = await reader.read();
        if (done || mine !== stopping) break;
        if (!begun) begin(title, sent, prompt);
        begun = true;
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
      if (mine !== stopping) return;
      answerTook = performance.now() - started;
      if (firstParted === null && rows[0].length !== rows[1].length) {
        find("parted").textContent = "One answer ends where the other goes on.";
      } else if (firstParted === null && rows[0].length) {
        find("parted").textContent = "Both answers are the same.";
      }
    } catch (error) {
      if (error.name !== "AbortError") showError(error);
    } finally {
      if (mine === stopping) { stopping = null; find("stop").hidden = true; }
    }
  };
  const submit = async () => { show(); await answer(); follow(); };
  find("question").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
  find("stop").addEventListener("click", () => { stopping?.abort(); find("stop").hidden = true; });
  find("prompt").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      find("question").requestSubmit();
    }
  });
  find("prompt").addEventListener("input", () => { find("target").textContent = ""; show(); });

  // ---- tasks: a line each, with a bar of its score, and the scores of random sets behind it
  let scoreTook = 0;
  const live = () => scoreTook < FAST;
  const mark = (meter, kind, share, title = "") => {
    const made = make("i", "", { className: kind, title });
    made.style.left = `${100 * Math.min(1, Math.max(0, share))}%`;
    meter.append(made);
  };
  const addRow = (name, measure, draw) => {
    const box = make("div", "", { className: "task" });
    box.dataset.task = name;
    const pick = make("button", "", { type: "button" });
    const says = make("span", "");
    pick.append(make("b", name, { title: name }), says);
    const meter = make("div", "", { className: "meter old" });
    meter.setAttribute("role", "img");
    meter.setAttribute("aria-label", `${name}: not scored`);
    const fill = make("i", "", { className: "fill" });
    fill.style.width = "0";
    meter.append(fill);
    const score = make("p", "not scored", { className: "score old" });
    const error = make("p", "", { className: "error" });
    error.setAttribute("role", "alert");
    box.append(pick, meter, score, error);
    const row = {
      name, box, pick, says, meter, fill, score, key: null, warm: false, example: null, clouds: new Map(),
      show: () => {
        for (const part of [meter, score]) part.classList.toggle("old", row.key !== key());
        box.classList.toggle("chosen", name === chosen);
        pick.setAttribute("aria-pressed", name === chosen);
      },
      measure: async () => {
        const [requested, started] = [key(), performance.now()];
        error.textContent = "";
        try {
          const got = await measure(row);
          const took = performance.now() - started;
          if (row.warm || took > 10 * FAST) scoreTook = took; // the first one also builds the task
          row.warm = true;
          row.key = requested;
          draw(row, got);
        } catch (problem) { error.textContent = problem.message; row.warm = true; }
        meter.setAttribute("aria-label", `${name}: ${score.textContent}`);
        fade();
      },
    };
    rowsOfTasks.set(name, row);
    find("tasks").append(box);
    return row;
  };
  const drawScore = (row, got) => {
    const whole = (value) => (100 * value).toFixed(0).replace("-", "−");
    const most = Math.max(1, got.intact, got.score);
    row.most = most;
    row.fill.style.width = `${(100 * Math.max(0, got.score)) / most}%`;
    for (const mark of row.meter.querySelectorAll(".whole, .dot")) mark.remove();
    mark(row.meter, "whole", got.intact / most);
    row.score.replaceChildren(make("b", `${got.intact.toFixed(2)} → ${got.score.toFixed(2)}`),
      `lost ${whole(got.drop.value)} [${whole(got.drop.low)}, ${whole(got.drop.high)}]`);
    row.score.title = `points lost, with a 95 % interval; ${got.items} held-out items`;
  };
  const drawCloud = async (row) => {
    const size = JSON.stringify([[...off].map((name) => name.replace(/\d+/g, "")).sort(), gate]);
    const requested = key();
    if (!row.clouds.has(size)) {
      const scores = await answered("api/random", { ...question(), task: row.name });
      row.clouds.set(size, scores);
    }
    if (row.key !== requested || requested !== key() || row.meter.querySelector(".dot")) return;
    for (const value of row.clouds.get(size)) {
      mark(row.meter, "dot", value / row.most, `a random set of the same size: ${value.toFixed(2)}`);
    }
  };
  const loadExample = async (row) => {
    row.example ??= await answered("api/example", { task: row.name });
    row.says.textContent = row.example.prompt.trim().split("\n").slice(-2).join(" ");
    row.pick.title = `${row.example.prompt} → ${row.example.target.trim()}`;
  };
  const choose = async (row) => {
    chosen = row.name;
    show();
    try {
      await loadExample(row);
      if (chosen !== row.name) return;
      find("prompt").value = row.example.prompt;
      find("prompt").scrollTop = find("prompt").scrollHeight; // the question comes last
      find("target").textContent = `Right answer: ${row.example.target.trim()}`;
      if (find("chat")) find("chat").checked = false; // the item has its own form
    } catch (error) { showError(error); return; }
    submit();
  };
  const addTask = (task) => {
    const row = addRow(task, () => answered("api/score", { ...question(), task }), drawScore);
    row.pick.addEventListener("click", () => choose(row));
    return row;
  };
  const addText = (names) => {
    const bar = (name, share, text) => {
      const row = addRow(name, () => answered("api/text", question()), (line, got) => {
        line.fill.style.width = `${100 * Math.min(1, share(got.after, got))}%`;
        line.box.hidden = names.length > 0 && got.before > 1000; // the model does not know English
        line.meter.querySelector(".whole")?.remove();
        mark(line.meter, "whole", share(got.before, null));
        line.score.replaceChildren(make("b", text(got)), `${got.tokens} tokens`);
      });
      row.pick.disabled = true;
      row.says.textContent = "of neutral English";
    };
    const round = (value) => Number(value.toPrecision(3)).toLocaleString("en");
    bar("perplexity", (value) => Math.log(value) / Math.log(1e5), (got) => `${round(got.before)} → ${round(got.after)}`);
    bar("divergence", (_, got) => (got ? got.divergence / 3 : 0), (got) => `${got.divergence.toFixed(2)} nats`);
  };

  // ---- after a change: the answer and then every score, at once where the model is fast
  let following = false;
  let again = false;
  const follow = async () => {
    again = true;
    if (following) return;
    following = true;
    while (again) {
      again = false;
      const sent = `${key()} ${find("prompt").value}`;
      if (shownAnswer.key !== null && shownAnswer.key !== sent && answerTook < FAST && !stopping &&
          shownAnswer.prompt === find("prompt").value) await answer();
      const lines = [...rowsOfTasks.values()].sort((a, b) => (b.name === chosen) - (a.name === chosen));
      for (const row of lines) {
        if (again || !live()) break;
        if (row.key !== key()) await row.measure();
        if (row.pick.disabled || row.example) continue;
        try { await loadExample(row); } catch { row.says.textContent = "no example"; }
      }
      for (const row of lines) {
        if (again || !live()) break;
        if (row.pick.disabled || !off.size || row.key !== key()) continue;
        try { await drawCloud(row); } catch (error) { showError(error, "tasks-error"); }
      }
    }
    following = false;
    fade();
  };
  find("measure").addEventListener("click", async () => {
    find("measure").disabled = true;
    for (const row of rowsOfTasks.values()) if (row.key !== key()) await row.measure();
    find("measure").disabled = false;
    const row = rowsOfTasks.get(chosen); // random sets take long here: of the chosen task alone
    try { if (row && off.size) await drawCloud(row); } catch (error) { showError(error, "tasks-error"); }
  });
  const busyWith = (id, run) => find(id).addEventListener("click", async () => {
    find(id).disabled = true;
    showError(null, "tasks-error");
    try { await run(chosen); } catch (error) { showError(error, "tasks-error"); }
    show();
  });
  busyWith("slopes", async (task) => {
    const got = await answered("api/slopes", { ...question(), task });
    const most = Math.max(...Object.values(got).map(Math.abs)) || 1;
    for (const [name, value] of Object.entries(got)) {
      const step = Math.round((16 * Math.abs(value)) / most);
      colours.set(name, step ? `${value < 0 ? "n" : "p"}${step}` : "");
    }
    find("key").textContent = `Colour: what each component adds to ${task} under the present ` +
      `gates (slope of the answer's probability; orange: worse without it, full colour at ` +
      `${most.toPrecision(2)}).`;
  });
  let verifying = false;
  busyWith("verify", async (task) => {
    const [requested, title] = [key(), `${label()}, on ${task}`];
    verifying = true;
    find("verdict").replaceChildren("Verifying: random sets, members, other tasks …");
    try {
      const got = await answered("api/verify", { ...question(), task });
      const link = make("a", "all that was measured", { target: "_blank",
        href: `verification/${got.page}${search}` });
      find("verdict").dataset.key = requested;
      find("verdict").replaceChildren(make("b", `${title}: ${got.label}${got.provisional ? " (provisional)" : ""}. `),
        `${got.text} `, link);
    } catch (error) { find("verdict").textContent = ""; throw error; } finally { verifying = false; }
  });
  find("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    showError(null, "file-error");
    if (!file) return;
    try {
      const row = addTask(await answered("api/add", { task: file.name, text: await file.text() }));
      find("no-tasks").hidden = true;
      choose(row);
    } catch (error) { showError(error, "file-error"); }
    event.target.value = "";
  });
  answered("api/tasks").then((names) => {
    names.forEach(addTask);
    addText(names);
    find("no-tasks").hidden = names.length > 0;
    find("tasks").dataset.ready = "";
    const asked = rowsOfTasks.get(state.get("task") ?? names[0]);
    if (!asked && names.length) showError(new Error(`The link's task ${state.get("task")} is not on this page.`), "tasks-error");
    if (!find("prompt").value && asked && names.length) { choose(asked); return; }
    chosen = names.length ? asked?.name ?? names[0] : null;
    find("prompt").value ||= "The capital of France is";
    submit();
  }).catch((error) => showError(error, "tasks-error"));

  // ---- what is going on, for all tabs
  const watch = async () => {
    if (!document.hidden) {
      try {
        const now = await answered("api/status");
        const parts = [];
        if (now.queued) parts.push(`${now.queued} questions wait`);
        if (verifying && now.measuring) find("verdict").textContent = `Verifying: ${now.measuring.replace(/^[^:]*: /, "")} …`;
        if (now.measuring) parts.push(`${now.measuring}${now.waiting ? `, ${now.waiting} more wait` : ""}`);
        find("busy").textContent = parts.length ? `Busy: ${parts.join("; ")}.` : "";
      } catch { find("busy").textContent = "The model does not answer: is `broca explore` still running?"; }
    }
    setTimeout(watch, 1000);
  };
  watch();

  // ---- what leaves the page
  const quoted = (word) => (/^[\w./:@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  const copied = async (id, text) => {
    try { await navigator.clipboard.writeText(text); } catch { prompt("Copy:", text); return; }
    const before = find(id).innerHTML;
    find(id).textContent = "Copied";
    setTimeout(() => { find(id).innerHTML = before; }, 1200);
  };
  const asked = () => Object.entries(about.asked) // how the page asks its tasks
    .filter(([name, value]) => value !== null && value !== "auto" && name !== "limit" && name !== "reference")
    .map(([name, value]) => ({ flag: name.replaceAll("_", "-"), value }))
    .map(({ flag, value }) => (typeof value === "boolean" ? ` --${value ? "" : "no-"}${flag}`
      : ` --${flag} ${quoted(typeof value === "string" ? value : JSON.stringify(value))}`)).join("");
  find("copy").addEventListener("click", () => copied("copy", [...off].join("+")));
  find("link").addEventListener("click", () => copied("link", location.href));
  find("command").addEventListener("click", () => copied("command",
    `broca verify ${quoted(about.model)} --task ${quoted(chosen ?? "TASK")} --heads ${[...off].join("+")} --scale ${gate} --components ${about.kinds}${asked()}`));
  find("export").addEventListener("click", () => copied("export",
    `broca export ${quoted(about.model)} --heads ${[...off].join("+")} --scale ${gate} --to DIR`));
  find("json").addEventListener("click", () => {
    const text = JSON.stringify({ model: about.model, components: [...off], scale: gate }, null, 2);
    save("components.json", "application/json", `${text}\n`);
  });

  // ---- the state of the address, else the run's set
  const state = new URLSearchParams(location.hash.slice(1));
  find("prompt").value = state.get("prompt") ?? "";
  const [opening = []] = Object.values(about.sets);
  if (about.verdict) { // it is grey as soon as the set is another one
    off = new Set(opening);
    find("known").dataset.key = key();
    find("known").textContent = `The run's verdict: ${about.verdict}`;
  }
  gate = Math.min(2, Math.max(0, Number(state.get("scale")) || 0));
  const named = state.has("off") ? state.get("off").split(/[+ ]/).filter(Boolean) : opening;
  off = new Set(named.filter((name) => cells.has(name)));
  const missing = named.filter((name) => !cells.has(name)).join(", ");
  if (missing) showError(new Error(`Not on this page, and left out: ${missing}.`), "names-error");
  addEventListener("hashchange", () => location.reload()); // another link in the same tab
  if (about.unit) find("key").textContent = `Colour: ${about.unit} (orange: worse without it).`;
  show();
})();
