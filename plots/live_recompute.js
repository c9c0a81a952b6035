// The page computes: the simulator itself (live_wasm.js) compares the page's policies again, at the load that the reader drags.
// Before the table of all metrics, which is the last part.
live.makers.splice(live.makers.length - 1, 0, function () {
  'use strict';
  var h = live.h, state = live.state, element = document.getElementById('xpusim-simulator');
  var source = live.documents().find(function (d) { return d.kind === 'view' && d.tree.recompute; });
  if (!element || !source) { return null; }
  var plan = source.tree.recompute, names = plan.arguments.filter(function (a, i) { return i > 0 && plan.arguments[i - 1] === '--policy'; });
  var usual = Math.max(2, Math.floor(20 / names.length)), kept = new Map(), worker = null, busy = null, wanted = null;
  var load = h('input', { type: 'range', min: 0.1, max: 1.5, step: 0.05, oninput: function () { live.set({ rl: Number(load.value) }); } }), said = h('span', {});
  var runs = h('input', { type: 'number', min: 2, max: 100, value: usual, onchange: function () { live.set({ rn: Math.min(100, Math.max(2, Math.round(Number(runs.value)) || usual)) }); } });
  var metric = h('select', { onchange: function () { live.set({ lm: metric.value }); } }, live.loadMetrics.map(function (n) { return h('option', { value: n }, n); }));
  var canvas = h('canvas', { role: 'img' }), numbers = h('div', {}), told = h('p', { class: 'say', 'aria-live': 'polite' }), changed = live.watcher(canvas, ['lm', 'rl', 'rn']), made = 0;

  function words(at) { return ['compare'].concat(plan.arguments, ['--load', String(at.load), '--replications', String(at.runs), '--json', '--quiet']); }
  function key(at) { return at.load + ' ' + at.runs; }
  // A word as a shell reads it.
  function shell(w) { return /^[\w.,:=\/+-]+$/.test(w) ? w : "'" + w.replace(/'/g, "'\\''") + "'"; }

  // Compiled once, in a worker, so that the page stays awake; the latest wish is what it does next.
  function work() {
    if (busy || !wanted) { return; }
    busy = wanted;
    wanted = null;
    if (!worker) {
      var code = xpusimRun.toString() + ';(' + xpusimWorker.toString() + ')();';
      worker = new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })));
      worker.onmessage = function (m) { take(m.data); };
      worker.onerror = function (e) { busy = null; told.textContent = 'The simulator stopped: ' + e.message; };
      worker.postMessage({ simulator: element.textContent, files: plan.files });
    }
    worker.postMessage({ argv: ['xpusim'].concat(words(busy)) });
  }
  function take(answer) {
    var of = busy;
    busy = null;
    if (answer.status === 0) {
      kept.set(key(of), { at: of, text: answer.out, tree: JSON.parse(answer.out).loads[0], ms: answer.ms });
      made++;
    } else { kept.set(key(of), { at: of, error: 'The simulator ended with status ' + answer.status + ': ' + answer.err }); }
    canvas.dataset.made = made;
    draw(true);
    work();
  }

  // Only the metrics that compare prints are corrected for their number.
  function against(m) { return (m.verdict || '').replace('(significant)', m.p_holm === null ? '(not corrected for the number of metrics)' : '(significant)'); }
  function sayResult(found) {
    var at = found.at, n = names.length * at.runs;
    told.replaceChildren(n + ' runs of this machine, in this browser, in ' + (found.ms / 1000).toFixed(2) + ' s (and three runs of ' + names[0] + ' for its capacity). The same, byte for byte: ', h('code', {}, 'xpusim ' + words(at).map(shell).join(' ')));
    numbers.replaceChildren(h('div', { class: 'wide' }, h('table', { class: 'recomputed' }, h('thead', {}, h('tr', {}, ['policy at load ' + at.load, 'mean', '95 % interval', 'against ' + names[0], 'replications overloaded'].map(function (t, k) { return h('th', { class: k ? 'n' : '' }, t); }))),
      h('tbody', {}, names.map(function (p) {
        var m = found.tree.policies[p][state.lm] || {}, o = found.tree.verdicts[p];
        return h('tr', {}, h('td', {}, live.swatch(p), p), h('td', { class: 'n', title: String(m.mean), 'data-value': m.mean }, live.short(m.mean)), h('td', { class: 'n' }, live.short(m.low) + ' to ' + live.short(m.high)),
          h('td', { class: 'n' }, against(m)), h('td', { class: 'n ' + (o.overloaded > 0 ? 'overloaded' : '') }, o.overloaded + ' of ' + (o.stable + o.undecided + o.overloaded)));
      })))));
  }

  // All loads that were computed with this number of replications.
  function draw(again) {
    if (!changed() && !again) { return; }
    var at = { load: state.rl, runs: state.rn || usual }, found = kept.get(key(at));
    load.value = at.load;
    runs.value = at.runs;
    metric.value = state.lm;
    said.textContent = 'load ' + at.load;
    var points = Array.from(kept.values()).filter(function (k) { return k.tree && k.at.runs === at.runs; }).sort(function (a, b) { return a.at.load - b.at.load; });
    live.paint(canvas, 260, function (c, width) {
      live.curves(c, width, names, points.map(function (k) { return k.tree; }), 0.1, 1.5, at.load);
    });
    canvas.setAttribute('aria-label', state.lm + ' over load, as computed in this page for ' + names.join(', ') + '; the numbers are in the table below.');
    if (found && found.tree) { sayResult(found); } else if (found) { told.textContent = found.error; numbers.replaceChildren(); } else if (touched) { wanted = at; told.textContent = 'Computing ...'; work(); }
  }
  var touched = state.rl !== live.usual.rl || state.rn !== live.usual.rn; // the address asks for it
  var go = h('button', { onclick: function () { touched = true; draw(true); } }, 'Compute');
  load.addEventListener('input', function () { touched = true; });
  runs.addEventListener('change', function () { touched = true; });
  return { node: h('div', { class: 'recompute' }, h('h3', {}, 'Compute it again'), h('p', {}, 'The simulator is in this page. Drag the load, and it runs all policies again on the same requests, in your browser and without a network. Load 1 is what ' + names[0] + ' can just keep up with. Every load that you try stays in the picture.'),
    h('div', { class: 'bar' }, h('label', {}, 'metric', metric), h('label', {}, said, load), h('label', {}, 'replications', runs), go), h('p', { class: 'key' }, names.map(function (p) { return h('span', {}, live.swatch(p), p); })), canvas, told, numbers), draw: draw };
});

// In the worker: unpacks and compiles the simulator, then answers each command line.
function xpusimWorker() {
  'use strict';
  var ready = null, files = {};
  async function compile(text) {
    var bytes = Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new WebAssembly.Module(await new Response(stream).arrayBuffer());
  }
  // A shipped file may also be asked for by its whole path.
  function open(name) {
    var shipped = name in files ? name : Object.keys(files).find(function (k) { return name.endsWith('/' + k); });
    if (shipped !== undefined) { return files[shipped]; }
    return Object.keys(files).some(function (k) { return k.indexOf(name + '/') === 0; }) ? 'folder' : null;
  }
  self.onmessage = async function (m) {
    if (m.data.simulator) {
      Object.keys(m.data.files).forEach(function (k) { files[k] = new TextEncoder().encode(m.data.files[k]); });
      ready = compile(m.data.simulator);
      return;
    }
    var module = await ready, began = performance.now(), answer;
    try { answer = xpusimRun(module, m.data.argv, open); } catch (e) { answer = { status: -1, out: '', err: String(e) }; }
    answer.ms = performance.now() - began;
    self.postMessage(answer);
  };
}
