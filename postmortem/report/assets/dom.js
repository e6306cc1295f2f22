/* Elements, made of text alone: nothing that a program named ever passes through an HTML parser. */
"use strict";

const PM = {};

(() => {
  const SVG = "http://www.w3.org/2000/svg";

  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else element.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === "") continue;
      element.append(child instanceof Node ? child : String(child));
    }
    return element;
  }

  /** h("p", {class: "hint"}, "text", element, …); keys that begin with "on" are listeners. */
  PM.h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  PM.s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  PM.cut = (text, most) => {
    const whole = Array.from(text.length > 4 * most ? text.slice(0, 4 * most) : text);
    return whole.length <= most && text.length <= 4 * most ? text : `${whole.slice(0, Math.max(1, most - 1)).join("")}…`;
  };

  /** Of long paths the end tells more. */
  PM.tail = (text, most) => {
    const whole = Array.from(text);
    return whole.length <= most ? text : `…${whole.slice(whole.length - most + 1).join("")}`;
  };

  /** A name with its own reading direction; of a long one the rest opens on request. */
  PM.name = (text, most = 160) => {
    if (text.length <= most) return PM.h("bdi", {}, text);
    const bdi = PM.h("bdi", {}, PM.cut(text, most));
    const more = PM.h("button", { type: "button", class: "more", onclick: (event) => {
      event.stopPropagation();
      bdi.textContent = text;
      more.remove();
    } }, `all ${PM.count(text.length)} characters`);
    return PM.h("span", { class: "long-name" }, bdi, " ", more);
  };

  /** A sentence: what stands in backticks is code. */
  PM.prose = (text, most) => {
    if (text.length > most) return PM.name(text, most);
    return PM.h("bdi", {}, text.split("`").map((part, at, all) => (at % 2 && at < all.length - 1 ? PM.h("code", {}, part) : at % 2 ? `\`${part}` : part)));
  };

  PM.count = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");

  PM.plural = (number, noun) =>
    number === 1 ? `1 ${noun}` : `${PM.count(number)} ${noun}${noun.endsWith("s") ? "es" : "s"}`;

  PM.seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`);

  PM.button = (text, onclick, attributes) => PM.h("button", { type: "button", onclick, ...attributes }, text);

  PM.calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

  /** Says something to a screen reader. */
  PM.announce = (text) => {
    let live = document.getElementById("live");
    if (!live) {
      live = PM.h("div", { id: "live", class: "unseen", "aria-live": "polite", role: "status" });
      document.body.append(live);
    }
    live.textContent = text;
  };
})();
