// Where functions come from, as the server says it: by name here, since made-up functions have no libraries.

const LIBRARY = {
  _start: 'python3.11', __libc_start_main: 'libc.so.6', __libc_start_call_main: 'libc.so.6', clone3: 'libc.so.6', start_thread: 'libc.so.6',
  memmove: 'libc.so.6', malloc: 'libc.so.6', dgemm_kernel: 'libopenblas.so.0', DOUBLE_add: '_multiarray_umath.so', sqlite3_step: 'libsqlite3.so.0',
};
const KERNEL = ['entry_SYSCALL_64', 'do_syscall_64', 'vfs_read', 'copy_to_user'];
const PYTHON = { '<module>': 'rank', main: 'rank', 'Ranker.score': 'rank', 'Ranker.load': 'rank', loads: 'json', 'JSONDecoder.decode': 'json', dot: 'numpy', sorted_key: 'rank' };

/* What compilers appended to a few of them. */
const VARIANTS = { _PyEval_EvalFrameDefault: ['.cold'], PyObject_Vectorcall: ['.part.0', '.cold'], vfs_read: ['.part.0'] };

/** The suffixes of names that have any. */
export function variantColumn(names) {
  const variants = names.flatMap((n, name) => (VARIANTS[n] ? [{ name, suffixes: VARIANTS[n] }] : []));
  return variants.length ? { variants } : {};
}
export const variantsOf = (name) => (VARIANTS[name] ? { variants: VARIANTS[name] } : {});

/** Kind and module of a name. */
export function originOf(name, group) {
  if (!name || name === '(other)' || name === 'all') return { kind: 'other', module: '' };
  if (group && name.startsWith(`${group}=`)) return { kind: 'group', module: '' };
  if (KERNEL.includes(name)) return { kind: 'kernel', module: 'kernel' };
  if (LIBRARY[name]) return { kind: LIBRARY[name].startsWith('python') ? 'runtime' : 'native', module: LIBRARY[name] };
  if (/^_?Py|^pymain/.test(name)) return { kind: 'runtime', module: 'python3.11' };
  if (PYTHON[name]) return { kind: 'python', module: PYTHON[name] };
  const slash = name.split('[')[0].lastIndexOf('/');
  const dot = name.indexOf('.', slash + 1);
  return { kind: 'go', module: dot < 0 ? name : name.slice(0, dot) };
}

/** The columns that say so: distinct origins, and one of them by name. */
export function originColumns(names, group) {
  const origins = [];
  const ids = new Map();
  const origin = names.map((n) => {
    const o = originOf(n, group);
    const key = `${o.kind} ${o.module}`;
    if (!ids.has(key)) ids.set(key, origins.push(o) - 1);
    return ids.get(key);
  });
  return { origins, origin };
}
