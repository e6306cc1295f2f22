/* All that is known of one thread, task or process, where somebody has opened it. */
"use strict";

(() => {
  const h = PM.h;
  const FRAMES = 40, FEW = 3;

  function code(pieces) {
    const spans = [];
    for (let at = 0; at < pieces.length; at += 2) spans.push(pieces[at] ? h("span", { class: pieces[at] }, pieces[at + 1]) : pieces[at + 1]);
    return h("code", { class: "code" }, spans);
  }

  function frameRow(frame) {
    const line = frame.line >= 0 ? `:${frame.line}` : "";
    const kind = ["own", "library", "native"][frame.kind];
    return h("li", { class: `frame ${kind}${frame.culprit ? " culprit" : ""}` },
      h("span", { class: "function" }, PM.name(frame.function, 120)),
      h("span", { class: "where", title: frame.whole || frame.file }, h("bdi", {}, PM.tail(frame.file, 90) + line)),
      frame.kind === PM.FRAME.native ? h("span", { class: "tag" }, "native") : null,
      frame.culprit ? h("span", { class: "tag culprit" }, "change here") : null,
      frame.source ? code(frame.source) : null);
  }

  /** Native frames in a row, between or above those of Python: one line that opens. */
  function folded(frames) {
    const names = frames.map((frame) => frame.function).filter((name) => !name.startsWith("__")).slice(0, 3).join(" < ");
    const item = h("li", { class: "frame folded" });
    item.append(PM.button(`${frames.length} native frames${names ? `: ${PM.cut(names, 90)}` : ""} …`, () => {
      item.replaceWith(...frames.map(frameRow));
    }));
    return item;
  }

  /** A stack, most recent call first; of a long one the first frames. */
  PM.stack = (model, number) => {
    const frames = model.frames(number), left = model.leftOut(number);
    if (!frames.length) return h("p", { class: "hint" }, "Its stack could not be read, or is empty.");
    const list = h("ol", { class: "stack", "aria-label": "Stack, most recent call first" });
    const native = (at) => frames[at] && frames[at].kind === PM.FRAME.native;
    const python = frames.some((frame) => frame.kind !== PM.FRAME.native);
    const add = (from, to) => {
      for (let at = from; at < to && at < frames.length; at += 1) {
        if (left.frames && left.behind === at) list.append(h("li", { class: "gap" }, `… ${PM.count(left.frames)} frames left out …`));
        let end = at;
        while (python && native(end) && end < to) end += 1;
        if (end - at < FEW) list.append(frameRow(frames[at]));
        else {
          list.append(folded(frames.slice(at, end)));
          at = end - 1;
        }
      }
    };
    add(0, FRAMES);
    if (frames.length <= FRAMES) return list;
    const more = PM.button(`Show ${frames.length - FRAMES} older frames`, () => {
      add(FRAMES, frames.length);
      more.remove();
    });
    return h("div", {}, list, more);
  };

  function facts(model, agent) {
    const found = [];
    const said = model.doing(agent);
    found.push(h("p", { class: "doing" }, PM.prose(said.charAt(0).toUpperCase() + said.slice(1), 400), said.endsWith(".") ? "" : "."));
    for (const edge of model.edges(agent)) {
      const need = model.need(edge);
      if (model.kind(agent) === "task" && !said.includes(need)) found.push(h("p", {}, "It ", PM.name(need, 300), "."));
    }
    for (const one of model.holds(agent)) found.push(h("p", {}, "Holds ", PM.name(one, 300), "."));
    for (const one of model.facts(agent)) found.push(h("p", {}, PM.name(one, 400)));
    if (model.loop(agent) >= 0) found.push(h("p", {}, "Runs on the event loop of ", PM.name(model.label(model.loop(agent))), "."));
    return found;
  }

  function ofProcess(model, agent) {
    const about = model.process(agent);
    return [
      h("p", { class: "doing" }, PM.name(model.text(about.kind), 200), "."),
      h("p", { class: "command" }, PM.name(model.text(about.command), 600)),
      about.facts.map((one) => h("p", {}, PM.name(model.text(one), 400))),
    ];
  }

  /** Explains the special words that stand in an element. */
  PM.words = (model, element) => {
    const said = element.textContent;
    const known = Object.entries(model.data.terms).filter(([term]) =>
      new RegExp(`(^|[^\\w-])${term}([^\\w-]|$)`, term === "GIL" ? "" : "i").test(said));
    if (!known.length) return null;
    return h("dl", { class: "words" }, known.map(([term, means]) => h("div", {}, h("dt", {}, term), h("dd", {}, means))));
  };

  /** The element that explains one agent. `app` has show(agent) for the picture, flame(agent). */
  PM.details = (model, agent, app) => {
    const kind = model.kind(agent);
    const body = h("div", { class: "facts" }, kind === "process" ? ofProcess(model, agent) : facts(model, agent));
    const actions = h("div", { class: "actions" });
    if (app.show) actions.append(PM.button("Show in the picture", () => app.show(agent)));
    if (app.flame && model.samples(agent).length) actions.append(PM.button("Its flame graph", () => app.flame(agent)));
    if (app.neighbours && kind !== "process") app.neighbours(agent, actions);
    return h("div", { class: "details" }, body, PM.words(model, body), kind === "process" ? null : PM.stack(model, model.stackNumber(agent)),
      actions.children.length ? actions : null);
  };

  PM.marks = (model, agent) =>
    model.marks(agent).map(([kind, text, why]) => h("span", { class: `mark ${kind}`, title: why }, text));
})();
