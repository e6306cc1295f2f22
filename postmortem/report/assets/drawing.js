/* Boxes and arrows: dagre says where, this draws them as SVG. */
"use strict";

(() => {
  const s = PM.s;
  const LINE = 17, PAD = 12, GAP = 36;
  const context = document.createElement("canvas").getContext("2d");

  function width(text, font) {
    context.font = font;
    return context.measureText(text).width;
  }

  const FONTS = { title: "600 13px system-ui, sans-serif", line: "12px system-ui, sans-serif", label: "11.5px system-ui, sans-serif" };

  function measured(node) {
    const widths = [width(node.title, FONTS.title), ...node.lines.map((line) => width(line, FONTS.line))];
    return { width: Math.ceil(Math.max(...widths)) + 2 * PAD, height: PAD * 2 - 4 + LINE * (1 + node.lines.length) };
  }

  /** Nodes that hang together. */
  function parts(nodes, edges) {
    const next = new Map(nodes.map((node) => [node.id, []]));
    for (const { from, to } of edges) {
      next.get(from).push(to);
      next.get(to).push(from);
    }
    const part = new Map();
    const found = [];
    for (const node of nodes) {
      if (part.has(node.id)) continue;
      const members = new Set([node.id]);
      for (const id of members) for (const other of next.get(id)) members.add(other);
      for (const id of members) part.set(id, found.length);
      found.push(members);
    }
    return found;
  }

  function laidOut(nodes, edges) {
    const graph = new dagre.graphlib.Graph({ multigraph: true });
    graph.setGraph({ rankdir: "TB", nodesep: 26, edgesep: 18, ranksep: 34, marginx: 4, marginy: 4 });
    for (const node of nodes) graph.setNode(node.id, measured(node));
    edges.forEach((edge, at) => {
      const size = edge.label ? { width: Math.ceil(width(edge.label, FONTS.label)) + 12, height: 18, labelpos: "c" } : {};
      graph.setEdge(edge.from, edge.to, { ...size }, String(at));
    });
    dagre.layout(graph);
    return {
      width: graph.graph().width, height: graph.graph().height,
      nodes: nodes.map((node) => ({ ...node, ...graph.node(node.id) })),
      edges: edges.map((edge, at) => ({ ...edge, ...graph.edge({ v: edge.from, w: edge.to, name: String(at) }) })),
    };
  }

  /** Every part by itself, then side by side, in rows about as wide as there is room. */
  PM.layout = (nodes, edges, room) => {
    const pieces = parts(nodes, edges).map((members) =>
      laidOut(nodes.filter((node) => members.has(node.id)), edges.filter((edge) => members.has(edge.from))));
    const widest = Math.max(room, ...pieces.map((piece) => piece.width));
    let x = 0, y = 0, row = 0, right = 0;
    const all = { nodes: [], edges: [] };
    for (const piece of pieces) {
      if (x && x + piece.width > widest) {
        x = 0;
        y += row + GAP;
        row = 0;
      }
      for (const node of piece.nodes) all.nodes.push({ ...node, x: node.x + x, y: node.y + y });
      for (const edge of piece.edges) {
        all.edges.push({ ...edge, points: edge.points.map((p) => ({ x: p.x + x, y: p.y + y })), x: edge.x + x, y: edge.y + y });
      }
      x += piece.width + GAP;
      right = Math.max(right, x - GAP);
      row = Math.max(row, piece.height);
    }
    return { ...all, width: right, height: y + row };
  };

  const curve = d3.line().x((p) => p.x).y((p) => p.y).curve(d3.curveBasis);

  PM.drawEdge = (edge, marker) => s("g", { class: `edge ${edge.classes}` },
    s("path", { d: curve(edge.points), "marker-end": `url(#${marker}${edge.classes.includes("circle") ? "-circle" : ""})` }),
    edge.label ? [
      s("rect", { class: "plate", x: edge.x - edge.width / 2, y: edge.y - 9, width: edge.width, height: 18, rx: 4 }),
      s("text", { x: edge.x, y: edge.y + 4, "text-anchor": "middle" }, edge.label),
    ] : null,
    s("title", {}, edge.whole || edge.label || ""));

  PM.drawNode = (node) => s("g", {
    class: `node ${node.classes}`, transform: `translate(${node.x - node.width / 2},${node.y - node.height / 2})`,
    "data-id": node.id, tabindex: -1, role: "button", "aria-label": node.said,
  },
    node.stacked ? s("rect", { class: "box under", x: 5, y: 5, width: node.width, height: node.height, rx: 8 }) : null,
    s("rect", { class: "box", width: node.width, height: node.height, rx: node.round ? node.height / 2.4 : 8 }),
    s("text", { class: "title", x: PAD, y: PAD + 11 }, node.title),
    node.lines.map((line, at) => s("text", { class: "line", x: PAD, y: PAD + 11 + LINE * (at + 1) }, line)),
    s("title", {}, node.said));

  PM.arrow = (id, kind) => s("marker", {
    id, class: kind, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 8, markerHeight: 8, orient: "auto-start-reverse",
  }, s("path", { d: "M0 1L10 5L0 9z" }));
})();
