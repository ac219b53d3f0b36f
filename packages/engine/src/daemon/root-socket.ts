/** Where root reaches an engine whose main socket belongs to another user: `engine.sock` → `engine-root.sock`. */
export function rootSocketOf(socketPath: string): string {
  return socketPath.replace(/(\.sock)?$/, '-root.sock');
}
