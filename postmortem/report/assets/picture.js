/* Who waits for whom: which agents stand in the picture, what a click or a key does to it. */
"use strict";

(() => {
  const h = PM.h, s = PM.s;
  const UNFOLD = 12, ADD = 20, TEXT = 34;

  PM.Picture = class {
    constructor(section, model, number) {
      Object.assign(this, { model, number });
      const { data } = model;
      this.start = { shown: data.shown, folds: model.folds };
      this.links = new Set();
      this.rounds = new Set(model.circles.flat());
      for (const circle of model.circles) circle.forEach((agent, at) => this.links.add(`${agent}>${circle[(at + 1) % circle.length]}`));
      this.layer = s("g", {});
      this.svg = s("svg", { class: "graph", role: "group", "aria-label":
        "Who waits for whom. Arrow keys move from box to box, Enter opens one, plus and minus zoom.", onkeydown: (e) => this.key(e) },
        s("defs", {}, PM.arrow(`arrow-${number}`, "arrow"), PM.arrow(`arrow-${number}-circle`, "arrow circle")), this.layer);
      this.panel = h("aside", { class: "panel", "aria-label": "What was chosen in the picture" },
        h("p", { class: "hint" }, "Choose a box to see its stack."));
      const tools = h("div", { class: "tools" },
        PM.button("−", () => this.scale(1 / 1.3), { "aria-label": "Zoom out" }),
        PM.button("+", () => this.scale(1.3), { "aria-label": "Zoom in" }),
        PM.button("Fit", () => this.fit()),
        PM.button("Start over", () => this.reset()));
      this.left = h("p", { class: "hint left" });
      section.append(h("div", { class: "stage" }, h("div", { class: "canvas" }, tools, this.svg), this.panel), this.legend(), this.left);
      this.zoom = d3.zoom().scaleExtent([0.15, 3]).filter((event) => event.type === "wheel" ? event.ctrlKey || event.metaKey
        : event.touches ? event.touches.length > 1 : !event.button).on("zoom", (event) => this.layer.setAttribute("transform", event.transform));
      d3.select(this.svg).call(this.zoom).on("dblclick.zoom", null);
      this.reset();
      new ResizeObserver(() => this.svg.clientWidth !== this.width && this.fit()).observe(this.svg);
    }

    legend() {
      const one = (kind, text) => h("li", {}, h("span", { class: `swatch ${kind}` }), text);
      return h("ul", { class: "legend", "aria-label": "Legend" },
        one("culprit", "cited as cause"), one("circle", "in a cycle: each waits for the next"), one("stuck", "can never move"),
        one("fold", "several alike"), one("end", "no thread or task"), h("li", { class: "hint" }, "Drag to move, Ctrl + wheel to zoom."));
    }

    reset() {
      this.visible = new Set(this.start.shown);
      this.folds = this.start.folds.map((fold) => [...fold]);
      this.chosen = null;
      this.draw();
      const first = this.start.shown.find((agent) => this.model.is(agent, PM.FLAG.culprit)) ?? this.start.shown[0];
      if (first !== undefined) this.choose(`a${first}`, false);
    }

    /** Makes sure that an agent is there, and chooses it. */
    show(agent) {
      this.add([agent]);
      this.draw();
      this.choose(`a${agent}`, true);
      this.svg.closest("section").scrollIntoView({ behavior: PM.calm() ? "auto" : "smooth" });
    }

    add(agents) {
      for (const agent of agents.slice(0, ADD)) {
        this.folds = this.folds.map((fold) => fold.filter((one) => one !== agent)).filter((fold) => fold.length);
        this.visible.add(agent);
      }
    }

    // ------------------------------------------------------------------ what is drawn

    build() {
      const { model } = this;
      this.home = new Map();
      for (const agent of this.visible) this.home.set(agent, `a${agent}`);
      this.folds.forEach((fold, at) => fold.forEach((agent) => this.home.set(agent, `f${at}`)));
      this.nodes = [];
      this.edges = new Map();
      for (const agent of this.visible) this.nodes.push(this.agentNode(agent));
      this.folds.forEach((fold, at) => this.nodes.push(this.foldNode(fold, at)));
      for (const agent of this.visible) {
        if (model.kind(agent) === "process") this.inside(agent);
        else model.edges(agent).forEach((edge, at) => this.connect(agent, edge, at, true));
      }
      for (const fold of this.folds) {
        for (const agent of fold) model.edges(agent).forEach((edge, at) => this.connect(agent, edge, at, false));
      }
      for (const edge of this.edges.values()) {
        if (edge.labels.size > 1) edge.whole = `${PM.count(edge.many)} waits, such as: ${edge.label}`;
        edge.label = PM.cut(edge.labels.size > 1 ? `${edge.verb} … × ${PM.count(edge.many)}` : edge.label, TEXT);
      }
    }

    agentNode(agent) {
      const { model } = this, place = model.place(agent), marks = model.marks(agent).map(([, text]) => text);
      const circle = this.rounds.has(agent);
      const lines = [];
      if (model.kind(agent) === "process") lines.push(PM.cut(model.text(model.process(agent).command), TEXT));
      else if (model.several) lines.push(`in process ${model.process(agent).pid}`);
      if (place) lines.push(PM.cut(model.placeText(place), TEXT + 4));
      const told = [...(model.gil(agent) === "holds" ? ["holds the GIL"] : []), ...marks.filter((mark) => mark !== "main thread")].join(", ");
      if (told) lines.push(told);
      return {
        id: `a${agent}`, title: model.shortLabel(agent, TEXT), lines, round: model.kind(agent) === "task",
        classes: [model.kind(agent), ...model.marks(agent).map(([kind]) => kind), circle ? "circle" : ""].join(" "),
        said: PM.cut([model.label(agent), ...marks, circle ? "in a wait-for cycle" : "", model.doing(agent), place ? model.placeText(place) : ""]
          .filter(Boolean).join(", "), 400),
      };
    }

    foldNode(fold, at) {
      const { model } = this, place = model.place(fold[0]), noun = model.kind(fold[0]);
      const title = PM.plural(fold.length, fold.some((agent) => model.kind(agent) !== noun) ? "other" : noun);
      const marks = model.marks(fold[0]).map(([, text]) => text).filter((mark) => mark !== "main thread");
      const lines = [...(place ? [PM.cut(model.placeText(place), TEXT + 4)] : []), ...(marks.length ? [marks.join(", ")] : [])];
      const circle = fold.some((agent) => this.rounds.has(agent));
      return {
        id: `f${at}`, title, lines, stacked: true, round: noun === "task",
        classes: ["fold", noun, ...model.marks(fold[0]).map(([kind]) => kind), circle ? "circle" : ""].join(" "),
        said: `${title}, alike${place ? `, ${model.placeText(place)}` : ""}: choose to unfold`,
      };
    }

    connect(agent, edge, at, alone) {
      const { model } = this, from = this.home.get(agent), label = `${edge.verb} ${edge.what}`;
      const { kind, verb, wakers } = edge, there = wakers.filter((waker) => this.home.has(waker)), hidden = wakers.length - there.length;
      for (const waker of there) {
        const to = this.home.get(waker);
        if (from === to && !alone) continue;
        this.arrow(from, to, label, verb, [kind, edge.flags & PM.EDGE.inferred ? "inferred" : "",
          this.links.has(`${agent}>${waker}`) ? "circle" : "", edge.flags & PM.EDGE.signals ? "signals" : ""], model.need(edge));
      }
      if (!alone) return;
      if (hidden && !there.length) {
        this.nodes.push({ id: `h${agent}-${at}`, title: hidden === 1 ? model.shortLabel(edge.wakers[0], TEXT) : `${PM.count(hidden)} others`,
          lines: ["choose to show"], classes: "end hidden", said: `${PM.count(hidden)} that could end the wait: choose to show` });
        this.arrow(from, `h${agent}-${at}`, label, verb, [kind], model.need(edge));
      } else if (!edge.wakers.length) {
        const text = this.end(edge);
        this.nodes.push({ id: `e${agent}-${at}`, title: PM.cut(text, TEXT), lines: [], classes: "end", said: text });
        this.arrow(from, `e${agent}-${at}`, label === text ? "" : label, verb, [kind], model.need(edge));
      }
    }

    arrow(from, to, label, verb, classes, whole) {
      const key = `${from}>${to}>${classes[0]}`;
      const known = this.edges.get(key);
      if (!known) this.edges.set(key, { from, to, label, verb, whole, many: 1, labels: new Set([label]), classes: classes.filter(Boolean).join(" ") });
      else {
        known.many += 1;
        known.labels.add(label);
        if (classes.includes("circle") && !known.classes.includes("circle")) known.classes += " circle";
      }
    }

    /** A process as a whole waits in its threads. */
    inside(agent) {
      const { model } = this;
      const threads = [...this.home].filter(([one]) => model.kind(one) === "thread" && model.processNumber(one) === model.processNumber(agent));
      for (const id of new Set(threads.map(([, home]) => home))) this.arrow(`a${agent}`, id, "in which", "in which", ["inside"], "");
    }

    end(edge) {
      const { outside } = edge;
      if (edge.flags & PM.EDGE.gone) return "its holder has ended";
      if (outside.length) return outside.join(" or ");
      if (edge.flags & PM.EDGE.everyone) return "unknown: any code in the process";
      return "nothing can end it";
    }

    draw() {
      const focus = this.layer.contains(document.activeElement);
      this.build();
      const plan = PM.layout(this.nodes, [...this.edges.values()], Math.max(600, this.svg.clientWidth));
      this.plan = plan;
      this.layer.replaceChildren(...plan.edges.map((edge) => PM.drawEdge(edge, `arrow-${this.number}`)), ...plan.nodes.map((node) => {
        const element = PM.drawNode(node);
        element.addEventListener("click", () => this.choose(node.id, true));
        return element;
      }));
      this.fit();
      const { agents } = this.model;
      const rest = agents.length - this.home.size;
      this.left.textContent = `In the picture: ${PM.count(this.visible.size)} one by one, ${PM.count(this.home.size - this.visible.size)} folded; ` +
        `not shown: ${PM.count(rest)}. ${rest ? "A chosen box can add its neighbours; the list below can add any other." : ""}`;
      if (this.chosen && this.element(this.chosen)) this.element(this.chosen).setAttribute("tabindex", 0);
      else if (this.layer.querySelector(".node")) this.layer.querySelector(".node").setAttribute("tabindex", 0);
      if (focus) this.layer.querySelector('[tabindex="0"]')?.focus();
    }

    // ------------------------------------------------------------------ where one looks

    fit() {
      this.width = this.svg.clientWidth;
      if (!this.width || !this.plan) return;
      const { width, height } = this.plan;
      const most = Math.max(420, window.innerHeight * 0.75);
      const scale = Math.min(1.1, Math.max(0.66, Math.min((this.width - 24) / Math.max(width, 1), (most - 24) / Math.max(height, 1))));
      const tall = Math.min(Math.max(height * scale + 24, 140), most);
      this.svg.setAttribute("height", Math.round(tall));
      const x = Math.max(12, (this.width - width * scale) / 2), y = Math.max(12, (tall - height * scale) / 2);
      const start = width * scale > this.width - 24 && this.plan.nodes.length ? this.around(scale) : x;
      d3.select(this.svg).call(this.zoom.transform, d3.zoomIdentity.translate(start, y).scale(scale));
    }

    /** Too wide to be seen whole: the chosen box, or the first one, in the middle. */
    around(scale) {
      const node = this.plan.nodes.find((one) => one.id === this.chosen) || this.plan.nodes[0];
      return Math.min(12, Math.max(this.width - this.plan.width * scale - 12, this.width / 2 - node.x * scale));
    }

    scale(by) {
      const svg = d3.select(this.svg);
      (PM.calm() ? svg : svg.transition().duration(150)).call(this.zoom.scaleBy, by);
    }

    element(id) { return [...this.layer.querySelectorAll(".node")].find((node) => node.dataset.id === id); }

    reveal(id) {
      const node = this.plan.nodes.find((one) => one.id === id), now = d3.zoomTransform(this.svg);
      if (!node) return;
      const [x, y] = now.apply([node.x, node.y]), tall = this.svg.clientHeight;
      if (x < 40 || y < 40 || x > this.width - 40 || y > tall - 40) {
        d3.select(this.svg).call(this.zoom.translateTo, node.x, node.y);
      }
    }

    // ------------------------------------------------------------------ what is chosen

    choose(id, focus) {
      const element = this.element(id);
      if (!element) return;
      if (id[0] === "h") {
        const [agent, at] = id.slice(1).split("-").map(Number);
        const fresh = this.model.edges(agent)[at].wakers;
        this.add(fresh);
        this.draw();
        this.choose(`a${fresh[0]}`, focus);
        return;
      }
      this.chosen = id;
      for (const node of this.layer.querySelectorAll(".node")) {
        const here = node === element;
        node.classList.toggle("chosen", here);
        node.setAttribute("tabindex", here ? 0 : -1);
        node.setAttribute("aria-pressed", here);
      }
      if (focus) {
        element.focus({ preventScroll: true });
        this.reveal(id);
      }
      this.panel.replaceChildren(...this.explained(id));
    }

    explained(id) {
      const { model } = this;
      if (id[0] === "e") return [h("h3", {}, "Not a thread or task"), h("p", {}, PM.name(this.nodes.find((node) => node.id === id).said, 300))];
      if (id[0] === "f") return this.unfolded(Number(id.slice(1)));
      const agent = Number(id.slice(1));
      const app = { neighbours: (one, actions) => this.neighbours(one, actions), flame: this.flame };
      return [h("h3", {}, PM.name(model.label(agent), 120)), h("p", { class: "marks" }, PM.marks(model, agent)), PM.details(model, agent, app)];
    }

    unfolded(at) {
      const fold = this.folds[at], { model } = this;
      const some = PM.button(`Unfold ${Math.min(UNFOLD, fold.length)} of them`, () => {
        const first = fold[0];
        this.add(fold.slice(0, UNFOLD));
        this.draw();
        this.choose(`a${first}`, true);
      });
      const names = fold.slice(0, UNFOLD).map((agent) => h("li", {}, PM.button(PM.cut(model.label(agent), 50), () => {
        this.add([agent]);
        this.draw();
        this.choose(`a${agent}`, true);
      })));
      return [h("h3", {}, `${PM.count(fold.length)} alike`), h("p", {}, PM.name(model.doing(fold[0]), 300), "."), h("div", { class: "actions" }, some),
        h("ul", { class: "members" }, names), PM.stack(model, model.stackNumber(fold[0]))];
    }

    neighbours(agent, actions) {
      const { model } = this;
      const offer = (agents, text) => {
        const fresh = agents.filter((one) => !this.visible.has(one));
        if (fresh.length) actions.append(PM.button(`${text} (${PM.count(fresh.length)})`, () => {
          this.add(fresh);
          this.draw();
          this.choose(`a${agent}`, true);
        }));
      };
      offer(model.waiters(agent), "Add its waiters");
      offer([...new Set(model.edges(agent).flatMap((edge) => edge.wakers))], "Add what it waits for");
    }

    key(event) {
      if (event.key === "+" || event.key === "=") this.scale(1.3);
      else if (event.key === "-") this.scale(1 / 1.3);
      else if (event.key === "0") this.fit();
      else if (event.key === "Enter" || event.key === " ") {
        if (event.target.dataset.id) this.choose(event.target.dataset.id, true);
      } else if (event.key.startsWith("Arrow")) this.move(event.key.slice(5));
      else return;
      event.preventDefault();
    }

    /** To the nearest box in that direction. */
    move(way) {
      const id = document.activeElement.dataset.id;
      const from = this.plan.nodes.find((node) => node.id === id);
      if (!from) return;
      const [dx, dy] = { Left: [-1, 0], Right: [1, 0], Up: [0, -1], Down: [0, 1] }[way];
      const distance = (node) => {
        const along = (node.x - from.x) * dx + (node.y - from.y) * dy;
        const across = Math.abs((node.x - from.x) * dy) + Math.abs((node.y - from.y) * dx);
        return along > 1 ? along + 2 * across : Infinity;
      };
      const best = this.plan.nodes.reduce((a, b) => (distance(b) < distance(a) ? b : a), from);
      if (distance(best) === Infinity) return;
      for (const node of this.layer.querySelectorAll(".node")) node.setAttribute("tabindex", node.dataset.id === best.id ? 0 : -1);
      this.element(best.id).focus({ preventScroll: true });
      this.reveal(best.id);
    }
  };
})();
