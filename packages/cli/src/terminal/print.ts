/** Writes to stdout: what the command was asked for, and nothing else. */
export function print(text: string): void {
  process.stdout.write(text.endsWith('\n') ? text : `${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Writes to stderr: progress, hints, warnings. */
export function tell(text: string): void {
  process.stderr.write(text.endsWith('\n') ? text : `${text}\n`);
}
