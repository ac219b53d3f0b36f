import type { ServerEvent } from '@svc/contract/rest';
import { E2bRefusal } from '../wire/e2b-failure.ts';

type Run = (code: string) => Promise<AsyncIterable<ServerEvent>>;

interface Place {
  readonly run: Run;
  /** Null: that of a Jupyter kernel. */
  readonly language: string | null;
  readonly variables: Readonly<Record<string, string>>;
}

/** Code that sets variables of the environment, or takes back what it changed; both show nothing. */
interface Words {
  readonly set: (variables: string) => string;
  readonly restore: string;
}

const PYTHON: Words = {
  set: (variables) =>
    `import json as _svc_json, os as _svc_os\n_svc_given = _svc_json.loads(${variables})\n_svc_before = {k: _svc_os.environ.get(k) for k in _svc_given}\n_svc_os.environ.update(_svc_given)`,
  restore:
    'for _svc_key, _svc_value in _svc_before.items():\n    _svc_os.environ.pop(_svc_key, None) if _svc_value is None else _svc_os.environ.__setitem__(_svc_key, _svc_value)',
};
const JAVASCRIPT: Words = {
  set: (variables) =>
    `void ((env) => { globalThis._svcBefore = Object.entries(JSON.parse(${variables})).map(([k, v]) => { const b = env[k]; env[k] = v; return [k, b]; }); })(process['env'])`,
  restore:
    "void ((env) => globalThis._svcBefore.forEach(([k, b]) => { if (b === undefined) delete env[k]; else env[k] = b; }))(process['env'])",
};
const WORDS: Readonly<Record<string, Words>> = { python: PYTHON, javascript: JAVASCRIPT };

/** Runs code with variables that hold for this run alone. */
export async function withVariables(place: Place, code: string): Promise<AsyncIterable<ServerEvent>> {
  if (Object.keys(place.variables).length === 0) return await place.run(code);
  const words = WORDS[place.language ?? ''];
  if (words === undefined)
    throw new E2bRefusal(
      400,
      'env_vars of one execution are taken for Python and JavaScript; use envVars of the sandbox',
    );
  return runBetween(place, words, code);
}

async function* runBetween(
  { run, variables }: Place,
  words: Words,
  code: string,
): AsyncGenerator<ServerEvent> {
  // A text in JSON is one in both languages, with its own escapes once more.
  await drain(await run(words.set(JSON.stringify(JSON.stringify(variables)))));
  try {
    yield* await run(code);
  } finally {
    await drain(await run(words.restore)).catch(() => undefined);
  }
}

async function drain(events: AsyncIterable<ServerEvent>): Promise<void> {
  for await (const event of events) void event;
}
