// The schedule: lanes of requests, devices, DDR, memory and power over time. Two runs have one time axis. Drag, wheel, keys
// and buttons move it; a press chooses a request, whose launches then stand out.
live.makers.push(function () {
  'use strict';
  var h = live.h, state = live.state, GUTTER = 58, LANE = 26, CURVE = 40, BARS = 70, AXIS = 18;
  if (live.runs().length === 0) { return null; }
  var say = h('p', { class: 'say', 'aria-live': 'polite' }), key = h('p', { class: 'key' }), differ = h('p', {});
  var views = [0, 1].map(function (i) {
    var canvas = h('canvas', { class: 'time', tabindex: 0, role: 'img' }), name = h('p', { class: 'name' });
    var v = { i: i, canvas: canvas, name: name, box: h('div', {}, name, canvas), hits: [] };
    listen(v);
    return v;
  });
  var cursor = null; // seconds

  // ---- what a launch looks like ----

  // Of every set of requests: its class, first session, whether the filter and the chosen request are in it.
  function look(run) {
    var q = run.requests;
    return run.sets.map(function (ids) {
      var o = { reactive: false, proactive: false, session: -1, model: 0, match: false, lit: false };
      ids.forEach(function (id) {
        var row = run.row.get(id);
        if (row === undefined) { return; }
        o[q.class[row] === 0 ? 'reactive' : 'proactive'] = true;
        o.session = o.session < 0 ? q.session_id[row] : o.session;
        o.model = q.model[row];
        o.match = o.match || live.matches(run, row);
        o.lit = o.lit || id === state.sel;
      });
      return o;
    });
  }
  function colourTable() {
    var slots = [0, 1, 2, 3, 4, 5, 6, 7].map(live.slotColour), css = { r: live.css('--reactive'), p: live.css('--proactive'), b: live.css('--both'), grey: live.css('--grey') };
    return function (o, kind) {
      if (!o.match) { return css.grey; }
      if (state.by === 'session') { return slots[Math.abs(o.session) % 8]; }
      if (state.by === 'model') { return slots[o.model % 8]; }
      if (state.by === 'phase') { return [css.p, css.r, css.b][kind]; }
      return o.reactive && o.proactive ? css.b : o.reactive ? css.r : css.p;
    };
  }

  // ---- drawing ----

  // Index of the first launch of a lane that ends after `ns`.
  function firstAfter(order, ends, ns) {
    var low = 0, high = order.length;
    while (low < high) {
      var middle = (low + high) >> 1;
      if (ends[order[middle]] < ns) { low = middle + 1; } else { high = middle; }
    }
    return low;
  }

  function drawLane(c, v, run, lane, y, x, width, looks, colour) {
    var l = run.launches, from = state.from * 1e9, to = state.to * 1e9, bins = new Map(), any = state.sel >= 0, active = [], uncertain = new Path2D();
    for (var k = firstAfter(lane.order, l.end_ns, from); k < lane.order.length; k++) {
      var i = lane.order[k];
      if (l.start_ns[i] > to) { break; }
      var o = looks[l.set[i]] || {}, x0 = Math.max(GUTTER, x(l.start_ns[i])), x1 = Math.min(width, x(l.end_ns[i]));
      var shade = colour(o, l.kind[i]), part = l.busy_ns[i] / Math.max(1, l.end_ns[i] - l.start_ns[i]);
      if (any && !o.lit) { shade = dim; }
      if (x1 - x0 >= 1.5) {
        var high = Math.max(3, LANE * part), base = 0; // joined launches of others may lie below
        active = active.filter(function (a) { return a.end > l.start_ns[i]; });
        active.forEach(function (a) { base = Math.max(base, a.top); });
        base = run.schedule.joined ? Math.min(base, LANE - high) : 0;
        active.push({ end: l.end_ns[i], top: base + high });
        c.fillStyle = shade;
        c.fillRect(x0, y + LANE - base - high, x1 - x0 - (x1 - x0 > 4 ? 0.7 : 0), high);
        if (l.outside_thousandths[i] > 500) { uncertain.rect(x0, y + LANE - base - high, x1 - x0, high); }
      } else { // narrower than a pixel: how much of the pixel is busy, by colour
        for (var px = Math.floor(x0); px < x1; px++) {
          var bin = bins.get(px) || bins.set(px, { heights: {}, busy: 0, outside: 0 }).get(px), more = (Math.min(x1, px + 1) - Math.max(x0, px)) * part;
          bin.heights[shade] = (bin.heights[shade] || 0) + more;
          bin.busy += more;
          bin.outside += more * l.outside_thousandths[i] / 1000;
        }
      }
    }
    bins.forEach(function (bin, px) {
      var base = y + LANE, heights = bin.heights;
      if (bin.outside > 0.5 * bin.busy) { uncertain.rect(px, y + LANE - Math.min(1, bin.busy) * LANE, 1, Math.min(1, bin.busy) * LANE); }
      Object.keys(heights).sort().forEach(function (shade) {
        var high = Math.min(heights[shade] * LANE, base - y);
        c.fillStyle = shade;
        c.fillRect(px, base - high, 1, high);
        base -= high;
      });
    });
    hatch(c, uncertain, y, width);
    drawKernels(c, run, lane, y, x, width);
    v.hits.push({ kind: 'lane', lane: lane, y: y, high: LANE });
  }
  var dim = '#888';

  // What is mostly outside the calibrated range is hatched: its times are extrapolated.
  function hatch(c, area, y, width) {
    c.save();
    c.clip(area);
    c.strokeStyle = live.css('--ground');
    c.lineWidth = 1.4;
    c.beginPath();
    for (var at = GUTTER - LANE; at < width; at += 6) { c.moveTo(at, y + LANE); c.lineTo(at + LANE, y); }
    c.stroke();
    c.restore();
  }
  // "igpu 73.5 %": devices and the part of their kernel time that is outside.
  function outside(run) {
    var m = run.result.metrics;
    return run.schedule.devices.map(function (d) { return [d, m[d + '.extrapolated_frac']]; }).filter(function (x) { return x[1] > 0; })
      .map(function (x) { return x[0] + ' ' + (100 * x[1]).toPrecision(3) + ' %'; }).join(', ');
  }

  // Where kernels were recorded and are wide enough, a strip at the foot of the lane: light and dark in turn.
  function drawKernels(c, run, lane, y, x, width) {
    var k = run.kernels;
    if (k.n === 0 || (state.to - state.from) * 1e9 / (width - GUTTER) * 2 > (k.end_ns[0] - k.begin_ns[0]) * 4) { return; }
    for (var i = 0; i < k.n; i++) {
      var x0 = x(k.begin_ns[i]), x1 = x(k.end_ns[i]);
      if (k.device[i] === lane.device && x1 > GUTTER && x0 < width) {
        c.fillStyle = ['#222', '#777', '#444', '#999', '#555'][k.op[i] % 5];
        c.fillRect(Math.max(GUTTER, x0), y + LANE - 5, Math.max(0.5, x1 - Math.max(GUTTER, x0) - 0.5), 5);
      }
    }
  }

  // A row for every request, so that none lies over another: the first that is free.
  function pack(q) {
    var ends = [], order = Array.from(q.arrival_ns.keys()).sort(function (a, b) { return q.arrival_ns[a] - q.arrival_ns[b]; });
    var place = order.map(function (row) {
      var free = ends.findIndex(function (end) { return end <= q.arrival_ns[row]; });
      free = free < 0 ? ends.length : free;
      ends[free] = q.end_ns[row];
      return free;
    });
    return { order: order, place: place, rows: ends.length };
  }

  // Requests as thin bars from arrival to end, packed into rows; light while they wait for their first kernel.
  function drawRequests(c, v, run, y, x, width, colour) {
    var q = run.requests, packed = run.packed = run.packed || pack(q), place = packed.place;
    var high = Math.max(1, Math.min(9, BARS / Math.max(1, packed.rows)));
    packed.order.forEach(function (row, k) {
      var x0 = Math.max(GUTTER, x(q.arrival_ns[row])), x1 = Math.min(width, x(q.end_ns[row]));
      if (x1 < GUTTER || x0 > width) { return; }
      var o = { match: live.matches(run, row), reactive: q.class[row] === 0, proactive: q.class[row] !== 0, session: q.session_id[row], model: q.model[row] };
      var served = Math.min(x1, Math.max(x0, x(q.first_service_ns[row] < 0 ? q.end_ns[row] : q.first_service_ns[row])));
      var at = y + (place[k] * high) % BARS, chosen = q.request_id[row] === state.sel;
      c.fillStyle = chosen ? live.css('--ink') : state.sel >= 0 && !chosen ? dim : colour(o, 0);
      c.globalAlpha = 0.35;
      c.fillRect(x0, at, Math.max(1, served - x0), Math.max(1, high - 1));
      c.globalAlpha = 1;
      if (high >= 4) { c.fillRect(x0, at + high - 2, Math.max(1, served - x0), 1); } // pale alone is hard to see
      c.fillRect(served, at, Math.max(1, x1 - served), Math.max(1, high - 1));
      v.hits.push({ kind: 'request', id: q.request_id[row], x0: x0, x1: Math.max(x1, x0 + 3), y: at, high: high });
    });
  }

  function drawCurve(c, run, y, x, width, names, most, fill) {
    var cells = run.cells, wide = run.schedule.cell_ns;
    names.forEach(function (name, n) {
      var v = cells[name], i0 = Math.max(0, Math.floor(state.from * 1e9 / wide) - 1), i1 = Math.min(cells.n - 1, Math.ceil(state.to * 1e9 / wide));
      c.beginPath();
      if (i1 < i0) { return; }
      c.moveTo(Math.max(GUTTER, x(i0 * wide)), y + CURVE);
      for (var i = i0; i <= i1; i++) {
        var level = y + CURVE - Math.min(1, v[i] / most) * (CURVE - 4);
        c.lineTo(Math.max(GUTTER, x(i * wide)), level);
        c.lineTo(Math.max(GUTTER, Math.min(width, x((i + 1) * wide))), level);
      }
      c.lineTo(Math.min(width, x((i1 + 1) * wide)), y + CURVE);
      if (n === 0) { c.fillStyle = fill; c.globalAlpha = 0.55; c.fill(); c.globalAlpha = 1; } else { c.strokeStyle = live.css('--soft'); c.lineWidth = 0.8; c.stroke(); }
    });
  }

  function largest(v) { return v.reduce(function (a, b) { return Math.max(a, b); }, 0); }
  // Of the runs on screen, which have one scale.
  function most(of) { return Math.max.apply(null, live.shown().map(of).concat(1)); }
  function watts(run) { // of all domains, as one column, once
    if (!run.cells.watts) {
      var names = Object.keys(run.cells).filter(function (k) { return /_mw$/.test(k); });
      run.cells.watts = run.cells[names[0]].map(function (v, i) {
        return names.reduce(function (sum, k) { return sum + run.cells[k][i]; }, 0) / 1e3 + run.schedule.idle_watts;
      });
    }
    return run.cells.watts;
  }

  function label(c, text, y, note) {
    c.fillStyle = live.css('--ink');
    c.textAlign = 'left';
    c.fillText(text, 0, y);
    if (note) { c.fillStyle = live.css('--soft'); c.fillText(note, 0, y + 14); }
  }

  function drawAxis(c, y, x, width) {
    c.fillStyle = c.strokeStyle = live.css('--soft');
    c.textAlign = 'center';
    live.ticks(state.from, state.to, (width - GUTTER) / 90).forEach(function (t) {
      c.globalAlpha = 0.3;
      c.fillRect(x(t * 1e9), 0, 1, y);
      c.globalAlpha = 1;
      var half = c.measureText(t + ' s').width / 2;
      c.fillText(t + ' s', Math.min(width - half, Math.max(GUTTER + half, x(t * 1e9))), y + 9);
    });
  }

  function mark(c, at, high, text, colour, dash) {
    c.strokeStyle = c.fillStyle = colour;
    c.setLineDash(dash);
    c.beginPath(); c.moveTo(at, 0); c.lineTo(at, high); c.stroke();
    c.setLineDash([]);
    c.textAlign = at > 240 ? 'right' : 'left';
    c.fillText(text, at + (at > 240 ? -4 : 4), 8);
  }

  function drawView(v, run) {
    var looks = look(run), colour = colourTable();
    var high = 8 + BARS + 8 + run.lanes.length * (LANE + 6) + 3 * (CURVE + 6) + AXIS;
    dim = live.css('--grey');
    v.hits = [];
    live.paint(v.canvas, high, function (c, width) {
      var x = function (ns) { return GUTTER + (ns / 1e9 - state.from) / (state.to - state.from) * (width - GUTTER); }, y = 12;
      v.width = width;
      drawAxis(c, high - AXIS, x, width);
      label(c, 'requests', y + 8);
      drawRequests(c, v, run, y, x, width, colour);
      y += BARS + 4;
      run.lanes.forEach(function (lane) {
        label(c, lane.name, y + LANE / 2);
        drawLane(c, v, run, lane, y, x, width, looks, colour);
        y += LANE + 6;
      });
      var fill = live.css('--proactive'), peak = run.schedule.ddr_peak_bytes_per_s / 1e6, kv = most(function (r) { return largest(r.cells.kv_tokens); });
      label(c, 'DDR', y + 12, (peak / 1e3).toPrecision(3) + ' GB/s');
      drawCurve(c, run, y, x, width, ['ddr_carried_mb_per_s', 'ddr_demand_mb_per_s'], peak, fill);
      y += CURVE + 6;
      label(c, 'KV', y + 12, kv >= 1e4 ? Math.round(kv / 1e3) + 'k tok' : kv + ' tok');
      drawCurve(c, run, y, x, width, ['kv_tokens'], kv, fill);
      y += CURVE + 6;
      var full = most(function (r) { return largest(watts(r)); });
      label(c, 'power', y + 12, full.toPrecision(3) + ' W');
      drawCurve(c, run, y, x, width, ['watts'], full, fill);
      var d = difference();
      if (d && d.ns / 1e9 >= state.from && d.ns / 1e9 <= state.to) { mark(c, x(d.ns), high - AXIS, 'first different decision', live.css('--warn'), [4, 3]); }
      if (cursor !== null && cursor >= state.from && cursor <= state.to) { mark(c, x(cursor * 1e9), high - AXIS, cursor.toFixed(3) + ' s', live.css('--soft'), [1, 2]); }
    });
    v.canvas.setAttribute('aria-label', 'Schedule of ' + run.name + ' from ' + live.short(state.from) + ' to ' + live.short(state.to) + ' s. Lanes: requests, ' +
      run.lanes.map(function (l) { return l.name; }).join(', ') + ', DDR, KV memory, power. Arrow keys move, plus and minus zoom, n and p choose requests.');
  }

  // ---- the first difference ----

  function difference() {
    var pair = live.shown(), found = null;
    if (pair.length < 2 || pair[0].source !== pair[1].source) { return null; }
    var first = pair[0].source.first, a = live.runs().indexOf(pair[0]) - first, b = live.runs().indexOf(pair[1]) - first;
    pair[0].source.tree.differences.forEach(function (d) {
      if (Math.min(a, b) === d.run_a && Math.max(a, b) === d.run_b) {
        found = { d: d, swapped: a > b, ns: Number((d.a || d.b).split(' ')[1]) };
      }
    });
    return found && found.d.differs ? found : found ? { same: true } : null;
  }
  function sayDifference() {
    var f = difference(), pair = live.shown();
    differ.textContent = '';
    if (!f) { return; }
    if (f.same) { differ.append('Both policies took the same decisions throughout.'); return; }
    var at = f.ns / 1e9, told = function (t) { return t ? t.split(' ').slice(2).join(' ') : 'nothing more'; };
    differ.append('Decision ' + f.d.decision + ', at ' + at.toFixed(6) + ' s, is the first in which they differ. ' + pair[0].name + ': ',
      h('code', {}, told(f.swapped ? f.d.b : f.d.a)), '; ' + pair[1].name + ': ', h('code', {}, told(f.swapped ? f.d.a : f.d.b)), '. ',
      h('button', { onclick: function () { live.set({ from: Math.max(0, at - 1), to: at + 4 }); } }, 'Go there'));
  }

  // ---- moving ----

  function move(from, to) {
    var end = live.endS(), wide = Math.min(end, Math.max(1e-5, to - from));
    from = Math.min(end - wide, Math.max(0, from));
    live.set({ from: from, to: from + wide });
  }
  function zoom(factor, about) {
    var at = about === undefined ? (state.from + state.to) / 2 : about;
    move(at - (at - state.from) * factor, at + (state.to - at) * factor);
  }
  function pan(share) { var by = (state.to - state.from) * share; move(state.from + by, state.to + by); }
  function step(by) { // the next request, by arrival
    var q = live.shown()[0].requests, rows = [];
    for (var i = 0; i < q.n; i++) { if (live.matches(live.shown()[0], i)) { rows.push(i); } }
    rows.sort(function (a, b) { return q.arrival_ns[a] - q.arrival_ns[b]; });
    var at = rows.findIndex(function (r) { return q.request_id[r] === state.sel; });
    var next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    if (next !== undefined) { live.set({ sel: q.request_id[next] }); }
  }

  function listen(v) {
    var held = null, canvas = v.canvas;
    var timeAt = function (e) { return state.from + (e.offsetX - GUTTER) / (v.width - GUTTER) * (state.to - state.from); };
    canvas.addEventListener('wheel', function (e) {
      e.preventDefault();
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { pan((e.deltaX || e.deltaY) / 1000); } else { zoom(Math.exp(e.deltaY / 400), timeAt(e)); }
    }, { passive: false });
    canvas.addEventListener('pointerdown', function (e) { held = { x: e.offsetX, from: state.from, to: state.to, moved: false }; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener('pointermove', function (e) {
      cursor = timeAt(e);
      if (held) {
        var by = (held.x - e.offsetX) / (v.width - GUTTER) * (held.to - held.from);
        held.moved = held.moved || Math.abs(e.offsetX - held.x) > 4;
        if (held.moved) { move(held.from + by, held.to + by); }
      } else { tell(v, e); }
      live.set({});
    });
    canvas.addEventListener('pointerup', function (e) { if (held && !held.moved) { press(v, e); } held = null; });
    canvas.addEventListener('pointercancel', function () { held = null; });
    canvas.addEventListener('pointerleave', function () { cursor = null; live.set({}); });
    canvas.addEventListener('dblclick', function (e) { zoom(0.5, timeAt(e)); });
    canvas.addEventListener('keydown', function (e) {
      var act = { ArrowLeft: [pan, -0.2], ArrowRight: [pan, 0.2], '+': [zoom, 0.5], '=': [zoom, 0.5], '-': [zoom, 2], n: [step, 1], p: [step, -1] }[e.key];
      if (act) { act[0](act[1]); } else if (e.key === 'Home' || e.key === '0') { move(0, live.endS()); } else if (e.key === 'Escape') { live.set({ sel: -1 }); } else { return; }
      e.preventDefault();
    });
  }

  // The launch or request under the pointer.
  function under(v, e) {
    var run = live.shown()[v.i], hit = null, at = (state.from + (e.offsetX - GUTTER) / (v.width - GUTTER) * (state.to - state.from)) * 1e9;
    v.hits.forEach(function (t) {
      if (e.offsetY < t.y || e.offsetY > t.y + t.high || e.offsetX < GUTTER) { return; }
      if (t.kind === 'request' && e.offsetX >= t.x0 - 1 && e.offsetX <= t.x1 + 1) { hit = t; }
      if (t.kind === 'lane') {
        var l = run.launches, slack = (state.to - state.from) * 1e9 / v.width * 2;
        var k = t.lane.order[firstAfter(t.lane.order, l.end_ns, at - slack)];
        if (k !== undefined && l.start_ns[k] <= at + slack) { hit = { kind: 'launch', k: k, ids: run.sets[l.set[k]] || [], lane: t.lane, at: at }; }
      }
    });
    return hit;
  }
  function describeLaunch(run, hit) {
    var l = run.launches, k = hit.k, n = l.launches[k];
    return hit.lane.name + ', ' + seconds6(l.start_ns[k]) + ' to ' + seconds6(l.end_ns[k]) + ': ' + (n > 1 ? n + ' launches, busy ' + live.seconds(l.busy_ns[k]) + ', ' : '') +
      ['prefill', 'decode', 'prefill and decode'][l.kind[k]] + (l.kind[k] === 1 ? ' of ' : ', ' + l.rows[k] + ' rows, of ') + hit.ids.length + (hit.ids.length === 1 ? ' request' : ' requests') +
      (l.outcome[k] === 1 ? ', then stopped for other work' : l.outcome[k] === 3 ? ', killed' : '') +
      (l.outside_thousandths[k] === 1000 ? '. It is outside the calibrated range' : l.outside_thousandths[k] > 0 ? '. ' + l.outside_thousandths[k] / 10 + ' % of it is outside the calibrated range' : '');
  }
  // The recorded kernel at an instant, in words.
  function kernelAt(run, hit) {
    var k = run.kernels;
    for (var i = 0; i < k.n; i++) {
      if (k.device[i] === hit.lane.device && k.begin_ns[i] <= hit.at && hit.at < k.end_ns[i]) {
        return '. Kernel: ' + ['QKV', 'MHA', 'FFN', 'HEAD', 'LAYER'][k.op[i]] + ' of layer ' + k.layer[i] + ', ' + ((k.end_ns[i] - k.begin_ns[i]) / 1e6).toFixed(3) + ' ms, isolated ' + (k.isolated_ns[i] / 1e6).toFixed(3) + ' ms';
      }
    }
    return '';
  }
  function seconds6(ns) { return (ns / 1e9).toFixed(6); }
  function tell(v, e) {
    var run = live.shown()[v.i], hit = run && under(v, e);
    if (!hit) { return; }
    say.textContent = run.name + ': ' + (hit.kind === 'request' ? 'request ' + hit.id : describeLaunch(run, hit) + kernelAt(run, hit));
  }
  function press(v, e) {
    var run = live.shown()[v.i], hit = under(v, e);
    if (!hit) { live.set({ sel: -1 }); say.textContent = ''; return; }
    if (hit.kind === 'request') { live.set({ sel: hit.id }); return; }
    var choice = hit.ids.find(function (id) { return id === state.sel; });
    live.set({ sel: choice === undefined ? hit.ids[0] : choice });
    say.textContent = run.name + ': ' + describeLaunch(run, hit) + '. Choose: ';
    hit.ids.slice(0, 40).forEach(function (id) { say.append(h('button', { onclick: function () { live.set({ sel: id }); } }, 'request ' + id), ' '); });
  }

  // ---- controls ----

  function choice(name, key, options, number) {
    var s = h('select', { onchange: function () { var c = {}; c[key] = number ? Number(s.value) : s.value; live.set(c); } },
      options.map(function (o) { return h('option', { value: o[0] }, o[1]); }));
    controls.push(function () { s.value = state[key]; });
    return h('label', {}, name, s);
  }
  function distinct(column) {
    var found = new Set();
    live.runs().forEach(function (r) { r.requests[column].forEach(function (v) { if (v >= 0) { found.add(v); } }); });
    return Array.from(found).sort(function (a, b) { return a - b; });
  }
  function entry(name, key, values) {
    var list = key + '-values', i = h('input', { list: list, size: 6, inputmode: 'numeric', placeholder: 'all', oninput: function () { var c = {}; c[key] = /^\d+$/.test(i.value) ? i.value : ''; live.set(c); } });
    controls.push(function () { if (document.activeElement !== i) { i.value = state[key]; } });
    return h('label', {}, name, i, h('datalist', { id: list }, values.slice(0, 500).map(function (v) { return h('option', { value: v }); })));
  }
  var controls = [], names = live.runs().map(function (r, i) { return [i, r.name + (r.about.llm && new Set(live.runs().map(function (x) { return x.about.llm; })).size > 1 ? ' (' + r.about.llm + ')' : '')]; });
  var jobs = distinct('job'), models = distinct('model');
  var bar = h('div', { class: 'bar' }, choice('policy above', 'a', names, true),
    names.length > 1 ? choice('policy below', 'b', [[-1, 'none']].concat(names), true) : null,
    choice('colour by', 'by', [['class', 'class'], ['session', 'session'], ['phase', 'prefill or decode']].concat(models.length > 1 ? [['model', 'model']] : [])),
    choice('class', 'cls', [['', 'both'], ['reactive', 'reactive'], ['proactive', 'proactive']]),
    entry('session', 'session', distinct('session_id')), jobs.length > 0 ? entry('job', 'job', jobs) : null,
    models.length > 1 ? choice('model', 'model', [['', 'all']].concat(models.map(function (m) { return [String(m), 'model ' + m]; }))) : null);
  var tools = h('div', { class: 'bar tools' }, [['◀', 'earlier', function () { pan(-0.5); }], ['▶', 'later', function () { pan(0.5); }], ['+', 'zoom in', function () { zoom(0.5); }],
    ['−', 'zoom out', function () { zoom(2); }], ['all', 'the whole run', function () { move(0, live.endS()); }],
    ['next request', 'next request', function () { step(1); }], ['clear', 'no request', function () { live.set({ sel: -1 }); }]].map(function (b) {
    return h('button', { onclick: b[2], 'aria-label': b[1], title: b[1] }, b[0]);
  }));

  function legend() {
    var box = function (colour, text) { return h('span', {}, h('i', { style: 'background:' + colour }), text); };
    var words = state.by === 'session' || state.by === 'model' ? [] : state.by === 'phase' ? [['--proactive', 'prefill'], ['--reactive', 'decode'], ['--both', 'both in one pass']]
      : [['--reactive', 'reactive: a user waits'], ['--proactive', 'proactive: background'], ['--both', 'both in one pass']];
    key.replaceChildren.apply(key, words.map(function (w) { return box(live.css(w[0]), w[1]); }).concat(state.by === 'session' ? ['Sessions have eight colours in turn.'] : state.by === 'model' ? models.map(function (m) { return box(live.slotColour(m % 8), 'model ' + m); }) : [],
      live.filtered() || state.sel >= 0 ? [box(live.css('--grey'), 'others')] : [],
      live.shown().some(outside) ? [h('span', {}, h('i', { class: 'hatched' }), 'hatched: mostly outside the calibrated range, so its times are extrapolated')] : []));
  }

  var joined = live.runs().some(function (r) { return r.schedule.joined; }), lost = live.runs().reduce(function (n, r) { return n + r.schedule.unfinished; }, 0);
  var node = h('div', {}, h('h3', {}, 'The schedule'),
    h('p', {}, 'Each row is a part of the machine, and time goes to the right. A box is work on that device; its height is the part of the time that the device is busy. The bars on top are requests, pale until their first kernel. ' +
      'Drag to move, turn the wheel to zoom, press a box or a bar to choose its request. The address of this page keeps what you see.',
    joined ? ' The run is long: a box joins launches of the same requests.' : '', lost > 0 ? ' ' + lost + ' requests had not left at the end and have no bar.' : ''),
    bar, tools, key, views[0].box, views[1].box, say, differ);
  return { node: node, draw: function () {
    controls.forEach(function (f) { f(); });
    legend();
    views.forEach(function (v, i) {
      var run = live.shown()[i];
      v.box.hidden = !run;
      if (!run) { return; }
      var verdict = run.result.verdict;
      v.name.replaceChildren(run.name + ' ', h('span', { class: 'badge ' + verdict }, verdict),
        verdict === 'OVERLOADED' ? h('small', {}, ' Its queue grew to the end, so its means grow with the length of the run.') :
        verdict === 'BATTERY_EMPTY' ? h('small', {}, ' The battery was empty before the work was done.') : '',
        outside(run) ? h('small', { class: 'outside' }, ' Outside the calibrated range: ' + outside(run) + ' of kernel time.') : '');
      drawView(v, run);
    });
    sayDifference();
  } };
});
