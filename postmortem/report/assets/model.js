/* The data of one report, with names for what its rows hold (postmortem/report/html/agents.py writes them). */
"use strict";

(() => {
  const KIND = 0, PROCESS = 1, STACK = 2, STATE = 3, GIL = 4, WAIT = 5, DOING = 6, FLAGS = 7, LOOP = 8;
  const SHAPE = 0, ID = 1, NAME = 2, EDGES = 3, HOLDS = 4, FACTS = 5;
  const GILS = ["unknown", "holds", "waits", "detached"];
  const STATES = {
    R: "runs or is ready to run", S: "sleeps in the kernel", D: "waits for a device", T: "stopped by a signal",
    t: "stopped by a debugger", Z: "has ended", I: "idle in the kernel",
  };

  /** [7, [9, 11]] are 7, 9, 10, 11. */
  const unrolled = (runs) => runs.flatMap((run) => (Array.isArray(run) ? Array.from({ length: run[1] - run[0] + 1 }, (_, at) => run[0] + at) : [run]));

  PM.FLAG = { culprit: 1, victim: 2, idle: 4, main: 8, stuck: 16, likely: 32, gc: 64, daemon: 128, cited: 256 };
  PM.EDGE = { all: 1, everyone: 2, signals: 4, gone: 8, inferred: 16, ends: 32 };
  PM.FRAME = { own: 0, library: 1, native: 2 };

  PM.Model = class {
    constructor(data) {
      this.data = data;
      this.agents = data.agents;
      // A name that ends in a number stands as [number of its beginning, that number].
      this.strings = data.strings.map((one) => (Array.isArray(one) ? data.strings[one[0]] + one[1] : one));
      this.folds = data.folds.map(unrolled);
      this.circles = data.circles.map(unrolled);
      this.group = new Map(data.alike.map(unrolled).flatMap((members) => members.map((agent) => [agent, members[0]])));
      this.culprits = new Set(data.culprits.map(([file, line]) => `${file}:${line}`));
      this.several = data.processes.length > 1;
      this._waiters = null;
    }

    text(number) { return number === undefined || number < 0 ? "" : this.strings[number]; }

    shape(agent) { return this.data.shapes[this.agents[agent][SHAPE]]; }
    kind(agent) { return ["thread", "task", "process"][this.shape(agent)[KIND]]; }
    processNumber(agent) { return this.shape(agent)[PROCESS]; }
    process(agent) { return this.data.processes[this.processNumber(agent)]; }
    flags(agent) { return this.shape(agent)[FLAGS]; }
    is(agent, flag) { return (this.flags(agent) & flag) !== 0; }
    gil(agent) { return GILS[this.shape(agent)[GIL]]; }
    state(agent) {
      const letter = this.text(this.shape(agent)[STATE]);
      return STATES[letter] || letter;
    }
    wait(agent) { return this.text(this.shape(agent)[WAIT]); }
    stackNumber(agent) { return this.shape(agent)[STACK]; }
    loop(agent) { return this.shape(agent)[LOOP]; }
    facts(agent) { return (this.agents[agent][FACTS] || []).map((one) => this.text(one)); }
    holds(agent) {
      const held = this.agents[agent][HOLDS] || [];
      return held.flatMap((what, at) => (at % 2 ? [] : [`${this.text(what)}, acquired in ${this.text(held[at + 1])}`]));
    }

    /** The first of the threads that every report shows as one with it. */
    alike(agent) { return this.group.has(agent) ? this.group.get(agent) : agent; }

    /** The kinds of what it needs, without whom and what exactly. */
    needs(agent) {
      return this.agents[agent][EDGES].map(([number]) => `${this.data.shapes[number][0]}-${this.data.shapes[number][2]}`).join("/");
    }

    /** What it needs: {verb, what, wakers, flags, kind, outside}. */
    edges(agent) {
      return this.agents[agent][EDGES].map(([number, what, ...wakers]) => {
        const [verb, flags, kind, outside] = this.data.shapes[number];
        return { verb: this.text(verb), what: this.text(what), wakers, flags, kind: this.text(kind), outside: outside.map((one) => this.text(one)) };
      });
    }

    /** What people call it: `pay (4092)`, `task Task-7`, `process 12`. */
    label(agent) {
      const row = this.agents[agent], kind = this.kind(agent);
      if (kind === "process") return `process ${row[ID]}`;
      const name = this.text(row[NAME]);
      if (kind === "task") return `task ${name}`;
      return name ? `${name} (${row[ID]})` : `thread ${row[ID]}`;
    }

    shortLabel(agent, most) {
      const row = this.agents[agent];
      const name = this.text(row[NAME]);
      if (this.kind(agent) === "thread" && name) {
        const id = ` (${row[ID]})`;
        return PM.cut(name, Math.max(4, most - id.length)) + id;
      }
      return PM.cut(this.label(agent), most);
    }

    /** Frames of a stack: {kind, function, file, line, whole, key, source, culprit}, the most recent call first. */
    frames(stack) {
      if (stack < 0 || stack === undefined) return [];
      return this.data.stacks[stack][0].map((number) => this.frame(number));
    }

    frame(number) {
      const [kind, name, file, line, whole] = this.data.frames[number];
      const key = `${file}:${line}`;
      return {
        number, kind, function: this.text(name), file: this.text(file), line, whole: this.text(whole),
        source: this.data.lines[key], culprit: kind !== PM.FRAME.native && this.culprits.has(key),
      };
    }

    leftOut(stack) {
      const row = stack >= 0 ? this.data.stacks[stack] : [];
      return { frames: row[1] || 0, behind: row[2] || 0 };
    }

    /** The frame that tells where it is: the innermost of the program's own, else the innermost of Python. */
    place(agent) {
      const stack = this.stackNumber(agent);
      if (stack < 0) return null;
      const rows = this.data.stacks[stack][0];
      const kinds = (kind) => rows.find((number) => this.data.frames[number][0] === kind);
      const number = kinds(PM.FRAME.own) ?? kinds(PM.FRAME.library) ?? rows[0];
      return number === undefined ? null : this.frame(number);
    }

    placeText(frame) {
      const file = frame.kind === PM.FRAME.native ? frame.file : frame.file.split("/").pop();
      return `${frame.function} at ${file}${frame.line >= 0 ? `:${frame.line}` : ""}`;
    }

    /** A sentence on what it does. */
    doing(agent) {
      const said = this.text(this.shape(agent)[DOING]);
      if (said) return said;
      const edges = this.edges(agent), edge = edges.find((one) => one.kind !== "turn") || edges[0];
      return edge ? this.need(edge) : this.state(agent) || "is in an unknown state";
    }

    /** `awaits Lock cache.lock, held by task Task-5` */
    need(edge) {
      const { wakers, flags } = edge;
      let said = `${edge.verb} ${edge.what}`;
      const held = ["lock", "rlock", "async-lock", "mutex", "rwlock", "file-lock", "import-lock"].includes(edge.kind);
      if (wakers.length === 1 && held) said += `, held by ${this.label(wakers[0])}`;
      if (flags & PM.EDGE.gone) said += ", whose holder has ended";
      return said;
    }

    /** Who waits for it, by name. */
    waiters(agent) {
      if (!this._waiters) {
        this._waiters = new Map();
        this.agents.forEach((row, waiter) => {
          for (const edge of row[EDGES]) {
            for (const waker of edge.slice(2)) {
              if (!this._waiters.has(waker)) this._waiters.set(waker, []);
              this._waiters.get(waker).push(waiter);
            }
          }
        });
      }
      return this._waiters.get(agent) || [];
    }

    marks(agent) {
      const flags = this.flags(agent), found = [];
      if (flags & PM.FLAG.main) found.push(["main", "main thread", "The thread that the program started in."]);
      if (flags & PM.FLAG.culprit) found.push(["culprit", "cited as cause", "The verdict names it as a cause."]);
      else if (flags & PM.FLAG.cited && !(flags & PM.FLAG.victim)) found.push(["cited", "also named", "Another finding names it: see “Also found”."]);
      if (flags & PM.FLAG.victim) found.push(["victim", "affected", "It is held up by what was found."]);
      if (flags & PM.FLAG.stuck) found.push(["stuck", "can never move", "Nothing can end its wait."]);
      if (flags & PM.FLAG.likely) found.push(["stuck", "probably stuck", "If what was inferred is right, nothing can end its wait."]);
      if (flags & PM.FLAG.gc) found.push(["gc", "collects garbage", "It runs Python's garbage collector."]);
      return found;
    }

    samples(agent) { return this.data.samples[agent] || []; }

    timeline(agent) {
      const text = this.text(this.data.timelines[agent]);
      const found = [];
      let begin = 0;
      for (const [, letter, lasts] of text.matchAll(/([hwrbu])(\d+)/g)) {
        found.push({ letter, begin, end: begin + Number(lasts) });
        begin += Number(lasts);
      }
      return found;
    }
  };
})();
