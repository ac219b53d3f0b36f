/** The command line is wrong; exit code 2. The message ends with the command to type instead. */
export class UsageError extends Error {}
