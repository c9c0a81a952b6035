// The live part of the page: unpacks the documents, keeps what is chosen in the address (#...), and draws when it changes.
// live_schedule.js draws the devices over time, live_parts.js the rest. Documents: docs/schemas.
var live = (function () {
  'use strict';
  var app = document.getElementById('app');
  var parts = [], runs = [], documents = [], page = { slots: {}, metrics: [] };
  var usual = { a: 0, b: 1, from: 0, to: 0, sel: -1, by: 'class', cls: '', session: '', job: '', model: '', m: 'e2e', q: 90, lm: 'reactive.e2e_s.mean',
    load: 0, doc: 0, find: '', sort: 0, find2: '', sort2: 0, rl: 0.6, rn: 0 };
  var state = Object.assign({}, usual), pending = false;

  // An element: h('td', {class: 'n'}, 'text', child). Attributes that begin with "on" are listeners.
  function h(tag, attributes) {
    var e = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (k) {
      var v = attributes[k];
      if (v !== false && k.slice(0, 2) === 'on') { e.addEventListener(k.slice(2), v); } else if (v !== false) { e.setAttribute(k, v); }
    });
    for (var i = 2; i < arguments.length; i++) { [].concat(arguments[i]).forEach(function (c) { if (c !== null && c !== undefined) { e.append(c); } }); }
    return e;
  }

  // ---- documents ----

  async function unpack(element) {
    var bytes = Uint8Array.from(atob(element.textContent), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return { kind: element.dataset.kind, name: element.dataset.name, tree: JSON.parse(await new Response(stream).text()) };
  }

  // {columns, rows, delta} as {n, column: numbers}: a number is the difference to the one above it, column after column.
  function columns(table) {
    var out = { n: table.rows }, text = table.delta, at = 0;
    table.columns.forEach(function (name) {
      var of = out[name] = new Float64Array(table.rows);
      for (var row = 0; row < table.rows; row++) {
        var value = 0, minus = text.charCodeAt(at) === 45;
        for (at += minus ? 1 : 0; at < text.length && text.charCodeAt(at) !== 44; at++) { value = value * 10 + text.charCodeAt(at) - 48; }
        at++;
        of[row] = (row > 0 ? of[row - 1] : 0) + (minus ? -value : value);
      }
    });
    return out;
  }

  // A run as the page uses it: requests by id, launches of a device in order, who is in a set.
  function takeRun(run, source) {
    var s = run.schedule, r = { name: run.policy, about: run.about, result: run.result, schedule: s, source: source, end: s.end_ns };
    r.requests = columns(s.requests);
    r.blockers = columns(s.blockers);
    r.kernels = columns(s.kernels);
    r.cells = columns(s.cells);
    r.row = new Map();
    for (var i = 0; i < r.requests.n; i++) { r.row.set(r.requests.request_id[i], i); }
    var members = columns(s.members);
    r.sets = [];
    for (i = 0; i < members.n; i++) { (r.sets[members.set[i]] = r.sets[members.set[i]] || []).push(members.request_id[i]); }
    var l = r.launches = columns(s.launches);
    l.start_ns = new Float64Array(l.n);
    l.end_ns = new Float64Array(l.n);
    var ended = {};
    for (i = 0; i < l.n; i++) {
      var place = l.device[i] + ' ' + l.lane[i];
      l.start_ns[i] = (ended[place] || 0) + l.gap_ns[i];
      ended[place] = l.end_ns[i] = l.start_ns[i] + l.busy_ns[i] + l.idle_ns[i];
    }
    r.lanes = [];
    s.devices.forEach(function (name, device) {
      var lanes = [];
      for (var k = 0; k < l.n; k++) { if (l.device[k] === device) { (lanes[l.lane[k]] = lanes[l.lane[k]] || []).push(k); } }
      if (lanes.length === 0) { lanes = [[]]; }
      lanes.forEach(function (order, lane) {
        order.sort(function (x, y) { return l.start_ns[x] - l.start_ns[y]; });
        r.lanes.push({ name: lanes.length > 1 ? name + ' ' + (lane + 1) : name, device: device, order: order });
      });
    });
    return r;
  }

  // ---- what is chosen ----

  function readAddress() {
    Object.assign(state, usual);
    new URLSearchParams(location.hash.slice(1)).forEach(function (v, k) {
      if (k in usual) { state[k] = typeof usual[k] === 'number' ? Number(v) || 0 : v; }
    });
    state.a = runs[state.a] ? state.a : 0;
    state.b = runs[state.b] ? state.b : -1;
    if (!(state.to > state.from)) { state.from = 0; state.to = endS(); }
  }
  function endS() { return runs.reduce(function (most, r) { return Math.max(most, r.end / 1e9); }, 1e-9); }

  function writeAddress() {
    var p = new URLSearchParams();
    Object.keys(usual).forEach(function (k) {
      var whole = (k === 'from' || k === 'to') && state.from === 0 && state.to === endS();
      if (state[k] !== usual[k] && !whole) { p.set(k, typeof state[k] === 'number' ? +state[k].toPrecision(9) : state[k]); }
    });
    var text = p.toString();
    if (text !== '' || location.hash.indexOf('=') > 0) { history.replaceState(null, '', '#' + (text || 'live')); }
  }

  // Changes what is chosen; everything that shows it is drawn once, in the next frame.
  function set(change) {
    Object.assign(state, change);
    if (!pending) {
      pending = true;
      requestAnimationFrame(function () { pending = false; writeAddress(); draw(); });
    }
  }
  function draw() { parts.forEach(function (p) { p.draw(); }); }

  // Runs on screen: one, or two on one axis.
  function shown() { return [runs[state.a]].concat(state.b >= 0 && state.b !== state.a ? [runs[state.b]] : []).filter(Boolean); }

  function matches(run, row) {
    var q = run.requests;
    return (state.cls === '' || q.class[row] === (state.cls === 'reactive' ? 0 : 1)) &&
      (state.session === '' || q.session_id[row] === Number(state.session)) && (state.job === '' || q.job[row] === Number(state.job)) && (state.model === '' || q.model[row] === Number(state.model));
  }
  function filtered() { return state.cls !== '' || state.session !== '' || state.job !== '' || state.model !== ''; }

  // ---- colours and numbers ----

  // That of the figures (plots/style.gp). In the dark the figures are turned over (page.css), and so are these.
  var palette = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#a078f0', '#502800', '#000000', '#0014c8'];
  function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function dark() { return matchMedia('(prefers-color-scheme: dark)').matches && !live.printing; }
  function slotColour(i) {
    var deeper = [0, 0.35, 0.55, 0.2][Math.floor(i / 8) % 4], rgb = [1, 3, 5].map(function (at) { return parseInt(palette[i % 8].substr(at, 2), 16) * (1 - deeper); });
    if (dark()) { // invert(.91) hue-rotate(180deg)
      rgb = rgb.map(function (v) { return 0.91 * 255 - 0.82 * v; });
      var grey = 2 * (0.213 * rgb[0] + 0.715 * rgb[1] + 0.072 * rgb[2]);
      rgb = rgb.map(function (v) { return Math.min(255, Math.max(0, grey - v)); });
    }
    return 'rgb(' + rgb.map(Math.round).join(',') + ')';
  }
  function policyColour(name) { return slotColour(page.slots[name] || 0); }
  // Policies that share a colour differ in their dashes.
  function policyDash(name) { return [[], [8, 4], [2, 3], [10, 3, 2, 3]][Math.floor((page.slots[name] || 0) / 8) % 4]; }

  // Four digits, as the terminal prints them; the whole number is the cell's title.
  function short(v) {
    if (v === null || v === undefined || !isFinite(v)) { return '–'; }
    return v !== 0 && (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4) ? v.toExponential(3) : String(+v.toPrecision(4));
  }
  function seconds(ns) { return ns < 0 ? '–' : (ns / 1e9).toFixed(6) + ' s'; }
  // What a metric's name means: its row of the table of metrics.
  function describe(name) {
    var words = name.split('.');
    for (var n = words.length; n > 0; n--) {
      for (var from = 0; from + n <= words.length; from++) {
        var part = words.slice(from, from + n).join('.');
        for (var i = 0; i < page.metrics.length; i++) { if (page.metrics[i].part === part) { return page.metrics[i]; } }
      }
    }
    return null;
  }

  // A canvas as wide as its box, sharp on every screen: draw(context, width) in pixels of the page.
  function paint(canvas, height, drawing) {
    var ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 300;
    canvas.style.height = height + 'px';
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    var c = canvas.getContext('2d');
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = '12px system-ui, sans-serif';
    c.textBaseline = 'middle';
    drawing(c, width);
  }
  // Round numbers between two ends, about `n`.
  function ticks(low, high, n) {
    var raw = (high - low) / Math.max(1, n), power = Math.pow(10, Math.floor(Math.log10(raw))), out = [];
    var step = power * [1, 2, 5, 10].find(function (k) { return k * power >= raw * 0.999; });
    for (var v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9 && out.length < 50; v += step) { out.push(+v.toPrecision(12)); }
    return out;
  }

  // A table that sorts by a press on a heading. rows: arrays of cells {text, value, title, node}; key: the state's member.
  function table(heads, rows, key, most, onrow) {
    var by = Math.abs(state[key]) - 1, down = state[key] < 0;
    if (by >= 0) {
      var rank = function (c) { return c.value === undefined ? c.text : c.value === null || isNaN(c.value) ? Infinity : c.value; };
      rows = rows.slice().sort(function (x, y) {
        var p = rank(x[by]), q = rank(y[by]);
        return (p < q ? -1 : p > q ? 1 : 0) * (down ? -1 : 1);
      });
    }
    return h('div', { class: 'wide tall' }, h('table', {}, h('thead', {}, h('tr', {}, heads.map(function (head, i) {
      var change = {};
      change[key] = by === i && !down ? -(i + 1) : i + 1;
      return h('th', { class: i > 0 ? 'n' : '', 'aria-sort': by === i ? (down ? 'descending' : 'ascending') : 'none' },
        h('button', { onclick: function () { set(change); }, title: 'sort' }, head + (by === i ? (down ? ' ▾' : ' ▴') : '')));
    }))), h('tbody', {}, rows.slice(0, most).map(function (row) {
      return h('tr', { class: row.chosen ? 'chosen' : '', onclick: onrow ? function () { onrow(row); } : false }, row.map(function (c, i) {
        return h('td', { class: i > 0 ? 'n' : '', title: c.title || false, 'data-value': c.value === undefined ? false : String(c.value) }, c.node || c.text);
      }));
    }))));
  }

  // ---- start ----

  async function start() {
    var elements = Array.from(document.querySelectorAll('script.xpusim-data'));
    if (typeof DecompressionStream === 'undefined') {
      app.textContent = 'This browser is too old for this part; the tables and figures below need nothing of it.';
      return;
    }
    documents = await Promise.all(elements.map(unpack));
    documents.forEach(function (d) {
      if (d.kind === 'page') { page = d.tree; live.loadMetrics = page.load_metrics; }
      if (d.kind === 'view') { d.tree.runs.forEach(function (r) { runs.push(takeRun(r, d)); }); }
    });
    documents.forEach(function (d) { d.first = runs.findIndex(function (r) { return r.source === d; }); });
    readAddress();
    live.makers.forEach(function (make) { var p = make(); if (p) { parts.push(p); app.append(p.node); } });
    document.querySelectorAll('details.static').forEach(function (d) { d.open = false; });
    draw();
    app.removeAttribute('aria-busy');
    app.dataset.ready = Math.round(performance.now());
    window.addEventListener('hashchange', function () { if (location.hash.indexOf('=') > 0) { readAddress(); draw(); } });
    window.addEventListener('resize', draw);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    window.addEventListener('beforeprint', function () { live.printing = true; draw(); });
    window.addEventListener('afterprint', function () { live.printing = false; draw(); });
  }

  return { app: app, h: h, state: state, usual: usual, set: set, start: start, shown: shown, matches: matches, filtered: filtered, endS: endS, css: css, paint: paint,
    ticks: ticks, table: table, short: short, seconds: seconds, describe: describe, policyColour: policyColour, policyDash: policyDash, slotColour: slotColour,
    makers: [], printing: false, runs: function () { return runs; }, documents: function () { return documents; } };
})();
if (live.app) { document.addEventListener('DOMContentLoaded', live.start); }
