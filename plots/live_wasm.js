// Runs the simulator, compiled to WebAssembly, on arguments and files in memory: what a program expects of a system (WASI).
// One call is one process: fresh memory, nothing kept. Functions that a page cannot have (a database, a child process) throw
// when they are called.
function xpusimRun(module, argv, open) {
  'use strict';
  var memory, view = function () { return new DataView(memory.buffer); }, bytes = function () { return new Uint8Array(memory.buffer); };
  var encode = function (s) { return new TextEncoder().encode(s); }, out = { 1: [], 2: [] }, fds = {}, next = 4;
  var args = argv.map(function (a) { return encode(a + '\0'); }), env = [encode('XPUSIM_DATA_DIR=/\0')];
  var ENOENT = 44, EBADF = 8;
  function Exit(code) { this.code = code; }
  function lists(items, pointers, text) {
    items.forEach(function (b, i) { view().setUint32(pointers + 4 * i, text, true); bytes().set(b, text); text += b.length; });
    return 0;
  }
  function sizes(items, n, size) {
    view().setUint32(n, items.length, true);
    view().setUint32(size, items.reduce(function (sum, b) { return sum + b.length; }, 0), true);
    return 0;
  }
  function stat(at, type, size) {
    bytes().fill(0, at, at + 64);
    view().setUint8(at + 16, type);
    view().setBigUint64(at + 32, BigInt(size), true);
    return 0;
  }
  function pathOf(at, n) { return new TextDecoder().decode(bytes().slice(at, at + n)).replace(/^\/+/, ''); }
  function vectors(at, n, each) {
    var sum = 0;
    for (var i = 0; i < n; i++) { sum += each(view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true)); }
    return sum;
  }
  var wasi = {
    args_get: function (p, t) { return lists(args, p, t); }, args_sizes_get: function (n, s) { return sizes(args, n, s); },
    environ_get: function (p, t) { return lists(env, p, t); }, environ_sizes_get: function (n, s) { return sizes(env, n, s); },
    clock_time_get: function (id, precision, at) { view().setBigUint64(at, BigInt(0), true); return 0; },
    proc_exit: function (code) { throw new Exit(code); },
    fd_prestat_get: function (fd, at) { if (fd !== 3) { return EBADF; } view().setUint32(at, 0, true); view().setUint32(at + 4, 1, true); return 0; },
    fd_prestat_dir_name: function (fd, at) { bytes()[at] = 47; return 0; },
    fd_fdstat_get: function (fd, at) {
      bytes().fill(0, at, at + 24);
      view().setUint8(at, fd === 3 ? 3 : fd < 3 ? 2 : 4);
      view().setBigUint64(at + 8, ~BigInt(0) & ((BigInt(1) << BigInt(63)) - BigInt(1)), true);
      view().setBigUint64(at + 16, ~BigInt(0) & ((BigInt(1) << BigInt(63)) - BigInt(1)), true);
      return 0;
    },
    fd_fdstat_set_flags: function () { return 0; },
    fd_filestat_get: function (fd, at) { return fds[fd] ? stat(at, 4, fds[fd].data.length) : stat(at, 2, 0); },
    path_filestat_get: function (fd, flags, at, n, to) {
      var name = pathOf(at, n), data = open(name);
      return data === null ? ENOENT : data === 'folder' ? stat(to, 3, 0) : stat(to, 4, data.length);
    },
    path_open: function (fd, dirflags, at, n, oflags, rights, inheriting, flags, to) {
      var data = open(pathOf(at, n));
      if (data === null) { return ENOENT; }
      fds[next] = { data: data === 'folder' ? new Uint8Array(0) : data, at: 0 };
      view().setUint32(to, next++, true);
      return 0;
    },
    fd_read: function (fd, at, n, to) {
      var f = fds[fd];
      if (!f) { return EBADF; }
      view().setUint32(to, vectors(at, n, function (p, size) {
        var part = f.data.subarray(f.at, f.at + size);
        bytes().set(part, p);
        f.at += part.length;
        return part.length;
      }), true);
      return 0;
    },
    fd_seek: function (fd, offset, whence, to) {
      var f = fds[fd];
      if (!f) { return 70; }
      f.at = Number(offset) + (whence === 1 ? f.at : whence === 2 ? f.data.length : 0);
      view().setBigUint64(to, BigInt(f.at), true);
      return 0;
    },
    fd_write: function (fd, at, n, to) {
      if (!out[fd]) { return EBADF; }
      view().setUint32(to, vectors(at, n, function (p, size) { out[fd].push(bytes().slice(p, p + size)); return size; }), true);
      return 0;
    },
    fd_close: function (fd) { delete fds[fd]; return 0; }
  };
  var imports = {};
  WebAssembly.Module.imports(module).forEach(function (i) {
    imports[i.module] = imports[i.module] || {};
    imports[i.module][i.name] = i.module !== 'env' && wasi[i.name] || function () { throw new Error(i.name + ' is not in a page'); };
  });
  var instance = new WebAssembly.Instance(module, imports), status = 0;
  memory = instance.exports.memory;
  try { instance.exports._start(); } catch (e) { if (!(e instanceof Exit)) { throw e; } status = e.code; }
  var text = function (parts) { var d = new TextDecoder(); return parts.map(function (p) { return d.decode(p, { stream: true }); }).join('') + d.decode(); };
  return { status: status, out: text(out[1]), err: text(out[2]) };
}
