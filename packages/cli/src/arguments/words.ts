/** The command to run, without a leading `--`. */
export function commandWords(words: readonly string[]): readonly string[] {
  return words[0] === '--' ? words.slice(1) : words;
}
