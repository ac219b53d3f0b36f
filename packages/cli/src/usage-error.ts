/** What was asked for cannot be; exit code 2. The message ends with what to type instead. */
export class UsageError extends Error {}
