/* The flame graph: sampled stacks of the window, or the stacks of all at the moment of capture. */
"use strict";

(() => {
  const h = PM.h;
  const DEEPEST = 120, CELL = 24, CHOICES = 40;
  const FILLS = ["var(--flame-own)", "var(--flame-library)", "var(--flame-native)"];

  PM.Flame = class {
    constructor(section, model, number) {
      Object.assign(this, { model, section });
      const agents = model.agents.map((_, agent) => agent);
      this.sampled = agents.filter((agent) => model.samples(agent).length);
      this.standing = agents.filter((agent) => model.kind(agent) === "thread" && model.frames(model.stackNumber(agent)).length);
      if (!this.sampled.length && !this.standing.length) {
        section.append(h("p", { class: "none" }, "No stack was sampled over the window, and none could be read at the moment of capture."));
        return;
      }
      const id = (name) => `${name}-flame-${number}`;
      this.choice = h("select", { id: id("choice"), onchange: () => this.draw() }, this.choices());
      this.search = h("input", { type: "search", id: id("search"), placeholder: "function or file", autocomplete: "off",
        oninput: () => this.find() });
      this.place = h("div", { class: "flames", onkeydown: (event) => this.key(event), onfocusin: (event) => this.focused(event) });
      this.readout = h("output", { class: "readout" });
      section.append(...[
        this.sampled.length ? null : h("p", { class: "notice" }, "No stack was sampled over the window; these are the stacks at the moment of capture."),
        h("div", { class: "filters" },
          h("div", { class: "field wide" }, h("label", { for: id("choice") }, "Stacks of"), this.choice),
          h("div", { class: "field" }, h("label", { for: id("search") }, "Highlight"), this.search),
          h("div", { class: "field" }, PM.button("Whole graph", () => this.chart.resetZoom()))),
        h("ul", { class: "legend", "aria-label": "Legend" },
          [["own", "the program's own code"], ["library", "libraries"], ["native", "native code"]].map(([kind, text]) =>
            h("li", {}, h("span", { class: `swatch flame-${kind}` }), text))),
        this.place, this.readout].filter(Boolean));
      this.draw();
      // Of the section: a scroll bar that comes with a drawing must not cause the next one.
      let room = section.clientWidth;
      new ResizeObserver(() => {
        if (section.clientWidth === room) return;
        room = section.clientWidth;
        this.draw();
      }).observe(section);
    }

    choices() {
      const { model } = this, found = [];
      const option = (value, text) => found.push(h("option", { value }, PM.cut(text, 90)));
      if (this.sampled.length) option("window", `all threads, over the window (${PM.plural(this.sampled.length, "thread")})`);
      if (this.standing.length) option("moment", `all threads, at the moment of capture (${PM.plural(this.standing.length, "thread")})`);
      if (model.several) model.data.processes.forEach((about, at) => {
        if (this.sampled.some((agent) => model.processNumber(agent) === at)) option(`p${at}`, `process ${about.pid}, over the window`);
      });
      const telling = [...this.sampled].sort((a, b) => this.rank(b) - this.rank(a) || a - b).slice(0, CHOICES);
      for (const agent of telling) option(`a${agent}`, `${model.label(agent)}, over the window`);
      return found;
    }

    rank(agent) {
      const { model } = this, cited = model.is(agent, PM.FLAG.cited) ? 1e6 : 0;
      return cited + (model.is(agent, PM.FLAG.main) ? 1e5 : 0) + model.samples(agent).length;
    }

    /** The flame graph of one thread. */
    show(agent) {
      const value = `a${agent}`;
      if (![...this.choice.options].some((option) => option.value === value)) {
        this.choice.append(h("option", { value }, PM.cut(`${this.model.label(agent)}, over the window`, 90)));
      }
      this.choice.value = value;
      this.draw();
      this.section.scrollIntoView({ behavior: PM.calm() ? "auto" : "smooth" });
    }

    tree() {
      const { model } = this, value = this.choice.value, moment = value === "moment";
      const root = { name: moment ? "all threads" : "all samples", value: 0, children: [], kind: 0, by: new Map() };
      const agents = moment ? this.standing : this.sampled.filter((agent) => value === "window" || value === `a${agent}` ||
        value === `p${model.processNumber(agent)}`);
      for (const agent of agents) {
        if (moment) this.lay(root, model.stackNumber(agent), 1);
        else for (const [stack, count] of model.samples(agent)) this.lay(root, stack, count);
      }
      this.unit = moment ? "thread" : "sample";
      return root;
    }

    lay(root, stack, count) {
      let node = root;
      root.value += count;
      const numbers = this.model.data.stacks[stack][0].slice().reverse().slice(0, DEEPEST);
      for (const number of numbers) {
        let next = node.by.get(number);
        if (!next) {
          const frame = this.model.frame(number);
          const where = frame.line >= 0 ? `${frame.file}:${frame.line}` : frame.file;
          next = { name: `${frame.function} ${where.split("/").pop()}`, said: `${frame.function} at ${where}`, value: 0, children: [], kind: frame.kind,
            by: new Map() };
          node.by.set(number, next);
          node.children.push(next);
        }
        next.value += count;
        node = next;
      }
    }

    draw() {
      this.width = this.place.clientWidth;
      if (!this.width) return;
      this.place.replaceChildren();
      const root = this.tree();
      this.chart = flamegraph.default ? flamegraph.default() : flamegraph.flamegraph();
      this.chart.width(this.width).cellHeight(CELL).inverted(true).transitionDuration(0).minFrameSize(1)
        .sort((a, b) => b.value - a.value || (a.data.name < b.data.name ? -1 : 1))
        .setLabelHandler((d) => this.said(d))
        .setColorMapper((d) => (d.highlight ? "var(--flame-found)" : FILLS[d.data.kind]))
        .setSearchMatch((d, term) => (d.data.said || d.data.name).toLowerCase().includes(term.toLowerCase()))
        .setSearchHandler((found, sum, all) => { this.readout.textContent = `${PM.plural(found.length, "frame")} found, in ${Math.round((100 * sum) / Math.max(1, all))} % of the ${this.unit}s`; })
        .onClick((d) => {
          this.readout.textContent = this.said(d);
          this.label(d.id);
        })
        .onHover((d) => { this.readout.textContent = this.said(d); });
      this.all = root.value;
      d3.select(this.place).datum(root).call(this.chart);
      this.place.querySelector("svg").setAttribute("role", "group");
      this.place.querySelector("svg").setAttribute("aria-label", "Flame graph. Up and down move to callers and callees, left and right to " +
        "neighbours, Enter widens a frame, Escape shows all.");
      this.settle();
      this.chart.transitionDuration(PM.calm() ? 0 : 200);
      this.label(0);
      if (this.search.value) this.find();
      else this.readout.textContent = `${PM.plural(this.all, this.unit)} in all`;
    }

    /** At once, what the library would let grow over some hundred milliseconds. */
    settle() {
      const place = d3.select(this.place);
      place.selectAll("g.frame").interrupt();
      place.selectAll("g.frame rect").interrupt().attr("width", (d) => (d.x1 - d.x0) * this.width);
      place.selectAll(".d3-flame-graph-label").interrupt().text((d) => d.data.name);
    }

    said(d) {
      const value = d.data.value;
      return `${PM.cut(d.data.said || d.data.name, 300)}: ${PM.count(value)} of ${PM.plural(this.all, this.unit)}, ${Math.round((100 * value) / Math.max(1, this.all))} %`;
    }

    find() {
      const term = this.search.value.trim();
      if (term) this.chart.search(term);
      else {
        this.chart.clear();
        this.readout.textContent = `${PM.plural(this.all, this.unit)} in all`;
      }
      this.label();
    }

    /** Frames as buttons, one of which Tab reaches. */
    label(id) {
      d3.select(this.place).selectAll("g.frame").each((d, at, all) => {
        const node = all[at];
        node.setAttribute("role", "button");
        node.setAttribute("aria-label", this.said(d));
        if (id !== undefined) node.setAttribute("tabindex", d.id === id ? 0 : -1);
        else if (!node.hasAttribute("tabindex")) node.setAttribute("tabindex", -1);
      });
    }

    focused(event) {
      const d = d3.select(event.target).datum();
      if (d && d.data) this.readout.textContent = this.said(d);
    }

    key(event) {
      const d = event.target.classList.contains("frame") ? d3.select(event.target).datum() : null;
      if (!d) return;
      if (event.key === "Escape") this.chart.resetZoom();
      else if (event.key === "Enter" || event.key === " ") this.chart.zoomTo(d);
      else if (event.key.startsWith("Arrow")) this.move(d, event.key.slice(5));
      else return;
      event.preventDefault();
    }

    move(d, way) {
      const row = d.parent ? d.parent.children : [d], at = row.indexOf(d);
      const to = { Up: d.parent, Down: (d.children || [])[0], Left: row[at - 1], Right: row[at + 1] }[way];
      if (!to) return;
      this.label(to.id);
      d3.select(this.place).selectAll("g.frame").filter((one) => one.id === to.id).node()?.focus({ preventScroll: false });
    }
  };
})();
