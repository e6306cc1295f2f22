/* Threads, tasks and processes: those with the same stack in one row, which opens. */
"use strict";

(() => {
  const h = PM.h;
  const PAGE = 30, MEMBERS = 20;

  function key(model, agent, grouped) {
    if (!grouped || model.kind(agent) === "process") return agent;
    if (model.kind(agent) === "thread") return `thread|${model.alike(agent)}`;
    const edges = model.needs(agent);
    const about = model.flags(agent) & ~PM.FLAG.daemon;
    return `${model.kind(agent)}|${model.processNumber(agent)}|${model.stackNumber(agent)}|${model.gil(agent)}|${model.wait(agent)}|${edges}|${about}`;
  }

  const rank = (model, agent) => {
    const flags = model.flags(agent);
    return (flags & PM.FLAG.culprit ? 0 : flags & PM.FLAG.victim ? 1 : flags & PM.FLAG.main ? 2 : flags & PM.FLAG.cited ? 2.5 : flags & PM.FLAG.idle ? 5 : 3) +
      (model.kind(agent) === "process" ? 1.5 : 0);
  };

  PM.List = class {
    constructor(section, model, number, app) {
      Object.assign(this, { model, app });
      this.filters = new PM.Filters(model, number, () => this.draw());
      this.summary = h("p", { class: "summary", role: "status" });
      this.rows = h("ul", { class: "rows" });
      this.more = PM.button("", () => this.page(), { class: "next" });
      section.append(this.filters.element, this.summary, this.rows, this.more);
      const { leftOut } = model.data;
      for (const [what, many] of Object.entries(leftOut)) {
        if (many) section.append(h("p", { class: "notice" }, `Left out of this page: ${PM.count(many)} more ${what}. \`-f json\` has all.`));
      }
      this.draw();
    }

    draw() {
      const { model } = this, groups = new Map();
      let found = 0;
      model.agents.forEach((_, agent) => {
        if (!this.filters.matches(agent)) return;
        found += 1;
        const at = key(model, agent, this.filters.grouped.checked);
        if (!groups.has(at)) groups.set(at, []);
        groups.get(at).push(agent);
      });
      for (const members of groups.values()) members.sort((a, b) => rank(model, a) - rank(model, b) || a - b);
      this.groups = [...groups.values()].sort((a, b) => rank(model, a[0]) - rank(model, b[0]) || b.length - a.length || a[0] - b[0]);
      this.shown = 0;
      this.rows.replaceChildren();
      this.summary.textContent = found === model.agents.length ? `${PM.count(found)} in all` : `${PM.count(found)} of ${PM.count(model.agents.length)}`;
      if (!found) this.summary.textContent = "None of them matches these filters.";
      this.page();
    }

    page() {
      const focus = document.activeElement === this.more;
      const fresh = this.groups.slice(this.shown, this.shown + PAGE).map((members) => this.row(members));
      this.rows.append(...fresh);
      this.shown += fresh.length;
      const left = this.groups.length - this.shown;
      this.more.hidden = left <= 0;
      this.more.textContent = `Show ${PM.count(Math.min(left, PAGE))} more rows of ${PM.count(left)}`;
      if (focus && fresh.length && this.shown > PAGE) fresh[0].querySelector("button").focus();
    }

    row(members) {
      const { model } = this, first = members[0], many = members.length > 1;
      const item = h("li", { class: `row ${model.kind(first)}` });
      const place = model.place(first);
      const head = h("button", { type: "button", class: "head", "aria-expanded": "false", onclick: () => this.toggle(item, head, members) },
        h("span", { class: "who" }, many ? `${PM.count(members.length)} × ` : "", h("bdi", {}, PM.cut(this.title(members), 90))),
        PM.marks(model, first),
        h("span", { class: "what" }, h("bdi", {}, PM.cut(many ? this.common(members) : model.doing(first), 180))),
        place ? h("span", { class: "at" }, h("bdi", {}, PM.cut(model.placeText(place), 100))) : null);
      item.append(head);
      return item;
    }

    title(members) {
      const { model } = this;
      if (members.length === 1) return model.kind(members[0]) === "process"
        ? `${model.label(members[0])}: ${model.text(model.process(members[0]).command)}` : model.label(members[0]);
      const noun = model.kind(members[0]) === "task" ? "tasks" : "threads";
      const names = [members[0], members[members.length - 1]].map((agent) => model.label(agent).replace(/^task /, ""));
      return `${noun} ${[...new Set(names)].map((name) => PM.cut(name, 60)).join(" … ")}`;
    }

    common(members) {
      const said = this.model.doing(members[0]);
      return members.every((agent) => this.model.doing(agent) === said) ? said : `${said}; the others likewise`;
    }

    toggle(item, head, members) {
      const open = head.getAttribute("aria-expanded") === "true";
      head.setAttribute("aria-expanded", String(!open));
      if (open) item.querySelector(".opened").remove();
      else item.append(h("div", { class: "opened" }, PM.details(this.model, members[0], this.app), this.members(members)));
    }

    members(members) {
      if (members.length < 2) return null;
      const list = h("ul", { class: "members" });
      let shown = 0;
      const more = PM.button("", () => add());
      const add = () => {
        for (const agent of members.slice(shown, shown + MEMBERS)) {
          list.append(h("li", {}, PM.button(PM.cut(this.model.label(agent), 60), () => this.app.show(agent), { title: "Show in the picture" }),
            " ", h("bdi", {}, PM.cut(this.model.doing(agent), 140))));
        }
        shown = Math.min(members.length, shown + MEMBERS);
        more.hidden = shown >= members.length;
        more.textContent = `${PM.count(members.length - shown)} more`;
      };
      add();
      return h("div", {}, h("h4", {}, `All ${PM.count(members.length)}, with the same stack`), list, more);
    }
  };
})();
