/* Finds the reports of the page and fills their parts. */
"use strict";

(() => {
  function fill(report) {
    if (report.dataset.filled) return;
    report.dataset.filled = "yes";
    const number = report.dataset.number;
    const part = (name) => report.querySelector(`#${name}-${number}`);
    const model = new PM.Model(JSON.parse(report.querySelector("script.data").textContent));
    const app = {};
    const picture = new PM.Picture(part("picture"), model, number);
    app.show = (agent) => picture.show(agent);
    const list = new PM.List(part("agents"), model, number, app);
    // What stands further down is drawn when there is time, or when somebody is about to see it.
    let flame = null;
    const rest = () => {
      if (flame) return;
      flame = new PM.Flame(part("flame"), model, number);
      new PM.Timeline(part("timeline"), model, number, app);
      report.dataset.ready = "yes";
      performance.mark("ready");
    };
    app.flame = (agent) => {
      rest();
      flame.show(agent);
    };
    picture.flame = app.flame;
    (window.requestIdleCallback || ((later) => setTimeout(later, 1)))(rest, { timeout: 200 });
    return list;
  }

  function choose(reports, links, number) {
    reports.forEach((report, at) => { report.hidden = at !== number; });
    links.forEach((link, at) => (at === number ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    fill(reports[number]);
  }

  PM.theme(document.querySelector(".controls"));
  document.documentElement.classList.add("scripted");
  const reports = [...document.querySelectorAll("article.report")];
  const links = [...document.querySelectorAll(".targets a")];
  if (reports.length === 1) fill(reports[0]);
  else if (reports.length) {
    const wanted = () => {
      const found = /-(\d+)$/.exec(location.hash);
      choose(reports, links, found && reports[Number(found[1])] ? Number(found[1]) : 0);
    };
    window.addEventListener("hashchange", () => {
      wanted();
      document.getElementById(location.hash.slice(1))?.scrollIntoView();
    });
    wanted();
  }
})();
