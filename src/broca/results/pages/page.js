// The model's picture, tables and downloads of a page; without this script a page shows the same.
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- CSV
  const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const plain = (text) =>
    /^[−+-]?[\d,]*\.?\d+(e[−+-]?\d+)?$/.test(text) ? text.replace(/−/g, "-").replace(/,/g, "") : text;
  const ends = (text) => text.match(/^(\S+) \[(\S+), (\S+)\]$/)?.slice(1); // of an interval
  const amount = (text) => {
    const match = text.replace(/−/g, "-").replace(/,(?=\d{3})/g, "").match(/^[+-]?\d*\.?\d+(e-?\d+)?/);
    return match ? Number(match[0]) : NaN;
  };

  // ---- tables: rows are arrays of texts; the page holds the first ones as elements
  const tables = all("[data-table]").map((box) => {
    const body = box.querySelector("tbody");
    const heads = all("thead th", box);
    const rows = all("tr", body).map((line) => ({
      line, cells: [...line.children].map((cell) => cell.textContent),
    }));
    const shown = rows.length;
    const more = box.querySelector("[data-rows]");
    for (const line of more ? more.textContent.split("\n") : []) { // numbers are short, as in -.5
      rows.push({ line: null, cells: line.split("\t").map((text) => text
        .replace(/^([+-]?)\.(?=\d)/, (_, sign) => `${sign}0.`).replace(/(^|[ [])-(?=\d)/g, "$1−")) });
    }
    const last = Number(box.dataset.summary ?? 0); // rows that sum up the others
    const summary = rows.splice(rows.length - last, last);
    return { summary, box, body, heads, rows, shown, most: shown, word: "", by: null, up: true };
  });

  const madeLine = (table, row) => {
    const line = make("tr");
    row.cells.forEach((text, place) => {
      const element = make(place ? "td" : "th", text);
      if (!place) element.scope = "row";
      element.className = table.heads[place].className;
      line.append(element);
    });
    return line;
  };

  const draw = (table) => {
    const words = table.word.toLowerCase().split(/\s+/).filter(Boolean);
    let matches = table.rows.filter((row) =>
      words.every((word) => row.cells.some((text) => text.toLowerCase().includes(word))));
    if (table.by !== null) {
      const key = (row) => {
        const number = amount(row.cells[table.by]);
        return Number.isNaN(number) ? row.cells[table.by] : number;
      };
      const sign = table.up ? 1 : -1;
      matches = matches.map((row) => [key(row), row]).sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === ""); // unknown stays last
        return sign * (typeof a === "number" && typeof b === "number"
          ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      }).map(([, row]) => row);
    }
    const lines = [...matches.slice(0, table.most), ...(words.length ? [] : table.summary)]
      .map((row) => row.line ??= madeLine(table, row));
    table.body.replaceChildren(...lines);
    table.say(matches.length);
  };

  for (const table of tables) {
    const bar = make("div", "", { className: "bar" });
    const name = table.box.dataset.table;
    const caption = table.box.querySelector("caption").textContent;
    const note = table.box.querySelector("[data-more]") ?? make("p", "", { className: "note" });
    const button = make("button", "Show all", { type: "button" });
    button.addEventListener("click", () => { table.most = Infinity; draw(table); });
    table.say = (count) => {
      const drawn = Math.min(count, table.most);
      const filtered = count < table.rows.length ? ` that match, of ${table.rows.length}` : "";
      note.textContent = drawn < count || filtered
        ? `${drawn.toLocaleString("en")} of ${count.toLocaleString("en")} rows${filtered}. ` : "";
      if (drawn < count) note.append(button);
    };
    bar.append(note);
    const changes = table.heads.some((head) => head.textContent === "changed");
    if (table.rows.length > 12 || changes) {
      const filter = make("input", "", { type: "search", placeholder: "Filter rows" });
      filter.setAttribute("aria-label", `Filter: ${caption}`);
      filter.addEventListener("input", () => { table.word = filter.value; draw(table); });
      filter.className = "filter";
      table.box.prepend(filter);
      if (changes) {
        const only = make("button", "Changed only", { type: "button", className: "filter" });
        only.addEventListener("click", () => { filter.value = filter.value ? "" : "changed"; filter.dispatchEvent(new Event("input")); });
        filter.after(only);
      }
    }
    const csv = make("button", "CSV", { type: "button" });
    csv.setAttribute("aria-label", `Download as CSV: ${caption}`);
    csv.addEventListener("click", () => {
      const wide = table.heads.map((_, n) => table.rows.some((row) => ends(row.cells[n])));
      const heads = table.heads.map((head) => head.textContent);
      const lines = [heads, ...[...table.rows, ...table.summary].map((row) => row.cells)].map((line, number) =>
        line.flatMap((text, n) => {
          if (!wide[n]) return [text];
          return number ? ends(text) ?? [text, "", ""] : [text, `${text} low`, `${text} high`];
        }).map((text) => quoted(plain(text))).join(","));
      save(`${name}.csv`, "text/csv", `${lines.join("\n")}\n`);
    });
    bar.append(csv);
    table.box.append(bar);
    if (table.rows.length > 1) {
      table.heads.forEach((head, place) => {
        const sort = make("button", head.textContent, { type: "button" });
        sort.addEventListener("click", () => {
          table.up = table.by === place ? !table.up : true;
          table.by = place;
          table.heads.forEach((heading) => heading.removeAttribute("aria-sort"));
          head.setAttribute("aria-sort", table.up ? "ascending" : "descending");
          draw(table);
        });
        head.replaceChildren(sort);
      });
    }
    table.say(table.rows.length);
  }

  // ---- downloads of figures: what the page's style decides is written into the file
  const written = (source) => {
    const copy = source.cloneNode(true);
    const from = all("*", source);
    const properties = ["fill", "stroke", "stroke-width", "width", "height"];
    all("*", copy).forEach((target, place) => {
      const style = getComputedStyle(from[place]);
      for (const name of properties) {
        const size = name === "width" || name === "height";
        if ((size && target.tagName !== "rect") || style[name] === "none" && name === "stroke") continue;
        target.setAttribute(name, size ? parseFloat(style[name]) : style[name]);
      }
      target.removeAttribute("class");
    });
    all("style", copy).forEach((style) => style.remove());
    const ground = document.createElementNS(copy.namespaceURI, "rect");
    const [, , width, height] = copy.getAttribute("viewBox").split(" ");
    for (const [name, value] of Object.entries({ width, height,
      fill: getComputedStyle(document.querySelector("section")).backgroundColor })) {
      ground.setAttribute(name, value);
    }
    copy.prepend(ground);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return new XMLSerializer().serializeToString(copy);
  };
  for (const figure of all("[data-figure]")) {
    const name = figure.dataset.figure;
    const picture = figure.querySelector("svg");
    for (const button of all("[data-save]", figure)) {
      button.setAttribute("aria-label", `Download figure ${name} as ${button.textContent}`);
      button.addEventListener("click", async () => {
        const text = written(picture);
        if (button.dataset.save === "svg") return save(`${name}.svg`, "image/svg+xml", text);
        const image = new Image();
        image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
        await image.decode();
        const canvas = make("canvas", "", { width: 2 * image.width, height: 2 * image.height });
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob((blob) => save(`${name}.png`, "image/png", blob));
      });
    }
  }

  // ---- collapsed parts: an address opens its part, and paper has all
  const unfold = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.querySelector("details") ?? target?.closest("details");
    if (folded) { folded.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", unfold);
  addEventListener("beforeprint", () => { for (const part of all("section > details")) part.open = true; });
  unfold();

  // ---- the model's picture: a click, a key or a name shows what the tables say of a component
  const model = document.querySelector(".model");
  if (!model || !model.querySelector("[data-component]")) return;
  const picture = model.querySelector("svg");
  const details = model.querySelector("[data-details]");
  const known = (name) => { // the first value that a table has of it
    for (const { box, rows, heads } of tables.filter((table) => table.box.dataset.by !== undefined)) {
      const by = Number(box.dataset.by);
      const row = rows.find(({ cells: texts }) => texts[by] === name);
      const at = row?.cells.findIndex((text, number) => number !== by && /\d/.test(text)) ?? -1;
      if (at >= 0) return `: ${heads[at].textContent} ${row.cells[at]}`;
    }
    return "";
  };
  const { cells, places, neighbour } = gridOf(picture, known);
  let current = null;
  const tell = (name, jump, whole) => {
    if (whole && name && !cells.has(name)) {
      details.replaceChildren(make("p", `The model has no ${name}: its components are ${cells.keys().next().value} to ` +
        `${[...cells.keys()].pop()}.`));
      details.hidden = false;
    }
    if (!cells.has(name)) return;
    if (current) cells.get(current).classList.remove("here");
    current = name;
    cells.get(name).classList.add("here");
    const parts = [make("h2", name)];
    for (const table of tables.filter((table) => table.box.dataset.by !== undefined)) {
      const column = Number(table.box.dataset.by);
      const rows = table.rows.filter((row) => row.cells[column].split(/[\s,+]+/).includes(name));
      if (!rows.length) continue;
      parts.push(make("h3", table.box.querySelector("caption").textContent));
      const list = make("dl");
      for (const row of rows) {
        const texts = row.cells.map((text, number) => [table.heads[number].textContent, text])
          .filter(([, text], number) => text && (number !== column || text !== name));
        if (rows.length === 1) {
          for (const [head, text] of texts) list.append(make("dt", head), make("dd", text));
        } else if (texts.length) {
          list.append(make("dt", texts[0][1]), make("dd",
            texts.slice(1).map(([head, text]) => `${head} ${text}`).join(", ")));
        }
      }
      parts.push(list);
    }
    if (parts.length === 1) parts.push(make("p", "Nothing was measured of it alone."));
    details.replaceChildren(...parts);
    details.hidden = false;
    if (jump) cells.get(name).scrollIntoView({ block: "nearest", inline: "nearest" });
    history.replaceState(null, "", `#${name}`);
  };
  const scroll = picture.parentNode;
  scroll.setAttribute("aria-label", `${picture.getAttribute("aria-label")}. Arrow keys move from ` +
    "component to component; what is known of each is read out.");
  picture.addEventListener("click", (event) => tell(event.target.dataset?.component));
  scroll.addEventListener("keydown", (event) => tell(neighbour(event, current), true));
  model.querySelector(".picker").hidden = false;
  const goto = model.querySelector("[data-goto]");
  for (const kind of ["input", "change"]) {
    goto.addEventListener(kind, () => tell(goto.value.trim().toUpperCase(), true, kind === "change"));
  }
  const data = model.querySelector("[data-views]");
  if (data) {
    const views = JSON.parse(data.textContent);
    const select = model.querySelector("[data-view]");
    views.forEach((view, number) => select.append(make("option", view.name, { value: number })));
    select.addEventListener("change", () => {
      const view = views[select.value];
      view.columns ??= new Map(views[0].names.map((name, number) => [name, number]));
      for (const [name, cell] of cells) {
        const letter = view.steps.charCodeAt(view.columns.get(name)) - 81;
        const step = letter < 0 ? `n${-letter}` : letter ? `p${letter}` : "";
        cell.setAttribute("class", `${step}${name === current ? " here" : ""}`);
      }
      for (const text of all("text", picture)) { // the legend follows
        if (text.textContent.startsWith("Colour: ")) text.textContent = `Colour: effect of ablating it on ${view.unit}`;
        if (text.textContent.includes("beyond the others")) {
          text.textContent = `${view === views[0] ? "a task" : view.name} needs it beyond the others`;
        }
      }
      for (const mark of all("[data-frame]", picture)) mark.remove();
      for (const name of view.framed) {
        const [y, x] = places.get(name);
        const size = getComputedStyle(cells.get(name));
        const frame = document.createElementNS(picture.namespaceURI, "rect");
        const set = { x: x - 1, y: y - 1, width: parseFloat(size.width) + 2,
          height: parseFloat(size.height) + 2, class: "s-ink", "stroke-width": 2, "data-frame": name };
        for (const [key, value] of Object.entries(set)) frame.setAttribute(key, value);
        picture.append(frame);
      }
    });
  }
  const target = decodeURIComponent(location.hash.slice(1));
  if (cells.has(target)) tell(target, true);
})();
