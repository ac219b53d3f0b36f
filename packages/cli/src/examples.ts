/** The part of `--help` that shows how a command is used: pairs of what to type and what that does. */
export function examples(...pairs: readonly (readonly [command: string, meaning: string])[]): string {
  const width = Math.max(...pairs.map(([command]) => command.length));
  const lines = pairs.map(([command, meaning]) => `  ${command.padEnd(width)}   ${meaning}`);
  return `\nExamples:\n${lines.join('\n')}`;
}
