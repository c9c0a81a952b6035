// Runs build/xpusim.wasm as a page does (plots/live_wasm.js), with the data of the tree: node wasm.js SIMULATOR ARGUMENTS...
const fs = require('fs'), path = require('path'), top = path.resolve(__dirname, '../..');
const run = eval(fs.readFileSync(path.join(top, 'plots/live_wasm.js'), 'utf8') + ';xpusimRun');
const simulator = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const answer = run(simulator, ['xpusim'].concat(process.argv.slice(3)), function (name) {
  const file = path.join(top, name);
  return !fs.existsSync(file) ? null : fs.statSync(file).isDirectory() ? 'folder' : fs.readFileSync(file);
});
process.stderr.write(answer.err);
process.stdout.write(answer.out, function () { process.exit(answer.status); });
