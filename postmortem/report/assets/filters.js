/* The search and the filters above the list. */
"use strict";

(() => {
  const h = PM.h;
  const GILS = [["holds", "holds it"], ["waits", "waits for it"], ["detached", "neither holds nor wants it"], ["unknown", "unknown"]];

  function select(id, label, choices, changed) {
    const element = h("select", { id, onchange: changed }, h("option", { value: "" }, "any"),
      choices.map(([value, text]) => h("option", { value }, PM.cut(text, 60))));
    return [h("div", { class: "field" }, h("label", { for: id }, label), element), element];
  }

  function check(id, label, changed, checked) {
    const element = h("input", { type: "checkbox", id, onchange: changed });
    element.checked = checked;
    return [h("div", { class: "field check" }, element, h("label", { for: id }, label)), element];
  }

  const counted = (values) => {
    const counts = new Map();
    for (const value of values) if (value) counts.set(value, (counts.get(value) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([value, many]) => [value, `${value} (${PM.count(many)})`]);
  };

  /** `changed()` is called after each change; `matches(agent)` then says who is to be shown. */
  PM.Filters = class {
    constructor(model, number, changed) {
      this.model = model;
      const agents = model.agents.map((_, agent) => agent);
      const id = (name) => `${name}-filter-${number}`;
      const later = () => {
        clearTimeout(this._timer);
        this._timer = setTimeout(changed, 120);
      };
      this.search = h("input", { type: "search", id: id("search"), placeholder: "name, function, file, lock …", oninput: later,
        autocomplete: "off", spellcheck: "false" });
      const fields = [h("div", { class: "field wide" }, h("label", { for: id("search") }, "Search"), this.search)];
      const add = ([field, element]) => {
        fields.push(field);
        return element;
      };
      const kinds = counted(agents.map((agent) => model.kind(agent)));
      this.kind = add(select(id("kind"), "What", kinds, changed));
      if (model.several) {
        this.process = add(select(id("process"), "Process", model.data.processes.map((about, at) =>
          [String(at), `${about.pid} ${model.text(about.command)}`]), changed));
      }
      this.wait = add(select(id("wait"), "Waits for", counted(agents.map((agent) => model.wait(agent))), changed));
      this.state = add(select(id("state"), "State", counted(agents.map((agent) => model.state(agent))), changed));
      if (agents.some((agent) => model.gil(agent) !== "unknown")) {
        this.gil = add(select(id("gil"), "GIL", GILS, changed));
      }
      this.cited = add(check(id("cited"), "only those cited by findings", changed, false));
      this.idle = add(check(id("idle"), "show idle ones", changed, true));
      this.grouped = add(check(id("grouped"), "group similar ones", changed, true));
      this.element = h("form", { class: "filters", role: "search", "aria-label": "Threads, tasks and processes",
        onsubmit: (event) => event.preventDefault() }, fields);
      this._haystacks = new Map();
    }

    matches(agent) {
      const { model } = this, flags = model.flags(agent);
      if (this.kind.value && model.kind(agent) !== this.kind.value) return false;
      if (this.process && this.process.value && model.processNumber(agent) !== Number(this.process.value)) return false;
      if (this.wait.value && model.wait(agent) !== this.wait.value) return false;
      if (this.state.value && model.state(agent) !== this.state.value) return false;
      if (this.gil && this.gil.value && (model.kind(agent) !== "thread" || model.gil(agent) !== this.gil.value)) return false;
      if (this.cited.checked && !(flags & PM.FLAG.cited)) return false;
      if (!this.idle.checked && flags & PM.FLAG.idle && !(flags & (PM.FLAG.cited | PM.FLAG.main))) return false;
      const words = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      return !words.length || words.every((word) => this._text(agent).includes(word));
    }

    _text(agent) {
      const { model } = this;
      const own = `${model.label(agent)} ${model.doing(agent)}`.toLowerCase();
      const stack = model.stackNumber(agent);
      if (stack < 0) return `${own} ${model.text(model.process(agent).command).toLowerCase()}`;
      if (!this._haystacks.has(stack)) {
        this._haystacks.set(stack, model.frames(stack).map((f) => `${f.function} ${f.file}:${f.line}`).join(" ").toLowerCase());
      }
      return `${own} ${this._haystacks.get(stack)}`;
    }
  };
})();
