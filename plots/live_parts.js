// The parts under the schedule: one request explained, all requests, distributions, latency over load, every metric.

// A part that is made again only when what it shows has changed; a control keeps the keyboard.
live.part = function (title, about, watch, fill) {
  'use strict';
  var box = live.h('div', {}), seen = null;
  return { node: live.h('div', {}, live.h('h3', {}, title), about ? live.h('p', {}, about) : null, box), draw: function () {
    var now = JSON.stringify(watch.map(function (k) { return live.state[k]; }).concat(live.printing));
    if (now === seen) { return; }
    seen = now;
    var active = document.activeElement, all = Array.from(box.querySelectorAll('button, input, select')), at = box.contains(active) ? all.indexOf(active) : -1;
    box.replaceChildren.apply(box, [].concat(fill()).filter(Boolean));
    var again = at < 0 ? null : box.querySelectorAll('button, input, select')[at];
    if (again) { again.focus(); }
  }, again: function () { seen = null; } };
};

// Has anything changed that a canvas shows? A function that remembers what it was asked last.
live.watcher = function (canvas, watch) {
  var seen = null;
  return function () {
    var now = JSON.stringify(watch.map(function (k) { return live.state[k]; }).concat(canvas.clientWidth, live.css('--ink'), live.printing));
    var changed = now !== seen;
    seen = now;
    return changed;
  };
};

// ---- one request ----

live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state;
  if (live.runs().length === 0) { return null; }

  function causes(run, row, most) {
    var q = run.requests, total = q.end_ns[row] - q.arrival_ns[row];
    var list = Object.keys(run.schedule.causes).map(function (c) { return { name: c, ns: q['cause.' + c][row] }; })
      .filter(function (c) { return c.ns !== 0; }).sort(function (a, b) { return b.ns - a.ns; });
    return h('div', { class: 'wide' }, h('table', {}, h('thead', {}, h('tr', {}, h('th', {}, 'cause'), h('th', { class: 'n' }, 'time'), h('th', { class: 'n' }, 'share'), h('th', {}, ''))),
      h('tbody', {}, list.map(function (c) {
        return h('tr', {}, h('td', {}, h('b', {}, c.name), h('br'), h('small', {}, run.schedule.causes[c.name])),
          h('td', { class: 'n cause-ns', 'data-cause': c.name, 'data-value': c.ns }, live.seconds(c.ns)), h('td', { class: 'n' }, (100 * c.ns / total).toFixed(1) + ' %'),
          h('td', {}, h('span', { class: 'cause', style: 'width:' + Math.max(1, 120 * c.ns / most).toFixed(1) + 'px' })));
      }))));
  }
  function blockers(run, id, count) {
    var b = run.blockers, list = [];
    for (var i = 0; i < b.n; i++) {
      if (b.request_id[i] === id) { list.push({ id: b.blocker_id[i], parts: [b.tail_ns[i] + b.queue_ns[i] + b.shared_ns[i], b.shared_ns[i], b.queue_ns[i], b.tail_ns[i]] }); }
    }
    if (list.length === 0) { return h('p', {}, 'Nobody was in its way.'); }
    return h('details', { open: '' }, h('summary', {}, 'Who was in its way', count > list.length ? ' (the ' + list.length + ' longest of ' + count + ')' : ''),
      h('div', { class: 'wide' }, h('table', {}, h('thead', {}, h('tr', {}, ['request', 'in all', 'in its passes', 'before it', 'rest of a kernel'].map(function (t, i) { return h('th', { class: i ? 'n' : '' }, t); }))),
        h('tbody', {}, list.map(function (x) {
          return h('tr', {}, h('td', {}, h('button', { onclick: function () { live.set({ sel: x.id }); } }, 'request ' + x.id)), x.parts.map(function (p) { return h('td', { class: 'n', 'data-value': p }, live.seconds(p)); }));
        })))));
  }
  function one(run, most) {
    var row = run.row.get(state.sel), q = run.requests;
    if (row === undefined) { return h('div', {}, h('p', { class: 'name' }, run.name), h('p', {}, 'Request ' + state.sel + ' did not leave the system in this run.')); }
    var tokens = q.output_tokens[row], first = q.first_token_ns[row];
    return h('div', { class: 'request', 'data-run': run.name }, h('p', { class: 'name' }, run.name + ': ' + live.seconds(q.end_ns[row] - q.arrival_ns[row]) + ' from arrival to ' + (q.finished[row] ? 'last token' : 'being dropped')),
      h('p', {}, (q.class[row] === 0 ? 'Reactive' : 'Proactive') + ', session ' + q.session_id[row] + ', turn ' + q.turn[row] + ', ' + q.input_tokens[row] + ' prompt tokens (' + q.reused_tokens[row] + ' found in the cache), ' + tokens + ' output tokens. It arrived at ' +
        live.seconds(q.arrival_ns[row]) + '. First token after ' + (first < 0 ? '–' : live.seconds(first - q.arrival_ns[row])) + '. Stopped against its will ' + q.preemptions[row] + ' times. ',
      h('button', { onclick: function () { var a = q.arrival_ns[row] / 1e9, e = q.end_ns[row] / 1e9, more = (e - a) * 0.1 + 1e-3; live.set({ from: Math.max(0, a - more), to: e + more }); } }, 'Show it')),
      causes(run, row, most), blockers(run, state.sel, q.blockers[row]));
  }
  return live.part('One request', 'Where the time of a request went, from its arrival to its last token. The causes exclude each other and sum to its latency. They are those of "xpusim explain".', ['sel', 'a', 'b'], function () {
    if (state.sel < 0) { return h('p', { class: 'soft' }, 'Choose a request: press a box or a bar above, or a row below.'); }
    var most = Math.max.apply(null, live.shown().map(function (r) { var i = r.row.get(state.sel); return i === undefined ? 1 : r.requests.end_ns[i] - r.requests.arrival_ns[i]; }));
    return [h('h4', {}, 'Request ' + state.sel), h('div', { class: 'pair' }, live.shown().map(function (r) { return one(r, most); }))];
  });
});

// ---- all requests, and their distributions ----

live.values = { // of a request, in seconds; NaN where there is none
  e2e: ['time to the last token', function (q, i) { return q.finished[i] ? (q.end_ns[i] - q.arrival_ns[i]) / 1e9 : NaN; }],
  ttft: ['time to the first token', function (q, i) { return q.finished[i] && q.first_token_ns[i] >= 0 ? (q.first_token_ns[i] - q.arrival_ns[i]) / 1e9 : NaN; }],
  wait: ['time to the first kernel', function (q, i) { return q.finished[i] && q.first_service_ns[i] >= 0 ? (q.first_service_ns[i] - q.arrival_ns[i]) / 1e9 : NaN; }],
  tpot: ['time per output token after the first', function (q, i) { return q.finished[i] && q.output_tokens[i] > 1 ? (q.end_ns[i] - q.first_token_ns[i]) / 1e9 / (q.output_tokens[i] - 1) : NaN; }],
};

live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state, MOST = 200;
  if (live.runs().length === 0) { return null; }
  return live.part('All requests', 'Press a heading to sort, a row to choose its request.', ['a', 'b', 'cls', 'session', 'job', 'model', 'sort', 'sel'], function () {
    var runs = live.shown(), q = runs[0].requests, rows = [];
    for (var i = 0; i < q.n; i++) {
      if (!live.matches(runs[0], i)) { continue; }
      var id = q.request_id[i], cell = function (v) { return { text: live.short(v), value: v, title: isFinite(v) ? String(v) : '' }; };
      var row = [{ node: h('button', { onclick: choose(id) }, String(id)), value: id }, { text: q.class[i] === 0 ? 'reactive' : 'proactive' }, cell(q.session_id[i]), cell(q.arrival_ns[i] / 1e9), cell(q.input_tokens[i]), cell(q.output_tokens[i])];
      runs.forEach(function (r) { var k = r.row.get(id); row.push(cell(k === undefined ? NaN : live.values.ttft[1](r.requests, k)), cell(k === undefined ? NaN : live.values.e2e[1](r.requests, k))); });
      row.chosen = id === state.sel;
      row.id = id;
      rows.push(row);
    }
    var heads = ['request', 'class', 'session', 'arrival, s', 'prompt', 'output'];
    runs.forEach(function (r) { // a policy with parameters has no space to break a line at
      var name = r.name.replace(/[:,]/g, '$&\u200b');
      heads.push('first token, s: ' + name, 'last token, s: ' + name);
    });
    return [h('div', { class: 'requests' }, live.table(heads, rows, 'sort', MOST, function (row) { live.set({ sel: row.id }); })), h('p', { class: 'soft' }, rows.length > MOST ? 'The first ' + MOST + ' of ' + rows.length + ' in this order.' : rows.length + ' requests.')];
  });
  function choose(id) { return function (e) { e.stopPropagation(); live.set({ sel: id }); }; }
});

live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state;
  if (live.runs().length === 0) { return null; }
  var metric = h('select', { onchange: function () { live.set({ m: metric.value }); } }, Object.keys(live.values).map(function (k) { return h('option', { value: k }, live.values[k][0]); }));
  var slider = h('input', { type: 'range', min: 1, max: 100, step: 0.5, oninput: function () { live.set({ q: Number(slider.value) }); } }), said = h('span', {});
  var canvas = h('canvas', { role: 'img' }), numbers = h('div', {}), changed = live.watcher(canvas, ['m', 'q', 'cls', 'session', 'job', 'model']);
  function sorted(run) {
    var out = [];
    for (var i = 0; i < run.requests.n; i++) {
      var v = live.matches(run, i) ? live.values[state.m][1](run.requests, i) : NaN;
      if (!isNaN(v)) { out.push(v); }
    }
    return out.sort(function (a, b) { return a - b; });
  }
  // Nearest rank, as the program has it.
  function quantile(v, percent) { return v.length === 0 ? NaN : v[Math.max(0, Math.ceil(percent / 100 * v.length - 1e-9) - 1)]; }
  return { node: h('div', {}, h('h3', {}, 'Distribution'), h('p', {}, 'For each time on the axis: the share of requests that took at most so long. It is of these runs, one per policy; the means over replications are below. Class, session and job are chosen above.'),
    h('div', { class: 'bar' }, h('label', {}, 'what', metric), h('label', {}, said, slider)), canvas, numbers), draw: function () {
    if (!changed()) { return; }
    metric.value = state.m;
    slider.value = state.q;
    said.textContent = 'quantile: P' + state.q;
    var all = live.runs().map(function (r) { return { run: r, v: sorted(r) }; }), most = 0, least = Infinity;
    all.forEach(function (a) { if (a.v.length > 0) { most = Math.max(most, a.v[a.v.length - 1]); least = Math.min(least, Math.max(1e-4, a.v[0])); } });
    var log = most / least > 50;
    live.paint(canvas, 240, function (c, width) {
      var left = 44, x = function (v) { return left + (log ? Math.log(Math.max(v, least) / least) / Math.log(most / least) : v / (most || 1)) * (width - left - 10); }, y = function (p) { return 8 + (1 - p) * 200; };
      live.frame(c, width, log ? live.decades(least, most) : live.ticks(0, most, width / 100), [0, 0.25, 0.5, 0.75, 1], x, y, 's', function (p) { return 100 * p + ' %'; });
      all.forEach(function (a) {
        c.strokeStyle = live.policyColour(a.run.name);
        c.lineWidth = 2;
        c.setLineDash(live.policyDash(a.run.name));
        c.beginPath();
        c.moveTo(x(a.v[0] || 0), y(0));
        a.v.forEach(function (v, i) { c.lineTo(x(v), y(i / a.v.length)); c.lineTo(x(v), y((i + 1) / a.v.length)); });
        c.stroke();
        c.setLineDash([]);
      });
      c.strokeStyle = live.css('--soft');
      c.lineWidth = 1;
      c.strokeRect(left, y(state.q / 100), width - left - 10, 0);
    });
    canvas.setAttribute('aria-label', 'Distribution of the ' + live.values[state.m][0] + '; the numbers are in the table below.');
    numbers.replaceChildren(h('div', { class: 'wide' }, h('table', { class: 'quantiles' }, h('thead', {}, h('tr', {}, ['policy', 'run status', 'requests', 'P50, s', 'P90, s', 'P99, s', 'P' + state.q + ', s'].map(function (t, i) { return h('th', { class: i > 1 ? 'n' : '' }, t); }))),
      h('tbody', {}, all.map(function (a) {
        return h('tr', {}, h('td', {}, live.swatch(a.run.name), a.run.name), h('td', {}, h('span', { class: 'badge ' + a.run.result.verdict }, a.run.result.verdict)), h('td', { class: 'n' }, String(a.v.length)),
          [50, 90, 99, state.q].map(function (p) { var v = quantile(a.v, p); return h('td', { class: 'n', title: String(v), 'data-value': v }, live.short(v)); }));
      })))));
  } };
});

// ---- axes ----

live.decades = function (low, high) {
  var out = [];
  for (var p = Math.floor(Math.log10(low)); Math.pow(10, p) <= high; p++) { [1, 3].forEach(function (k) { var v = +(k * Math.pow(10, p)).toPrecision(3); if (v >= low && v <= high) { out.push(v); } }); }
  return out;
};
live.swatch = function (name) { return live.h('i', { style: 'display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem;background:' + live.policyColour(name) }); };
// Grid and numbers of both axes.
live.frame = function (c, width, xs, ys, x, y, unit, percent, bottom) {
  'use strict';
  if (ys.length === 0) { ys = [0]; }
  c.fillStyle = live.css('--soft');
  c.textAlign = 'center';
  var foot = bottom || y(ys[0]), head = y(ys[ys.length - 1]), last = -100;
  xs.forEach(function (v) {
    c.globalAlpha = 0.25;
    c.fillRect(x(v), head, 1, foot - head);
    c.globalAlpha = 1;
    if (x(v) - last > 44) { c.fillText(v + (unit ? ' ' + unit : ''), Math.min(width - 16, x(v)), foot + 14); last = x(v); }
  });
  c.textAlign = 'right';
  ys.forEach(function (v) {
    c.globalAlpha = 0.25;
    c.fillRect(44, y(v), width - 54, 1);
    c.globalAlpha = 1;
    c.fillText(percent ? percent(v) : live.short(v), 40, y(v));
  });
};

// ---- latency over load ----

// Means of the chosen metric over load with their intervals, between two ends, and where the reader is. loads: those of
// compare --load --json, by load.
live.curves = function (c, width, policies, loads, low, high, chosen) {
  'use strict';
  var state = live.state, most = 0, least = Infinity, at = function (l, p) { return l.policies[p][state.lm] || {}; }, what = live.describe(state.lm) || { title: state.lm, unit: '' };
  loads.forEach(function (l) { policies.forEach(function (p) { var m = at(l, p).mean || 0; most = Math.max(most, m); least = Math.min(least, m); }); });
  var log = least > 0 && most > 10 * least; // then equal steps are equal ratios
  var x = function (v) { return 54 + (v - low) / (high - low || 1) * (width - 74); }, y = function (v) { return 14 + (1 - Math.min(1.04, Math.max(0, log ? Math.log(Math.max(v, least / 2) / (least / 2)) / Math.log(2 * most / least) : v / (most || 1)))) * 216; };
  live.frame(c, width, loads.map(function (l) { return l.load; }), log ? live.decades(least / 2, most) : live.ticks(0, most || 1, 5), x, y, '', null, 230);
  c.textAlign = 'left';
  c.fillText(what.title + ', ' + what.unit + (log ? ', logarithmic' : ''), 48, 6);
  policies.forEach(function (p) {
    var good = loads.filter(function (l) { return isFinite(at(l, p).mean) && at(l, p).mean !== null; });
    c.fillStyle = c.strokeStyle = live.policyColour(p);
    c.beginPath();
    good.forEach(function (l) { c.lineTo(x(l.load), y(at(l, p).high)); });
    good.slice().reverse().forEach(function (l) { c.lineTo(x(l.load), y(at(l, p).low)); });
    c.globalAlpha = 0.2;
    c.fill();
    c.globalAlpha = 1;
    c.lineWidth = 2;
    c.setLineDash(live.policyDash(p));
    c.beginPath();
    good.forEach(function (l) { c.lineTo(x(l.load), y(at(l, p).mean)); });
    c.stroke();
    c.setLineDash([]);
    good.forEach(function (l) { // the interval once more, as a line: a band between two loads only is none at a single one
      c.lineWidth = 1;
      c.strokeRect(x(l.load), y(at(l, p).high), 0, y(at(l, p).low) - y(at(l, p).high));
      c.beginPath();
      c.arc(x(l.load), y(at(l, p).mean), 4, 0, 7);
      c.fill();
      if (l.verdicts[p].overloaded > 0) { c.lineWidth = 2; c.strokeStyle = live.css('--warn'); c.beginPath(); c.arc(x(l.load), y(at(l, p).mean), 7, 0, 7); c.stroke(); c.strokeStyle = live.policyColour(p); }
    });
  });
  c.strokeStyle = live.css('--soft');
  c.lineWidth = 1;
  c.strokeRect(x(chosen), 12, 0, 220);
};

live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state, found = live.documents().filter(function (d) { return d.kind === 'load'; });
  if (found.length === 0) { return null; }
  var tree = found[0].tree, loads = tree.loads, policies = Object.keys(loads[0].policies);
  var names = live.loadMetrics.filter(function (n) { return n in loads[0].policies[policies[0]]; });
  var metric = h('select', { onchange: function () { live.set({ lm: metric.value }); } }, names.map(function (n) { return h('option', { value: n }, n); }));
  var slider = h('input', { type: 'range', min: 0, max: loads.length - 1, step: 1, oninput: function () { live.set({ load: loads[slider.value].load }); } }), said = h('span', {});
  var canvas = h('canvas', { role: 'img' }), numbers = h('div', {}), changed = live.watcher(canvas, ['lm', 'load']);
  function at(l, p) { return l.policies[p][state.lm] || {}; }
  return { node: h('div', {}, h('h3', {}, 'Latency over load'), h('p', {}, 'At load 1, ' + tree.baseline + ' could just keep up: ' + live.short(tree.capacity_req_per_min) + ' requests a minute, measured with all requests there at once. Lines are means over ' + tree.replications + ' replications, bands their 95 % intervals. A ring in red: some replications were overloaded, so that the mean grows with their length.'),
    h('div', { class: 'bar' }, h('label', {}, 'metric', metric), h('label', {}, said, slider)), h('p', { class: 'key' }, policies.map(function (p) { return h('span', {}, live.swatch(p), p); })), canvas, numbers), draw: function () {
    if (!changed()) { return; }
    var i = Math.max(0, loads.findIndex(function (l) { return l.load === state.load; }));
    metric.value = state.lm;
    slider.value = i;
    said.textContent = 'load ' + loads[i].load;
    live.paint(canvas, 260, function (c, width) { live.curves(c, width, policies, loads, loads[0].load, loads[loads.length - 1].load, loads[i].load); });
    canvas.setAttribute('aria-label', state.lm + ' over load for ' + policies.join(', ') + '; the numbers are in the table below.');
    numbers.replaceChildren(h('div', { class: 'wide' }, h('table', { class: 'loads' }, h('thead', {}, h('tr', {}, ['policy at load ' + loads[i].load, 'mean', '95 % interval', 'replications overloaded'].map(function (t, k) { return h('th', { class: k ? 'n' : '' }, t); }))),
      h('tbody', {}, policies.map(function (p) {
        var m = at(loads[i], p), o = loads[i].verdicts[p];
        return h('tr', {}, h('td', {}, live.swatch(p), p), h('td', { class: 'n', title: String(m.mean), 'data-value': m.mean }, live.short(m.mean)), h('td', { class: 'n' }, live.short(m.low) + ' to ' + live.short(m.high)),
          h('td', { class: 'n ' + (o.overloaded > 0 ? 'overloaded' : '') }, o.overloaded + ' of ' + (o.stable + o.undecided + o.overloaded)));
      })))));
  } };
});

// ---- every metric ----

live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state, MOST = 60;
  var sources = live.documents().filter(function (d) { return d.kind === 'compare'; }).map(function (d) {
    return { name: 'means over replications: ' + (d.tree.about ? d.tree.about.llm + ' on ' + d.tree.about.soc : d.name), policies: Object.keys(d.tree.policies), verdicts: d.tree.verdicts, of: function (p, m) { return d.tree.policies[p][m]; }, metrics: Object.keys(Object.values(d.tree.policies)[0]) };
  });
  if (live.runs().length > 0) {
    sources.push({ name: 'the runs on this page', policies: live.runs().map(function (r) { return r.name; }), of: function (p, m, i) { return { mean: live.runs()[i].result.metrics[m] }; }, metrics: Object.keys(live.runs()[0].result.metrics) });
  }
  if (sources.length === 0) { return null; }
  // A number of values has no direction; a share of those up to a limit has the other one.
  function words_of(name, m) {
    var limit = name.split('.below:')[1], turned = { lower: 'higher', higher: 'lower' };
    if (/\.n$/.test(name) && m.unit !== 'events') { return m.title + ', number of values'; }
    var better = limit ? turned[m.better] : m.better in turned ? m.better : null;
    return m.title + ', ' + (limit ? 'share up to ' + limit + ' ' + m.unit : m.unit === '1' ? 'a share' : m.unit) + (better ? '; ' + better + ' is better' : '');
  }
  var search = h('input', { type: 'search', placeholder: 'search: reactive p90', 'aria-label': 'search in all metrics', oninput: function () { live.set({ find: search.value }); } });
  var source = h('select', { onchange: function () { live.set({ doc: Number(source.value) }); } }, sources.map(function (s, i) { return h('option', { value: i }, s.name); }));
  var inner = live.part('', null, ['find', 'sort2', 'doc'], function () {
    var s = sources[state.doc] || sources[0], words = state.find.toLowerCase().split(/\s+/), rows = [];
    s.metrics.forEach(function (name) {
      var m = live.describe(name), text = (name + ' ' + (m ? m.title : '')).toLowerCase();
      if (!words.every(function (w) { return text.includes(w); })) { return; }
      var cells = s.policies.map(function (p, i) {
        var v = s.of(p, name, i) || {}, none = v.mean === null || v.mean === undefined || isNaN(v.mean);
        var range = !none && v.low < v.high ? h('small', {}, ' [' + live.short(v.low) + ', ' + live.short(v.high) + ']') : null;
        return { node: [live.short(v.mean), range, v.verdict ? h('br') : null, v.verdict ? h('small', {}, v.verdict.replace(' (significant)', '')) : null], value: none ? NaN : v.mean, title: none ? '' : String(v.mean) };
      });
      if (cells.every(function (c) { return isNaN(c.value); })) { return; }
      rows.push([{ node: [h('b', {}, name), m ? h('br') : null, m ? h('small', {}, words_of(name, m)) : null], value: undefined, text: name, title: m ? m.definition : '' }].concat(cells));
    });
    var heads = ['metric'].concat(s.policies.map(function (p) { var o = s.verdicts && s.verdicts[p]; return p + (o && o.overloaded > 0 ? ' (overloaded in ' + o.overloaded + ' of ' + (o.stable + o.undecided + o.overloaded) + ')' : ''); }));
    return [live.table(heads, rows, 'sort2', state.find === '' ? MOST : 1000), h('p', { class: 'soft' }, rows.length > MOST && state.find === '' ? 'The first ' + MOST + ' of ' + rows.length + '; a search finds the others.' : rows.length + ' metrics.')];
  });
  return { node: h('div', { class: 'metrics' }, h('h3', {}, 'Every metric'), h('p', {}, 'A bracket is a 95 % interval over replications; below it is the difference to the baseline, which is corrected for the number of metrics only where compare prints it. Hold the pointer over a number for all its digits, over a name for its definition.'),
    h('div', { class: 'bar' }, h('label', {}, 'of', source), h('label', {}, 'words', search)), inner.node.lastChild), draw: function () {
    source.value = state.doc;
    if (document.activeElement !== search) { search.value = state.find; }
    inner.draw();
  } };
});
