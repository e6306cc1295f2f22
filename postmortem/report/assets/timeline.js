/* What each thread was at over the observation window: a lane a thread. */
"use strict";

(() => {
  const h = PM.h, s = PM.s;
  const PAGE = 20, HEIGHT = 10;
  const WORDS = { h: "holds the GIL", w: "waits for the GIL", r: "runs", b: "blocked in a system call", u: "unknown", s: "seen at one place" };

  const share = (part, all) => `${Math.round((100 * part) / Math.max(1, all))} %`;

  PM.Timeline = class {
    constructor(section, model, number, app) {
      Object.assign(this, { model, app });
      this.window = model.data.window;
      const threads = model.agents.map((_, agent) => agent).filter((agent) => model.kind(agent) === "thread");
      this.recorded = threads.some((agent) => model.data.timelines[agent] !== undefined);
      this.agents = threads.filter((agent) => this.changes(agent));
      const ranks = new Map(this.agents.map((agent) => [agent, this.rank(agent)]));
      this.agents.sort((a, b) => ranks.get(a) - ranks.get(b) || a - b);
      if (!this.window || !this.agents.length) {
        section.append(h("p", { class: "none" }, this.window
          ? "The window was watched, but what each thread did in it was not recorded."
          : "There was no observation window: a core file shows one moment only. `postmortem capture` watches before it captures."));
        return;
      }
      if (!this.recorded) {
        section.append(h("p", { class: "notice" }, "States were not recorded here. A bar reaches from the first to the last time that " +
          "py-spy saw a thread at one place; in between it may have been elsewhere."));
      }
      this.readout = h("output", { class: "readout" }, "Point at a lane, or move through it with the arrow keys.");
      this.lanes = h("ul", { class: "lanes" });
      this.more = PM.button("", () => this.page(), { class: "next" });
      this.shown = 0;
      section.append(this.legend(), this.readout, this.axis(), this.lanes, this.more);
      this.page();
    }

    stretches(agent) {
      if (this.recorded) return this.model.timeline(agent);
      return this.model.samples(agent).map(([stack, count, begin, end]) => ({ letter: "s", begin, end: Math.max(end, begin + 1), stack, count }))
        .sort((a, b) => a.begin - b.begin);
    }

    /** How much there is to see in its lane, without taking it apart. */
    changes(agent) { return this.recorded ? this.model.text(this.model.data.timelines[agent]).length : this.model.samples(agent).length; }

    /** Cited ones first, then those that changed most often. */
    rank(agent) {
      const flags = this.model.flags(agent);
      return (flags & PM.FLAG.cited ? 0 : flags & PM.FLAG.main ? 1e6 : 2e6) - Math.min(9e5, this.changes(agent));
    }

    legend() {
      const letters = this.recorded ? ["h", "w", "r", "b", "u"] : ["s"];
      return h("ul", { class: "legend", "aria-label": "Legend" }, letters.map((letter) =>
        h("li", {}, h("span", { class: `swatch time-${letter}` }), WORDS[letter])),
        this.recorded ? h("li", { class: "hint" }, `GIL: ${this.model.data.terms.GIL}`) : null);
    }

    axis() {
      const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => h("span", {}, PM.seconds(part * this.window)));
      return h("div", { class: "axis", "aria-hidden": "true" }, h("span", { class: "lane-name" }), h("span", { class: "ticks" }, ticks));
    }

    page() {
      const fresh = this.agents.slice(this.shown, this.shown + PAGE);
      this.lanes.append(...fresh.map((agent) => this.lane(agent)));
      this.shown += fresh.length;
      const left = this.agents.length - this.shown;
      this.more.hidden = left <= 0;
      this.more.textContent = `Show ${PM.count(Math.min(PAGE, left))} more of ${PM.plural(left, "thread")}`;
    }

    lane(agent) {
      const { model } = this, stretches = this.stretches(agent), letters = [...new Set(stretches.map((one) => one.letter))];
      const paths = letters.map((letter) => s("path", { class: `time-${letter}`, d: stretches.filter((one) => one.letter === letter)
        .map((one) => `M${one.begin} 0H${Math.max(one.end, one.begin + this.window / 2000)}V${HEIGHT}H${one.begin}Z`).join("") }));
      const cursor = s("rect", { class: "cursor", x: -10, y: 0, width: this.window / 300, height: HEIGHT });
      const svg = s("svg", { class: "bar", viewBox: `0 0 ${this.window} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, paths, cursor);
      const said = this.said(stretches);
      const head = h("button", { type: "button", class: "head", "aria-expanded": "false", "aria-label": `${model.label(agent)}: ${said}` },
        h("span", { class: "lane-name" }, h("bdi", {}, PM.cut(model.label(agent), 60))), svg);
      const item = h("li", { class: `lane${model.is(agent, PM.FLAG.culprit) ? " culprit" : ""}` }, head);
      let at = -1;
      const tell = (one) => {
        this.readout.textContent = `${PM.cut(model.label(agent), 60)}, ${PM.seconds(one.begin)} to ${PM.seconds(one.end)}: ${this.word(one)}`;
        cursor.setAttribute("x", one.begin);
      };
      svg.addEventListener("pointermove", (event) => {
        const box = svg.getBoundingClientRect(), ms = ((event.clientX - box.left) / box.width) * this.window;
        const found = stretches.find((one) => one.begin <= ms && ms < one.end);
        if (found) tell(found);
      });
      head.addEventListener("click", () => this.toggle(item, head, agent, said));
      head.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
        at = Math.min(stretches.length - 1, Math.max(0, at + (event.key === "ArrowRight" ? 1 : -1)));
        tell(stretches[at]);
        event.preventDefault();
      });
      return item;
    }

    word(one) {
      if (one.letter !== "s") return WORDS[one.letter];
      const frame = this.model.frames(one.stack)[0];
      return `${frame ? this.model.placeText(frame) : "an unknown place"}, seen ${PM.plural(one.count, "time")}`;
    }

    said(stretches) {
      const sums = new Map();
      for (const one of stretches) sums.set(one.letter, (sums.get(one.letter) || 0) + (one.letter === "s" ? 1 : one.end - one.begin));
      if (sums.has("s")) return `seen at ${PM.plural(sums.get("s"), "place")}`;
      const all = [...sums.values()].reduce((a, b) => a + b, 0);
      return [...sums].sort((a, b) => b[1] - a[1]).map(([letter, ms]) => `${WORDS[letter]} ${share(ms, all)}`).join(", ");
    }

    toggle(item, head, agent, said) {
      const open = head.getAttribute("aria-expanded") === "true";
      head.setAttribute("aria-expanded", String(!open));
      if (open) item.querySelector(".opened").remove();
      else item.append(h("div", { class: "opened" }, h("p", {}, `${said}.`), PM.details(this.model, agent, this.app)));
    }
  };
})();
