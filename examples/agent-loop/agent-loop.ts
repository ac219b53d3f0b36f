import { Sandbox } from '@svc/sdk';

/**
 * What an agent does in a sandbox, without a model: it writes a program, runs it, sees it fail, mends it, reads back what it made,
 * serves it, and opens the page. Where a model would decide, `repair` does.
 */
const PROGRAM = '/app/report.py';
const DRAFT = `import json
rows = json.load(open('/app/rows.json'))
total = sum(row['price'] * row['count'] for row in row)
open('/app/index.html', 'w').write(f'<h1>Total: {total}</h1>')
print('total', total)
`;
const MAX_ATTEMPTS = 3;
const PORT = 8000;

await using sandbox = await Sandbox.create({ image: 'python' });
await sandbox.files.mkdir('/app');
await sandbox.files.write(
  '/app/rows.json',
  JSON.stringify([
    { price: 20, count: 2 },
    { price: 2, count: 1 },
  ]),
);

let source = DRAFT;
let isDone = false;
for (let attempt = 1; attempt <= MAX_ATTEMPTS && !isDone; attempt++) {
  await sandbox.files.write(PROGRAM, source);
  const run = await sandbox.exec('python3', [PROGRAM]);
  isDone = run.code === 0;
  const said = isDone ? run.text() : new TextDecoder().decode(run.stderr);
  console.log(`attempt ${attempt}: ${isDone ? 'works' : 'fails'}: ${said.trim().split('\n').at(-1)}`);
  if (!isDone) source = repair(source, said);
}
if (!isDone) throw new Error('the program could not be mended');

const page = await sandbox.files.readText('/app/index.html');
console.log(`made: ${page}`);

await sandbox.commands.startDetached('python3', ['-m', 'http.server', String(PORT), '-d', '/app'], {
  name: 'web',
});
await sandbox.waitForPort(PORT);
const url = await sandbox.url(PORT);
const served = await (await fetch(url)).text();
console.log(`served: ${served}`);
if (served !== page) throw new Error(`${url} shows something else`);

/** Here a model would read the error. */
function repair(code: string, error: string): string {
  const name = /name '(\w+)' is not defined|variable '(\w+)'/.exec(error);
  if (name === null) throw new Error(`no repair is known for: ${error}`);
  return code.replace('in row)', 'in rows)');
}
