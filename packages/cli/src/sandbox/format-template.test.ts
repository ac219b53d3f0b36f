import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatSandboxes } from './format-template.ts';

type Info = Parameters<typeof formatSandboxes>[1][number];

function info(name: string, labels: Readonly<Record<string, string>> = { a: '1', b: '2' }): Info {
  return {
    name,
    status: 'running',
    spec: {
      image: 'python',
      labels,
      network: { ports: [{ host_bind: '127.0.0.1', host_port: 8080, guest_port: 80, protocol: 'tcp' }] },
    },
  } as unknown as Info;
}

test('a template makes a line for each, or columns', () => {
  const both = [info('web'), info('long-name')];
  assert.equal(formatSandboxes('{{.Name}} is {{ .Status }}', both), 'web is running\nlong-name is running\n');
  assert.equal(formatSandboxes(String.raw`{{.Names}}\t{{.Labels}}`, [info('web')]), 'web\ta=1,b=2\n');
  assert.equal(formatSandboxes('{{.Ports}}', [info('web')]), '127.0.0.1:8080->80/tcp\n');
  assert.equal(
    formatSandboxes(String.raw`table {{.Name}}\t{{.Image}}`, both),
    'NAME       IMAGE\nweb        python\nlong-name  python\n',
  );
});

test('json is the object of the REST API, one on a line', () => {
  for (const template of ['json', '{{json .}}']) {
    const line = formatSandboxes(template, [info('web')]);
    assert.equal((JSON.parse(line) as Info).name, 'web');
    assert.equal(line.indexOf('\n'), line.length - 1);
  }
});

test('a field that there is not is refused with those that there are', () => {
  for (const template of ['{{.Colour}}', '{{Name}}', '{{range .}}', '{{.toString}}'])
    assert.throws(
      () => formatSandboxes(template, []),
      /its fields are \.ID .*try: svc ps --format/s,
      template,
    );
});

test('a label adds no line, no column and no terminal sequence', () => {
  const one = info('web', { a: 'x\nforged\t\u001B[2J\u202E' });
  const shown = 'a=x<U+000A>forged<U+0009><U+001B>[2J<U+202E>';
  assert.equal(formatSandboxes('{{.Name}} {{.Labels}}', [one]), `web ${shown}\n`);
  assert.equal(
    formatSandboxes(String.raw`table {{.Labels}}\t{{.Name}}`, [one]),
    `LABELS${' '.repeat(shown.length - 6)}  NAME\n${shown}  web\n`,
  );
  const json = formatSandboxes('json', [one]);
  assert.match(json, /"x\\nforged\\t\\u001b\[2J\\u202E"/);
  assert.deepEqual((JSON.parse(json) as Info).spec?.labels, one.spec?.labels);
});
