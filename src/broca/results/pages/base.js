"use strict";
// What the scripts of all pages share: new elements, downloads, points, the model's picture.
const make = (tag, text = "", set = {}) =>
  Object.assign(document.createElement(tag), { textContent: text }, set);
const save = (name, type, content) => {
  const link = make("a", "", {
    href: URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type })),
    download: name,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const points = (value) => (value === undefined ? "" : (100 * value).toFixed(1).replace("-", "−"));

// The cells of a picture by component, their places, and the neighbour to which an arrow key moves.
const gridOf = (picture, known = () => "") => {
  const cells = new Map([...picture.querySelectorAll("[data-component]")].map((cell) => [
    cell.dataset.component, cell]));
  const places = new Map([...cells].map(([name, cell]) => [name, [
    cell.parentNode.transform.baseVal[0]?.matrix.f ?? 0, Number(cell.getAttribute("x"))]]));
  const directions = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const neighbour = (event, current) => { // undefined for other keys, and at the edge
    const direction = directions[event.key];
    if (!direction) return undefined;
    event.preventDefault();
    if (!current) return cells.keys().next().value;
    const [row, x] = places.get(current);
    let best = null;
    for (const [name, [y, column]] of places) {
      const [down, along] = [(y - row) * direction[0], (column - x) * direction[1]];
      if (direction[0] ? down <= 0.5 : along <= 0.5 || Math.abs(y - row) >= 0.5) continue;
      const far = direction[0] ? 1000 * down + Math.abs(column - x) : along;
      if (!best || far < best[0]) best = [far, name];
    }
    return best?.[1];
  };
  picture.addEventListener("mouseover", ({ target }) => {
    if (!target.dataset?.component || target.firstChild) return;
    const title = document.createElementNS(picture.namespaceURI, "title");
    title.textContent = target.dataset.component + known(target.dataset.component);
    target.append(title);
  });
  return { cells, places, neighbour };
};
