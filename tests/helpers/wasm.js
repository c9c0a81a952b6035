// Runs build/xpusim.wasm as a page does (plots/live_wasm.js), with the data of the tree: node wasm.js SIMULATOR COMMANDS.
// Each line of the file COMMANDS has the arguments of one run. What run N prints is in COMMANDS.N.out and COMMANDS.N.err,
// and its exit status in COMMANDS.N.status. The simulator is compiled once for all of them, as in a page.
const fs = require('fs'), path = require('path'), top = path.resolve(__dirname, '../..');
const run = eval(fs.readFileSync(path.join(top, 'plots/live_wasm.js'), 'utf8') + ';xpusimRun');
const simulator = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const list = process.argv[3];
fs.readFileSync(list, 'utf8').trimEnd().split('\n').forEach(function (line, i) {
  let answer;
  try {
    answer = run(simulator, ['xpusim'].concat(line.split(' ')), function (name) {
      const file = path.join(top, name);
      return !fs.existsSync(file) ? null : fs.statSync(file).isDirectory() ? 'folder' : fs.readFileSync(file);
    });
  } catch (e) {
    answer = { out: '', err: String(e.stack), status: 'an exception' };
  }
  fs.writeFileSync(list + '.' + (i + 1) + '.out', answer.out);
  fs.writeFileSync(list + '.' + (i + 1) + '.err', answer.err);
  fs.writeFileSync(list + '.' + (i + 1) + '.status', answer.status + '\n');
});
