import { showJson, showLine, showLines } from '@svc/contract/visible';

/** Writes the result of a command to stdout. Control characters in untrusted names are made visible. */
export function print(text: string): void {
  printDrawn(showLines(text));
}

/** Prints one entry of a list on exactly one line. */
export function printEntry(text: string): void {
  printDrawn(showLine(text));
}

/** Prints text with terminal sequences, whose untrusted parts were made visible already. */
export function printDrawn(text: string): void {
  process.stdout.write(withEnd(text));
}

export function printJson(value: unknown): void {
  printJsonText(JSON.stringify(value, null, 2));
}

/** Prints one entry of a list as JSON. */
export function printJsonLine(value: unknown): void {
  printJsonText(JSON.stringify(value));
}

/** Prints text that is JSON already. */
export function printJsonText(json: string): void {
  printDrawn(showJson(json));
}

/** Writes to stderr: progress, hints, warnings. */
export function report(text: string): void {
  reportDrawn(showLines(text));
}

/** Like `printEntry`, to stderr. */
export function reportEntry(text: string): void {
  reportDrawn(showLine(text));
}

/** Like `printDrawn`, to stderr. */
export function reportDrawn(text: string): void {
  process.stderr.write(withEnd(text));
}

function withEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
