// The parameters of a request, by docs/openapi.json: the mock refuses what the server refuses.
import { readFileSync } from 'node:fs';

const doc = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'));
export const paths = Object.keys(doc.paths);

export class Wrong extends Error {
  constructor(message, status = 400) {
    super(message);
    this.status = status;
  }
}

const parametersOf = (path) => (doc.paths[path].get.parameters ?? []).map((p) => doc.components.parameters[p.$ref.split('/').pop()]);

function checkText(name, text, schema) {
  const bytes = Buffer.byteLength(text);
  if (bytes < (schema.minLength ?? 0) || bytes > (schema.maxLength ?? Infinity))
    throw new Wrong(`${name} must have ${schema.minLength} to ${schema.maxLength} bytes`);
  if (schema.pattern && !new RegExp(schema.pattern, 'u').test(text)) throw new Wrong(`'${text}' is not a valid ${name}`);
}

function checkNumber(name, text, { minimum, maximum }) {
  if (!/^\d+$/.test(text) || Number(text) < minimum || Number(text) > maximum)
    throw new Wrong(`${name} must be a whole number from ${minimum} to ${maximum}`);
}

function checkOne({ name, required, schema }, values) {
  if (required && !values.length) throw new Wrong(`missing parameter ${name}`);
  const several = schema.type === 'array';
  if (!several && values.length > 1) throw new Wrong(`${name} is given twice`);
  if (several && values.length > schema.maxItems) throw new Wrong(`at most ${schema.maxItems} of ${name} are allowed`);
  const item = several ? schema.items : schema;
  for (const v of values) (item.type === 'integer' ? checkNumber : checkText)(name, v, item);
}

/** Throws what the answer to a wrong question is. */
export function check(path, query) {
  if (!doc.paths[path]) throw new Wrong(`unknown path '${path}' (expected: ${paths.join(', ')})`, 404);
  const known = parametersOf(path);
  const names = known.map((p) => p.name);
  for (const name of query.keys())
    if (!names.includes(name))
      throw new Wrong(`unknown parameter '${name}' (${names.length ? `expected: ${names.join(', ')}` : 'this path has none'})`);
  for (const p of known) checkOne(p, query.getAll(p.name));
  if (query.has('before_from') !== query.has('before_to')) throw new Wrong('before_from and before_to must be given together');
}

/** A number, or its default. */
export function numberOf(path, query, name) {
  return Number(query.get(name) ?? parametersOf(path).find((p) => p.name === name).schema.default);
}
