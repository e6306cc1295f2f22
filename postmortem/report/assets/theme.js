/* Light or dark: as the system says, until somebody chooses. */
"use strict";

(() => {
  const CHOICES = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]];

  function stored() {
    try {
      return localStorage.getItem("postmortem-theme") || "auto";
    } catch (_) {
      return "auto"; // a page in a sandbox has no storage
    }
  }

  function choose(value) {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
    try {
      localStorage.setItem("postmortem-theme", value);
    } catch (_) {
      /* the choice lasts as long as the page */
    }
  }

  PM.theme = (place) => {
    const select = PM.h("select", { id: "theme", onchange: () => choose(select.value) },
      CHOICES.map(([value, text]) => PM.h("option", { value }, text)));
    select.value = stored();
    choose(select.value);
    place.append(PM.h("label", { for: "theme", class: "unseen" }, "Colours"), select);
  };
})();
