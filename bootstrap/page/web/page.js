"use strict";
// The page shows one part at a time and asks for that part only, every two seconds while somebody looks. All text goes in as text, never
// as HTML: names of services are the users'.

const every = 2000;
const $ = id => document.getElementById(id);
const el = (tag, attrs = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) if (v !== undefined && v !== "") e.setAttribute(k, v);
  e.append(...children.filter(c => c !== undefined && c !== null).map(c => c instanceof Node ? c : String(c)));
  return e;
};

async function api(path) {
  const r = await fetch("/api/v1/" + path, { cache: "no-store" });
  const body = await r.json();
  if (!r.ok) throw new Error(body.error || r.statusText);
  return body;
}

const clock = t => t && !t.startsWith("0001") ? new Date(t).toISOString().slice(0, 19).replace("T", " ") : "";
const mood = word => ({
  "in-sync": "good", well: "good", holds: "good", passed: "good", running: "good", idle: "good", held: "warn", pending: "warn", active: "warn",
  recovering: "warn", converging: "warn", starting: "warn", backoff: "warn", stopping: "warn", failed: "bad", quarantined: "bad", suspended: "bad",
  "not-well": "bad", violated: "bad", unknown: "bad", stopped: "warn", "not-served": "dim", "not-evaluated": "dim",
}[word] || "");

// table makes a table of rows; columns are [title, value of a row, class].
function table(columns, rows, empty = "nothing") {
  const cell = (tag, value, cls) => el(tag, { class: cls }, value instanceof Node ? value : value ?? "");
  const head = el("tr", {}, ...columns.map(([title, , cls]) => cell("th", title, cls === "n" ? "n" : "")));
  const body = rows.map(r => el("tr", {}, ...columns.map(([, value, cls]) => {
    const v = value(r);
    return cell("td", v, cls === "state" ? mood(v) : cls);
  })));
  return el("table", {}, el("thead", {}, head), el("tbody", {}, ...(body.length ? body : [el("tr", {}, el("td", { class: "dim", colspan: columns.length }, empty))])));
}

const section = (title, ...content) => [el("h2", {}, title), ...content];
const join = list => (list || []).join("\n");

const rowsOf = list => table([["renderer", r => r.renderer], ["address", r => r.vip], ["flags", r => join(r.flags)],
  ["backends", r => join((r.locals || []).map(l => l.address + " (" + l.weight + ")"))]], list || []);

// parts are what can be shown: title -> function of the rest of the hash that returns nodes.
const parts = {
  async overview() {
    const [resync, services, top] = await Promise.all([api("resync"), api("services?limit=1000"), api("top?by=pending&limit=5")]);
    const counts = {};
    for (const s of services.items) counts[s.state] = (counts[s.state] || 0) + 1;
    const text = await (await fetch("/readyz?verbose", { cache: "no-store" })).text();
    const lines = text.trim().split("\n").filter(l => l.startsWith("[")).map(l => /^\[(.)\](\S+) (?:ok|failed)(?:: (.*))?$/.exec(l) || [, "-", l, ""]);
    return [
      ...section("Parts", table([["part", l => l[2]], ["state", l => l[1] === "+" ? "in-sync" : "failed", "state"], ["", l => l[3] || ""]], lines)),
      ...section("Services: " + services.total, table([["state", c => c[0], "state"], ["number", c => c[1], "n"]], Object.entries(counts).sort())),
      ...section("Renderers", table([["renderer", r => r.renderer], ["epoch", r => r.epoch, "n"], ["in sync", r => r.inSync ? "yes" : "no"],
        ["differences found", r => r.differences, "n"], ["", r => r.error || r.reason]], resync.renderers)),
      ...section("Longest mailboxes", actorTable(top.items)),
    ];
  },
  async services(key) {
    if (key) return service(key);
    const all = await api("services?limit=1000");
    const order = { quarantined: 0, failed: 1, pending: 2 };
    all.items.sort((a, b) => (order[a.state] ?? 9) - (order[b.state] ?? 9)); // the worst first
    return section(all.total + " services" + (all.next ? ", the first " + all.items.length : ""), table([
      ["service", s => el("a", { href: "#services/" + s.service }, s.service)], ["state", s => s.state, "state"], ["frontends", s => s.frontends, "n"],
      ["endpoints", s => s.endpoints, "n"], ["rows", s => s.rows, "n"], ["generation", s => s.generation, "n"], ["changed", s => clock(s.changed)],
      ["error", s => s.error || "", "bad"]], all.items));
  },
  async interfaces() {
    const set = await api("interfaces");
    return section("Interfaces of VPP, uplink " + (set.uplink || "unknown"), table([["index", i => i.index, "n"], ["name", i => i.name], ["kind", i => i.kind],
      ["up", i => i.up ? "yes" : "no"], ["frontend", i => i.frontend ? "yes" : ""], ["backend", i => i.backend ? "yes" : ""],
      ["addresses", i => join(i.addresses)], ["pods", i => join(i.pods)]], set.items));
  },
  async nodes() {
    const nodes = await api("nodes");
    return section("Nodes; this is " + nodes.self + ", claim " + nodes.claim + (nodes.reason ? ": " + nodes.reason : ""), table([["name", n => n.name],
      ["ID", n => n.id || "", "n"], ["VPP addresses", n => join(n.vppAddresses)], ["management", n => join(n.managementAddresses)],
      ["pod networks", n => join(n.podCIDRs)]], nodes.items));
  },
  async actors() {
    const tree = await api("tree");
    const rows = [];
    const walk = (n, depth) => {
      rows.push({ ...n, label: "  ".repeat(depth) + n.name });
      for (const c of n.children || []) walk(c, depth + 1);
      const shown = (n.children || []).reduce((sum, c) => sum + 1 + c.below, 0);
      if (n.below > shown) rows.push({ label: "  ".repeat(depth + 1) + "and " + (n.below - shown) + " more" });
    };
    for (const root of tree.items) walk(root, 0);
    return section(tree.total + " actors", actorTable(rows));
  },
  async events() {
    const page = await api("events?limit=200");
    return section("Events, the newest first", table([["", e => e.seq, "n"], ["time", e => clock(e.time)], ["kind", e => e.kind], ["object", e => e.object || ""],
      ["error", e => e.error || "", "bad"], ["what", e => [e.text, ...(e.operations || []).map(o => "  " + o)].join("\n")]], page.items));
  },
  async diff() {
    const diff = await api("diff");
    return diff.renderers.flatMap(r => section(r.renderer + ": " + (r.error ? "VPP could not be read: " + r.error :
      r.operations.length ? r.operations.length + " operations would mend VPP" : "VPP, read now, holds what it should"),
      table([["operation", o => o]], r.operations)));
  },
  async chaos() {
    const c = await api("chaos");
    if (!c.enabled) return section("Chaos is off", el("p", {}, c.hint));
    const drill = c.run ? section("Drill " + c.run.id + " " + (c.run.name || ""),
      table([["state", r => r.state, "state"], ["", r => r.reason || ""], ["faults", r => r.faults, "n"], ["VPP writes", r => r.vppWrites, "n"],
        ["row reads", r => r.vppReads, "n"], ["seed", r => r.seed, "n"], ["by", r => r.who], ["began", r => clock(r.began)],
        ["until", r => clock(r.ended || r.until)]], [c.run]),
      table([["invariant", i => i.name], ["state", i => i.state, "state"], ["what must hold", i => i.what], ["", i => i.detail || ""]], c.run.invariants)) : [];
    const what = f => [f.fault, f.phase, f.message, f.by && "by " + f.by, f.rate < 1 && "rate " + f.rate, f.for && "for " + f.for].filter(Boolean).join(" ");
    return [...section(c.active + " faults last now", el("p", { class: "dim" }, "troupe chaos stop ends all of them at once")), ...drill, ...section("Faults",
      table([["", r => r.id, "n"], ["state", r => r.state, "state"], ["actor", r => r.actor], ["fault", r => what(r.what)], ["by", r => r.who],
        ["began", r => clock(r.began)], ["ended", r => r.endedBy || ""], ["struck", r => r.struck, "n"], ["outcome", r => r.outcome || ""]], c.records))];
  },
};

function actorTable(list) {
  return table([["actor", a => a.label || a.path, "path"], ["state", a => a.state, "state"], ["waiting", a => a.pending, "n"], ["received", a => a.received, "n"],
    ["life", a => a.incarnation, "n"], ["failures", a => a.failures || "", "n"], ["last failure", a => a.lastFailure || "", "bad"]], list);
}

async function service(key) {
  const s = await api("services/" + key.split("/").map(encodeURIComponent).join("/"));
  const events = await api("events?limit=50&object=" + encodeURIComponent(key));
  return [
    ...section(s.service, table([["state", x => x.state, "state"], ["generation", x => x.generation, "n"], ["changed", x => clock(x.changed)],
      ["", x => x.notServed || x.error || ""]], [s])),
    ...section("What Kubernetes asks for", table([["frontend", f => f.frontend], ["kind", f => f.kind], ["from", f => f.from], ["action", f => f.action],
      ["endpoints", f => join(f.endpoints)], ["affinity", f => f.affinitySeconds ? f.affinitySeconds + " s" : ""]], s.wanted || [])),
    ...section("Rows for VPP", rowsOf(s.rendered)), ...section("Rows in VPP", rowsOf(s.inVPP)),
    ...((s.approximations || []).length ? section("Approximations", table([["frontend", a => a.frontend], ["wanted", a => a.wanted],
      ["rendered", a => a.rendered], ["why", a => a.why]], s.approximations)) : []),
    ...((s.problems || []).length ? section("Problems of the input", table([["field", p => p.field], ["what", p => p.message, "bad"]], s.problems)) : []),
    ...section("Events", table([["time", e => clock(e.time)], ["what", e => e.text], ["error", e => e.error || "", "bad"]], events.items)),
  ];
}

let turn = 0;
async function show() {
  const mine = ++turn;
  const [name, ...rest] = decodeURI(location.hash.slice(1)).split("/");
  const part = parts[name] ? name : "overview";
  $("tabs").replaceChildren(...Object.keys(parts).map(p => el("a", { href: "#" + p, "aria-current": p === part ? "page" : undefined }, p)));
  try {
    const ready = await fetch("/readyz", { cache: "no-store" });
    const text = await ready.text();
    $("ready").textContent = ready.ok ? "ready" : text.trim().split("\n")[0].replace(/^\[-\]/, "not ready: ");
    $("ready").className = ready.ok ? "good" : "bad";
    const nodes = await parts[part](rest.join("/"));
    if (mine === turn) $("main").replaceChildren(...nodes);
    $("asked").textContent = "Asked " + new Date().toISOString().slice(11, 19) + " UTC.";
  } catch (e) {
    if (mine === turn) $("main").replaceChildren(el("p", { class: "bad" }, e.message));
  }
}

async function loop() {
  if (!document.hidden && !(getSelection() || "").toString()) await show(); // who has selected text wants to copy it
  setTimeout(loop, every);
}
addEventListener("hashchange", show);
addEventListener("visibilitychange", () => { if (!document.hidden) show(); });
loop();
