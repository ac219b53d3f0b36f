import { text } from 'node:stream/consumers';
import { UsageError } from '../usage-error.ts';

const [ENTER, NEW_LINE, INTERRUPT, END, DELETE, BACKSPACE] = ['\r', '\n', '\u0003', '\u0004', '\u007f', '\b'];

/** Reads a secret from stdin, or without echo from the terminal; every user of the machine could read an argument. */
export async function readSecret(prompt: string): Promise<string> {
  const value = process.stdin.isTTY
    ? await readUnseen(prompt)
    : (await text(process.stdin)).replace(/\r?\n$/, '');
  if (value === '')
    throw new UsageError('the value is empty\n  try: printf %s "$VALUE" | svc secret set NAME --host HOST');
  return value;
}

async function readUnseen(prompt: string): Promise<string> {
  process.stderr.write(prompt);
  process.stdin.setRawMode(true);
  process.stdin.setEncoding('utf8');
  let typed = '';
  try {
    for await (const chunk of process.stdin as AsyncIterable<string>)
      for (const key of chunk) {
        if (key === ENTER || key === NEW_LINE || key === END) return typed;
        if (key === INTERRUPT) throw new UsageError('nothing was set');
        typed = key === DELETE || key === BACKSPACE ? typed.slice(0, -1) : typed + key;
      }
    return typed;
  } finally {
    process.stdin.setRawMode(false);
    process.stderr.write('\n');
  }
}
