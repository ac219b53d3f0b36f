import { showJson, showLine, showLines } from '@svc/contract/visible';

/** Writes to stdout: what the command was asked for, and nothing else. Names of others in it are text, and nothing else to a terminal. */
export function print(text: string): void {
  printDrawn(showLines(text));
}

/** One entry of many, which has one line whatever it says. */
export function printEntry(text: string): void {
  printDrawn(showLine(text));
}

/** What was made for a terminal, of parts that were made visible each. */
export function printDrawn(text: string): void {
  process.stdout.write(withEnd(text));
}

export function printJson(value: unknown): void {
  printJsonText(JSON.stringify(value, null, 2));
}

/** One entry of many, as JSON. */
export function printJsonLine(value: unknown): void {
  printJsonText(JSON.stringify(value));
}

/** What is JSON already. */
export function printJsonText(json: string): void {
  printDrawn(showJson(json));
}

/** Writes to stderr: progress, hints, warnings. */
export function tell(text: string): void {
  tellDrawn(showLines(text));
}

/** As `printEntry` has it. */
export function tellEntry(text: string): void {
  tellDrawn(showLine(text));
}

/** As `printDrawn` has it. */
export function tellDrawn(text: string): void {
  process.stderr.write(withEnd(text));
}

function withEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}
